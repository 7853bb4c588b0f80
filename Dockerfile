# The platform in a container: docker build --build-arg REVISION=$(git rev-parse --short=12 HEAD) -t sda-platform . && docker run --rm -p 3000:3000 -v sda:/data sda-platform sda demo
# No entry point: Dagster's Helm chart starts `dagster` in the same image.
FROM python:3.11-slim-bookworm@sha256:a36c24f9cbdf4fd0f52d67f0823eeac19c2028c637cecc392d97f980d4fec56b
RUN apt-get update \
 && apt-get install --yes --no-install-recommends openjdk-17-jre-headless make git procps \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 10001 --create-home sda \
 && install -d -o sda -g sda /app /data
USER sda
WORKDIR /app
COPY --chown=sda:sda . .
# Manifests name the code that made a commit; the image has no checkout to ask.
ARG REVISION
RUN test -n "$REVISION" || { echo "add --build-arg REVISION=\$(git describe --always --abbrev=12 --exclude='*' --dirty=.modified)"; exit 1; } \
 && printf '%s\n' "$REVISION" > .revision
LABEL org.opencontainers.image.revision=$REVISION
# Also fetches Spark's Delta jars and compiles the numerical kernels: a container starts without a network.
RUN make setup && rm -rf ~/.cache/uv ~/.cache/pip
ENV PATH=/app/.venv/bin:$PATH SDA_HOME=/data SDA_WEBSERVER_HOST=0.0.0.0 PYTHONDONTWRITEBYTECODE=1
VOLUME /data
EXPOSE 3000
CMD ["sda", "up"]
