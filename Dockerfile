# The platform in a container: docker build --build-arg REVISION=$(git rev-parse --short=12 HEAD) -t sda-platform . && docker run --rm -p 3000:3000 -v sda:/data sda-platform sda demo
# No entry point: each service names its own command.
# Any Debian or Ubuntu with Python 3.11 to 3.13, or without a Python.
ARG BASE=python:3.11-slim-bookworm@sha256:a36c24f9cbdf4fd0f52d67f0823eeac19c2028c637cecc392d97f980d4fec56b

FROM $BASE AS base
RUN apt-get update \
 && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps \
 && if ! command -v python3; then apt-get install --yes --no-install-recommends python3 python3-venv; fi \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 10001 --create-home sda \
 && install -d -o sda -g sda /app /data
USER sda
WORKDIR /app

FROM base AS build
# The packages change less often than the code: a layer of their own.
COPY --chown=sda:sda requirements.lock pyproject.toml README.md LICENSE dagster.yaml ./
COPY --chown=sda:sda setup/ ./setup/
COPY --chown=sda:sda sda_platform/__init__.py ./sda_platform/
COPY --chown=sda:sda sda_platform/spark/__init__.py sda_platform/spark/jars.py sda_platform/spark/compiled_jars.py sda_platform/spark/java.py ./sda_platform/spark/
# Without what nothing here uses: tests, maps for debuggers of browsers, a shell of Scala, a store of Spark's streams.
RUN python3 setup/bootstrap.py --production --packages \
 && find .venv/lib \( -type d -name tests -o -name '*.js.map' -o -name '*.css.map' -o -name connect-repl -o -name 'rocksdbjni-*.jar' \) -prune -exec rm -rf {} + \
 && rm -rf ~/.cache/uv ~/.cache/pip
COPY --chown=sda:sda . .
# Also fetches Spark's jars and compiles the numerical kernels: a container starts without a network.
RUN python3 setup/bootstrap.py --production \
 && rm -rf .venv/bin/uv .venv/bin/uvx .venv/bin/pip* .venv/lib/python*/site-packages/pip .venv/lib/python*/site-packages/pip-* ~/.cache/uv ~/.cache/pip
# `--build-arg JARS=--s3` adds the jars for a lake in an object store (640 MB).
ARG JARS=
RUN .venv/bin/python -m sda_platform.spark.jars $JARS && rm -rf ~/.ivy2* \
 && .venv/bin/python setup/image_bom.py .venv ~/.cache > sbom.cdx.json
# Manifests name the code that made a commit; the image has no checkout to ask.
ARG REVISION
RUN test -n "$REVISION" || { echo "add --build-arg REVISION=\$(git describe --always --abbrev=12 --exclude='*' --dirty=.modified)"; exit 1; } \
 && printf '%s\n' "$REVISION" > .revision

FROM base
ARG REVISION
LABEL org.opencontainers.image.revision=$REVISION
COPY --from=build --chown=sda:sda /home/sda/.cache /home/sda/.cache
COPY --from=build --chown=sda:sda /app /app
ENV PATH=/app/.venv/bin:$PATH SDA_HOME=/data SDA_WEBSERVER_HOST=0.0.0.0 PYTHONDONTWRITEBYTECODE=1
VOLUME /data
EXPOSE 3000
CMD ["sda", "up"]
