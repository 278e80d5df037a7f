"""Numbers people say aloud (R-12, C-3): they count up within a project, without gaps of ours."""

from __future__ import annotations

from typing import Literal

from django.db import transaction
from django.db.models import F

from records.models import Project

Kind = Literal["run", "campaign", "comparison", "decision"]


def next_number(project: Project, kind: Kind) -> int:
    """The next number of a kind; call it inside the transaction that uses it.

    The UPDATE locks the project's row until commit, so two at once get two numbers.
    """
    if not transaction.get_connection().in_atomic_block:
        raise RuntimeError("a number is drawn in the transaction that uses it")
    field = f"last_{kind}_number"
    rows = Project.objects.filter(pk=project.pk)
    rows.update(**{field: F(field) + 1})
    number: int = rows.values_list(field, flat=True).get()
    return number


def lock(project: Project) -> None:
    """Waits for its turn in the project: what is decided after this holds until commit.

    An UPDATE that changes nothing; SELECT FOR UPDATE does not lock on SQLite.
    """
    Project.objects.filter(pk=project.pk).update(last_run_number=F("last_run_number"))
