"""Start-up checks: each misconfigured setting is named, with what would be right.

Run by `manage.py check` and before `migrate` and the servers start. Numbers stay.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register

_LEAST_LEASE_S = 3.0


@register()
def check_settings(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """All findings about the environment of this installation."""
    return [*_secret_key(), *_folders(), *_lease(), *_hosts(), *_upload_limit(), *_ceilings()]


def _embedded() -> bool:
    """Whether one machine runs from its data folder, with no database server named."""
    return not os.environ.get("IMPAKT_DATABASE_URL")


def _secret_key() -> list[CheckMessage]:
    given = os.environ.get("IMPAKT_SECRET_KEY")
    if given is None and not _embedded():
        return [
            Error(
                "IMPAKT_SECRET_KEY is not set although IMPAKT_DATABASE_URL is",
                hint="Hosts that share a database must share the key that signs sessions.",
                id="impakt.E001",
            )
        ]
    if len(settings.SECRET_KEY) < 32:
        return [
            Error(
                "IMPAKT_SECRET_KEY is shorter than 32 characters",
                hint='python -c "import secrets; print(secrets.token_urlsafe(50))"',
                id="impakt.E002",
            )
        ]
    return []


def _folders() -> list[CheckMessage]:
    named = {
        "IMPAKT_DATA": settings.DATA_DIR,
        "IMPAKT_EVIDENCE": settings.EVIDENCE_DIR,
        "IMPAKT_SPOOL": settings.SPOOL_DIR,
    }
    return [
        Error(
            f"{name}: {folder} cannot be written",
            hint="Name a folder that the user running IMPAKT owns.",
            id="impakt.E003",
        )
        for name, folder in named.items()
        if not _writable(Path(folder))
    ]


def _writable(folder: Path) -> bool:
    """Whether the folder, or the nearest one above that exists, takes new files."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def _lease() -> list[CheckMessage]:
    if settings.RUN_LEASE_S >= _LEAST_LEASE_S:
        return []
    return [
        Warning(
            f"IMPAKT_RUN_LEASE_S is {settings.RUN_LEASE_S:g}: workers report each second, "
            "so a busy host would lose its runs",
            hint=f"At least {_LEAST_LEASE_S:g}; 20 is the default.",
            id="impakt.W001",
        )
    ]


def _hosts() -> list[CheckMessage]:
    found: list[CheckMessage] = []
    if "*" in settings.ALLOWED_HOSTS:
        found.append(
            Warning(
                "IMPAKT_ALLOWED_HOSTS is *: any host name is answered to",
                hint="Name the hosts that people type.",
                id="impakt.W002",
            )
        )
    if settings.DEBUG and not _embedded():
        found.append(
            Warning(
                "IMPAKT_DEBUG is on beside a database server",
                hint="Debug pages show settings and source to whoever meets an error.",
                id="impakt.W003",
            )
        )
    return found


def _upload_limit() -> list[CheckMessage]:
    if settings.UPLOAD_MAX_BYTES > 0:
        return []
    return [
        Error(
            "IMPAKT_UPLOAD_MAX_BYTES must be above 0",
            hint="512 MiB is the default.",
            id="impakt.E004",
        )
    ]


def _ceilings() -> list[CheckMessage]:
    named = {
        "IMPAKT_MAX_RATE_PER_S": settings.MAX_RATE_PER_S,
        "IMPAKT_MAX_CONCURRENCY": settings.MAX_CONCURRENCY,
    }
    return [
        # Written so that NaN is none of them either.
        Error(
            f"{name} must be above 0",
            hint="No run could be made; 10000 is the default.",
            id="impakt.E005",
        )
        for name, value in named.items()
        if not value > 0
    ]
