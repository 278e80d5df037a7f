# One image for web, workers and beat; docker-compose.yml says which command each runs.
FROM python:3.12-slim AS base
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /app

COPY requirements/runtime.txt requirements/runtime.txt
RUN pip install --no-cache-dir --require-hashes -r requirements/runtime.txt

COPY . .
RUN pip install --no-cache-dir --no-deps --no-build-isolation -e . \
 && useradd --create-home --uid 10001 impakt \
 && mkdir -p /data /static \
 && IMPAKT_DATA=/tmp/build IMPAKT_STATIC_ROOT=/static python manage.py collectstatic --noinput \
 && rm -rf /tmp/build \
 && chown -R impakt:impakt /data

USER impakt
ENV IMPAKT_DATA=/data IMPAKT_STATIC_ROOT=/static
VOLUME /data
EXPOSE 8000
CMD ["uvicorn", "impakt_web.asgi:application", "--host", "0.0.0.0", "--port", "8000", "--timeout-graceful-shutdown", "3"]
