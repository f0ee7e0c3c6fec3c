# The capdex node, with the extras `node`, `postgres` and `semantic`. One stage installs the locked
# dependencies, the other holds nothing but the result.
#
#   docker build -t capdex .
#   docker run --rm capdex --help

FROM python:3.11.14-slim-bookworm@sha256:65a93d69fa75478d554f4ad27c85c1e69fa184956261b4301ebaf6dbb0a3543d AS build

ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src

# What builds stays in this stage; what runs is installed by the wheel, its hash checked before.
COPY requirements/bootstrap.lock requirements/node.lock requirements/semantic.lock \
     requirements/
RUN python -m venv /opt/build \
 && /opt/build/bin/pip install --require-hashes --no-deps -r requirements/bootstrap.lock
# The tests and C sources of the libraries are 31 MB that nothing runs.
RUN /opt/build/bin/pip wheel --wheel-dir /wheels --require-hashes --no-deps --no-build-isolation \
      -r requirements/node.lock -r requirements/semantic.lock \
 && python -m venv --without-pip /opt/capdex \
 && /opt/build/bin/pip --python /opt/capdex/bin/python install --no-index --no-deps /wheels/*.whl \
 && find /opt/capdex/lib -type d \( -name tests -o -name SelfTest \) -prune -exec rm -rf {} + \
 && find /opt/capdex/lib -type f \( -name '*.c' -o -name '*.pyx' -o -name '*.pxd' -o -name '*.h' \) -delete

# Last, so that a change of our own code does not install every dependency again.
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY capdex capdex
COPY capdex_cli capdex_cli
COPY capdex_explorer capdex_explorer
COPY capdex_router capdex_router
COPY indexer indexer
COPY publisher publisher
COPY mcp_service mcp_service
COPY examples examples
COPY release/licences.py ./
# What `capdex version` says: docker build --build-arg COMMIT=$(git rev-parse HEAD)
ARG COMMIT=
RUN { test -z "$COMMIT" || echo "$COMMIT" > COMMIT; } \
 && /opt/build/bin/pip wheel --wheel-dir /own --no-deps --no-build-isolation . \
 && /opt/build/bin/pip --python /opt/capdex/bin/python install --no-index --no-deps /own/*.whl \
 && /opt/capdex/bin/python licences.py /opt/capdex/lib/python3.11/site-packages > /licences


FROM python:3.11.14-slim-bookworm@sha256:65a93d69fa75478d554f4ad27c85c1e69fa184956261b4301ebaf6dbb0a3543d

LABEL org.opencontainers.image.title="capdex" \
      org.opencontainers.image.description="A decentralised registry for agent capabilities" \
      org.opencontainers.image.licenses="Apache-2.0"

# The number is fixed, so that files on a volume keep their owner from image to image.
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /data --shell /usr/sbin/nologin capdex \
 && install --directory --owner capdex --group capdex --mode 0750 /data /deployments

COPY --from=build /opt/capdex /opt/capdex
# The licences of all that is in it; those of Debian and Python are where Debian has them.
COPY --from=build /licences /usr/share/doc/capdex/licences

# Nothing is written outside /data (and, by `capdex deploy` in compose, /deployments): the root file
# system may be read-only.
# CAPDEX_HOST is left alone on purpose. Until it is told otherwise (compose does, naming the hosts it
# may be called by), the node listens inside its own container only.
ENV PATH=/opt/capdex/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    CAPDEX_HOME=/data \
    CAPDEX_DB=sqlite:////data/index.db \
    CAPDEX_BLOCKS=/data/blocks \
    CAPDEX_PORT=8765 \
    CAPDEX_LOG_FORMAT=json

USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8765
STOPSIGNAL SIGTERM

HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["python", "-c", \
  "import os, urllib.request as r; r.build_opener(r.ProxyHandler({})).open('http://127.0.0.1:' + os.environ['CAPDEX_PORT'] + '/health', timeout=4)"]

ENTRYPOINT ["capdex"]
CMD ["node"]
