"""Settings, all from the environment; docs/settings.md lists every name.

With nothing set, IMPAKT runs on one machine from a data folder: SQLite, an
embedded broker on a unix socket and a local evidence store.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Any

from impakt_web.database import database_from_url

BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = Path(os.environ.get("IMPAKT_DATA", BASE_DIR / "data")).resolve()


def _flag(name: str, default: bool) -> bool:
    return os.environ.get(name, "1" if default else "0").lower() in {"1", "true", "yes", "on"}


def _list(name: str, default: str) -> list[str]:
    return [part.strip() for part in os.environ.get(name, default).split(",") if part.strip()]


def _secret_key() -> str:
    """The signing key: from the environment, else one made once per data folder."""
    if given := os.environ.get("IMPAKT_SECRET_KEY"):
        return given
    path = DATA_DIR / "secret_key"
    try:
        return path.read_text()
    except FileNotFoundError:
        pass
    DATA_DIR.mkdir(parents=True, exist_ok=True)
    key = secrets.token_urlsafe(50)
    try:
        # O_EXCL: two processes starting together must end with one key.
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_text()
    with os.fdopen(fd, "w") as file:
        file.write(key)
    return key


SECRET_KEY = _secret_key()
DEBUG = _flag("IMPAKT_DEBUG", False)
ALLOWED_HOSTS = _list("IMPAKT_ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = _list("IMPAKT_TRUSTED_ORIGINS", "")
BEHIND_TLS = _flag("IMPAKT_BEHIND_TLS", False)

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "django_filters",
    "records",
    "runners",
    "impakt_web",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "impakt_web.middleware.content_security_policy",
    "impakt_web.static.StaticFiles",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "impakt_web.urls"
ASGI_APPLICATION = "impakt_web.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "records.web.context.shell",
            ],
            "builtins": ["records.web.templatetags.impakt"],
        },
    },
]

DATABASES: dict[str, dict[str, Any]] = {
    "default": database_from_url(os.environ.get("IMPAKT_DATABASE_URL"), DATA_DIR / "impakt.sqlite3")
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "sign_in"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "sign_in"

LANGUAGE_CODE = "en-gb"
TIME_ZONE = os.environ.get("IMPAKT_TIME_ZONE", "UTC")
USE_I18N = False
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = Path(os.environ.get("IMPAKT_STATIC_ROOT", DATA_DIR / "static"))
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}

# Evidence: content-addressed files, apart from the database.
EVIDENCE_DIR = Path(os.environ.get("IMPAKT_EVIDENCE", DATA_DIR / "evidence"))
# Folders of runs in progress; emptied into the evidence store when a run ends.
SPOOL_DIR = Path(os.environ.get("IMPAKT_SPOOL", DATA_DIR / "spool"))
UPLOAD_MAX_BYTES = int(os.environ.get("IMPAKT_UPLOAD_MAX_BYTES", 512 * 1024 * 1024))
DATA_UPLOAD_MAX_MEMORY_SIZE = 8 * 1024 * 1024
FILE_UPLOAD_TEMP_DIR = None

# What runs may send to an endpoint that states no lower ceiling of its own.
MAX_RATE_PER_S = float(os.environ.get("IMPAKT_MAX_RATE_PER_S") or 10_000)
MAX_CONCURRENCY = int(os.environ.get("IMPAKT_MAX_CONCURRENCY") or 10_000)
# Whether endpoints may lie in private ranges and on loopback, which only this host reaches.
PRIVATE_ENDPOINTS = _flag("IMPAKT_PRIVATE_ENDPOINTS", False)

# A run whose worker has not been heard of for this long is interrupted.
RUN_LEASE_S = float(os.environ.get("IMPAKT_RUN_LEASE_S", 20))
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = BEHIND_TLS
CSRF_COOKIE_SECURE = BEHIND_TLS
SECURE_SSL_REDIRECT = False
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_HSTS_SECONDS = 31_536_000 if BEHIND_TLS else 0
X_FRAME_OPTIONS = "DENY"
if BEHIND_TLS:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "records.api.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["records.api.permissions.InProject"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_PAGINATION_CLASS": "records.api.pagination.Cursor",
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "EXCEPTION_HANDLER": "records.api.problems.handler",
    "STRICT_JSON": True,
    "PAGE_SIZE": 50,
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "IMPAKT",
    "DESCRIPTION": "Experiment registry for LLM inference measurement records.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": True,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "COMPONENT_SPLIT_REQUEST": True,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    # The words of a choice are their own description.
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    # Two fields of one name with different choices: drf-spectacular would number them.
    "ENUM_NAME_OVERRIDES": {
        "RunKind": "records.models.choices.RunKind.choices",
        "AlertKind": "records.models.choices.AlertKind.choices",
        "Verdict": "records.models.choices.Verdict.choices",
    },
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": os.environ.get("IMPAKT_LOG_LEVEL", "INFO")},
    # A line for each request of a load run would fill the log and slow the run.
    "loggers": {name: {"level": "WARNING"} for name in ("httpx", "httpcore")},
}
