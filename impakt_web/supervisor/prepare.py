"""What must stand before the pages answer: tables, static files, an owner, a project.

Everything here runs in the supervisor's own process, so that Django is loaded
once, and does nothing that an earlier start has done already.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from records.errors import BadInput, OtherSideFailed, StorageFailed

OWNER = "owner"
# Spelt out, since asking Django for `sign_in_link` loads every page and half of SciPy
# here as well, seconds before anything can be shown; a test holds the two together.
SIGN_IN_PATH = "/sign-in/link/{}/"
_TOKEN_NAME = "impakt up"  # noqa: S105 - the token's label, not its secret


@dataclass(frozen=True)
class Access:
    """How the person who started this gets in: names, and the path of a one-time link."""

    username: str
    has_password: bool
    project: str
    sign_in_path: str


@contextmanager
def failures_told() -> Iterator[None]:
    """While inside, what settings, database and disk refuse becomes one line for a person."""
    from django.core.exceptions import ImproperlyConfigured
    from django.db import DatabaseError

    try:
        yield
    except ImproperlyConfigured as error:
        raise BadInput(str(error)) from error
    except DatabaseError as error:
        # The driver names host and user in it, never the password.
        if os.environ.get("IMPAKT_DATABASE_URL"):
            raise OtherSideFailed(f"the database of IMPAKT_DATABASE_URL: {error}") from error
        raise StorageFailed(f"the database in the data folder: {error}") from error
    except OSError as error:
        raise StorageFailed(f"{error.filename or 'the data folder'}: {error.strerror}") from error


def load_django() -> None:
    """Load settings and models; the environment must be set by now."""
    import django

    django.setup()


def migrate() -> None:
    """Bring the database up to date."""
    from django.core.management import call_command

    call_command("migrate", interactive=False, verbosity=0)


def collect_static() -> bool:
    """Collect static files when any has changed since the last time; whether it did."""
    from django.conf import settings
    from django.core.management import call_command

    # Beside the folder, not in it: what is in it is served.
    stamp = settings.DATA_DIR / "static.sources"
    manifest = Path(settings.STATIC_ROOT) / "staticfiles.json"
    now = _static_fingerprint()
    if manifest.is_file() and stamp.is_file() and stamp.read_text() == now:
        return False
    Path(settings.STATIC_ROOT).mkdir(parents=True, exist_ok=True)
    call_command("collectstatic", interactive=False, verbosity=0, clear=True)
    stamp.write_text(now)
    return True


def _static_fingerprint() -> str:
    from django.conf import settings
    from django.contrib.staticfiles.finders import get_finders

    digest = hashlib.sha256(settings.STORAGES["staticfiles"]["BACKEND"].encode())
    for finder in get_finders():
        for path, storage in finder.list([]):
            found = Path(storage.path(path)).stat()
            digest.update(f"{path}:{found.st_size}:{found.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def grant_access(*, demo: bool) -> Access:
    """The local owner with a project and a fresh one-time sign-in link."""
    from django.contrib.auth import get_user_model

    from records.models import Project
    from records.services.access import link_create
    from records.services.project import project_create

    user, new = get_user_model().objects.get_or_create(
        username=OWNER, defaults={"is_superuser": True, "is_staff": True}
    )
    if new:
        user.set_unusable_password()
        user.save()
    slug, name = ("example", "Worked example") if demo else ("default", "Default")
    projects = Project.objects.filter(slug=slug) if demo else Project.objects.visible_to(user)
    project = projects.order_by("pk").first()
    if project is None:
        project = project_create(slug=slug, name=name, owner=user)
    return Access(
        username=user.get_username(),
        has_password=user.has_usable_password(),
        project=project.slug,
        sign_in_path=SIGN_IN_PATH.format(link_create(user=user)),
    )


def read_token(project_slug: str) -> str:
    """A new read token of the project; the one an earlier start printed stops working."""
    from django.contrib.auth import get_user_model

    from records.models import ApiToken, Project
    from records.services.access import token_create, token_revoke

    user = get_user_model().objects.get(username=OWNER)
    project = Project.objects.get(slug=project_slug)
    for old in ApiToken.objects.in_project(project).filter(name=_TOKEN_NAME, revoked_at=None):
        token_revoke(token=old, user=user)
    _, secret = token_create(
        project=project, user=user, name=_TOKEN_NAME, lifetime=timedelta(days=30)
    )
    return secret
