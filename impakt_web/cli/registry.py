"""Runs of the registry for commands that else need none: Django is loaded only here."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from records.errors import BadInput

if TYPE_CHECKING:
    from records.models import Run

_NUMBER = re.compile(r"[Rr]-([0-9]{1,9})")


def names_a_run(text: str) -> bool:
    """Whether it reads like a run's uid or its R-number."""
    return _NUMBER.fullmatch(text) is not None or _uid(text) is not None


def run_of(text: str, data: Path) -> Run:
    """The run that a uid or an R-number names in the registry of a data folder.

    BadInput when there is no registry, no such run, or the number is used by
    several projects. OtherSideFailed, StorageFailed when the database refuses.
    """
    _load_django(data)
    from impakt_web.supervisor.prepare import failures_told
    from records.models import Run

    uid, number = _uid(text), _NUMBER.fullmatch(text)
    named = {"uid": uid} if uid else {"number": int(number[1]) if number else -1}
    with failures_told():
        found = list(Run.objects.filter(**named).select_related("project").order_by("pk")[:100])
    if not found:
        raise BadInput(f"{text}: no run of this registry; give --data to name another")
    if len(found) > 1:
        uids = ", ".join(f"{run.uid} ({run.project.slug})" for run in found)
        raise BadInput(f"{text}: runs of several projects; name one by its uid: {uids}")
    return found[0]


def _load_django(data: Path) -> None:
    # Settings make what is missing; asking about a run must not make a registry.
    if not os.environ.get("IMPAKT_DATABASE_URL") and not (data / "impakt.sqlite3").is_file():
        raise BadInput(f"{data}: no registry (no impakt.sqlite3); give --data DIR")
    os.environ["IMPAKT_DATA"] = str(data.resolve())
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "impakt_web.settings")
    from impakt_web.supervisor.prepare import failures_told

    with failures_told():
        import django
        from django.apps import apps

        # A second time would give the process new log handlers.
        if not apps.ready:
            django.setup()


def _uid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
