"""Runs: the history, one of them, and its current record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import F, Q, QuerySet

from records.errors import FieldError
from records.models import Comparison, Evidence, JudgmentSet, MeasurementRecord, Project, Run
from records.models.choices import RunKind, RunState
from records.selectors.project import projects_for

# Sort keys of lists: the key a client names -> the column.
SORT_KEYS = {
    "number": "number",
    "created": "created_at",
    "started": "started_at",
    "state": "state",
    "workload": "workload__name",
    "configuration": "configuration__name",
    "attempted": "attempted",
    "completed": "completed",
    "accepted": "accepted",
    "accepted_per_s": "accepted_per_s",
    "slo_attainment": "slo_attainment",
    "ttft_p95": "ttft_p95_s",
    "e2e_p95": "e2e_p95_s",
}
_RELATED = ("workload", "configuration", "endpoint", "trace", "campaign", "owner", "project")
_VALID = {"true": True, "false": False, "unknown": None}


def run_list(*, project: Project, filters: Mapping[str, Any] | None = None) -> QuerySet[Run]:
    """The project's runs, newest first unless `sort` says otherwise.

    `filters`: workload, configuration, endpoint, trace (primary keys), campaign
    (number), state, kind, valid (true, false, unknown), q (number, title, name
    of workload or configuration), sort (a key of SORT_KEYS, "-" in front for
    descending). Empty values do not filter; FieldError names a wrong one.
    """
    given = {k: v for k, v in (filters or {}).items() if v not in (None, "")}
    runs = Run.objects.in_project(project).select_related(*_RELATED)
    for key in ("workload", "configuration", "endpoint", "trace"):
        if key in given:
            runs = runs.filter(**{f"{key}_id": _whole(given[key], key)})
    if "campaign" in given:
        runs = runs.filter(campaign__number=_whole(given["campaign"], "campaign"))
    for key, known in (("state", RunState.values), ("kind", RunKind.values)):
        if key in given:
            runs = runs.filter(**{key: _one_of(str(given[key]), known, key)})
    if "valid" in given:
        word = _one_of(str(given["valid"]).lower(), list(_VALID), "valid")
        runs = runs.filter(valid=_VALID[word])
    if "q" in given:
        runs = runs.filter(_matching(str(given["q"])))
    return runs.order_by(*_order(str(given.get("sort", "-number"))))


def _matching(text: str) -> Q:
    found = (
        Q(title__icontains=text)
        | Q(workload__name__icontains=text)
        | Q(configuration__name__icontains=text)
    )
    number = text.strip().removeprefix("R-").removeprefix("r-")
    if number.isascii() and number.isdigit() and len(number) < 10:
        found |= Q(number=int(number))
    return found


def _order(sort: str) -> list[Any]:
    key = sort.removeprefix("-")
    column = F(SORT_KEYS[_one_of(key, list(SORT_KEYS), "sort")])
    # A run without the figure comes last either way: unknown is not small.
    down = column.desc(nulls_last=True)
    first = down if sort.startswith("-") else column.asc(nulls_last=True)
    return [first] if key == "number" else [first, "-number"]


def _whole(value: Any, field: str) -> int:
    text = str(value)
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise FieldError("filter", field, "a whole number")
    return int(text)


def _one_of(value: str, known: list[str], field: str) -> str:
    if value not in known:
        raise FieldError("filter", field, f"one of {', '.join(known)}")
    return value


def run_get(*, user, project: Project, number: int) -> Run:
    """One run of a project the user is a member of. Run.DoesNotExist for any other."""
    mine = Run.objects.filter(project__in=projects_for(user), project=project)
    return mine.select_related(*_RELATED).get(number=number)


def run_record(run: Run) -> MeasurementRecord | None:
    """The run's current measurement record; None while there is none."""
    return MeasurementRecord.objects.filter(run=run).first()


def run_documents(project: Project, runs: Sequence[Run]) -> dict[int, dict[str, Any]]:
    """The current record's document of each of these runs, by primary key; in one query."""
    rows = MeasurementRecord.objects.in_project(project).filter(run__in=runs)
    # Oldest first, so that the newest of a run stays.
    ordered = rows.order_by("created_at", "pk").values_list("run_id", "document")
    return dict(ordered)


def run_evidence(run: Run) -> QuerySet[Evidence]:
    """The run's evidence files by name."""
    return Evidence.objects.filter(run=run)


def run_evidence_get(run: Run, pk: int) -> Evidence:
    """One evidence file of the run. Evidence.DoesNotExist for any other."""
    return Evidence.objects.get(run=run, pk=pk)


def run_judgment_sets(run: Run) -> QuerySet[JudgmentSet]:
    """The judgment sets of the run, newest first."""
    return JudgmentSet.objects.filter(run=run).select_related("evidence")


def run_comparisons(run: Run) -> QuerySet[Comparison]:
    """The comparisons that the run is part of, newest first."""
    part_of = Q(baselines=run) | Q(candidates=run)
    return Comparison.objects.filter(part_of, project_id=run.project_id).distinct()
