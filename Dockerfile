# The platform in a container: docker build -t sda . && docker run --rm -p 3000:3000 -v sda:/data sda demo
FROM python:3.11-slim-bookworm
RUN apt-get update \
 && apt-get install --yes --no-install-recommends openjdk-17-jre-headless make git procps \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY . .
# Also fetches Spark's Delta jars and compiles the numerical kernels: a container starts without a network.
RUN make setup && rm -rf /root/.cache/uv /root/.cache/pip
ENV PATH=/app/.venv/bin:$PATH SDA_HOME=/data SDA_WEBSERVER_HOST=0.0.0.0
VOLUME /data
EXPOSE 3000
ENTRYPOINT ["sda"]
CMD ["up"]
