# The production image: web server, worker, beat and migrations are the same image with other commands.
FROM python:3.11.14-slim-bookworm AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv /venv
ENV PATH=/venv/bin:$PATH
COPY requirements.txt /tmp/requirements.txt
RUN pip install --require-hashes -r /tmp/requirements.txt
WORKDIR /app
COPY . .
# The key signs nothing here and stays in this stage.
RUN SECRET_KEY=build python manage.py collectstatic --noinput --verbosity 0 \
    && python -m compileall -q .

# pg_dump and pg_restore of the server's version, which Debian does not have, with their libraries.
FROM postgres:17.6-bookworm AS postgresql
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
RUN install --directory /client/lib \
    && for program in pg_dump pg_restore; do \
        cp "/usr/lib/postgresql/17/bin/$program" /client/lib/ \
        && printf '#!/bin/sh\nLD_LIBRARY_PATH=/opt/postgresql/lib exec /opt/postgresql/lib/%s "$@"\n' "$program" \
            > "/client/$program" \
        && chmod 755 "/client/$program" || exit 1; \
    done \
    && ldd /client/lib/pg_dump /client/lib/pg_restore | awk '/=> \// && !/lib(c|m|resolv)\.so/ {print $3}' | sort --unique \
        | xargs cp --dereference --target-directory /client/lib

FROM python:3.11.14-slim-bookworm
LABEL org.opencontainers.image.title="WebVerdict" \
      org.opencontainers.image.description="Decide whether a web agent did its task, and prove that it was decided properly." \
      org.opencontainers.image.licenses="MIT"
ARG VERSION REVISION
LABEL org.opencontainers.image.version=$VERSION \
      org.opencontainers.image.revision=$REVISION
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /scratch webverdict \
    && install --directory --owner webverdict --group webverdict /scratch
COPY --from=build /venv /venv
COPY --from=build /app /app
COPY --from=postgresql /client /opt/postgresql
# /scratch holds uploads on their way to the store; nothing else is written.
ENV PATH=/venv/bin:/opt/postgresql:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    HOME=/scratch \
    TMPDIR=/scratch
WORKDIR /app
USER 10001:10001
EXPOSE 8000
HEALTHCHECK --interval=15s --timeout=5s --start-period=20s --retries=4 \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
# --preload: all processes share the memory of the loaded application, and the port opens once it is loaded.
CMD ["gunicorn", "config.wsgi", "--preload", "--bind", "0.0.0.0:8000", "--workers", "3", "--worker-class", "config.web_worker.Worker", \
     "--threads", "4", "--limit-request-line", "8190", "--worker-tmp-dir", "/dev/shm", "--no-control-socket"]
