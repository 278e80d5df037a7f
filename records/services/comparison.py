"""Comparisons: baseline runs against candidate runs, filled once every run has a record."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.db.models import Q

from records.analysis.comparison import compare
from records.errors import BadInput, FieldError, ImpaktError
from records.evidence.canonical import sha256_of
from records.models import Comparison, MeasurementRecord, Project, Run, Workload
from records.services import audit
from records.services.numbers import next_number
from records.services.permissions import require

log = logging.getLogger(__name__)


def question(baseline: str, candidate: str) -> str:
    """The title of a comparison of two configurations by name: "Y against x"."""
    return f"{candidate[:1].upper()}{candidate[1:]} against {baseline}"


def comparison_create(
    *,
    project: Project,
    user,
    title: str,
    baselines: Sequence[Run],
    candidates: Sequence[Run],
    workload: Workload | None,
) -> Comparison:
    """A comparison of runs; its document is there once every run has a record.

    BadInput when a side is empty, a run stands on both, is of another project or
    has a record that cannot be compared.
    """
    require(user, project, "compare")
    with transaction.atomic():
        comparison = created(project, user, title, baselines, candidates, workload)
        return comparison_refresh(comparison=comparison)


def created(
    project: Project, user, title: str, baselines, candidates, workload: Workload | None
) -> Comparison:
    """As `comparison_create`, for a caller that has asked for permission and whose runs go on."""
    if not baselines or not candidates:
        raise BadInput("A comparison needs at least one baseline run and one candidate run")
    if {r.pk for r in baselines} & {r.pk for r in candidates}:
        raise BadInput("A run cannot be both baseline and candidate")
    for field, runs in (("baselines", baselines), ("candidates", candidates)):
        if any(run.project_id != project.pk for run in runs):
            raise FieldError("comparison", field, "runs of the same project")
    if workload is not None and workload.project_id != project.pk:
        raise FieldError("comparison", "workload", "one of the same project")
    with transaction.atomic():
        made = Comparison.objects.create(
            project=project, number=next_number(project, "comparison"), title=title[:200],
            workload=workload, created_by=user,
        )  # fmt: skip
        made.baselines.set(baselines)
        made.candidates.set(candidates)
        audit.record(
            project=project, actor=user, action="comparison.create", target=made,
            after={
                "baselines": [r.number for r in baselines],
                "candidates": [r.number for r in candidates],
            },
        )  # fmt: skip
    return made


def comparison_refresh(*, comparison: Comparison) -> Comparison:
    """Computes the document anew; left as it is while a run has no record yet."""
    baselines = _records(comparison.baselines.order_by("number"))
    candidates = _records(comparison.candidates.order_by("number"))
    if baselines is None or candidates is None:
        return comparison
    document = compare(candidates=candidates, baselines=baselines)
    sha256 = sha256_of(document)
    if sha256 == comparison.sha256:
        return comparison
    with transaction.atomic():
        before = comparison.sha256
        comparison.document, comparison.sha256 = document, sha256
        comparison.verdict = document["verdict"]
        comparison.save(update_fields=["document", "sha256", "verdict"])
        audit.record(
            project=comparison.project, actor_name="worker", action="comparison.refresh",
            target=comparison, before={"sha256": before}, after={"sha256": sha256},
        )  # fmt: skip
    return comparison


def _records(runs) -> list[dict[str, Any]] | None:
    documents = []
    for run in runs:
        record = MeasurementRecord.objects.filter(run=run).first()
        if record is None:
            return None
        documents.append(record.document)
    return documents


def refresh_for_run(*, run: Run) -> None:
    """Computes every comparison anew that this run is part of."""
    part_of = Q(baselines=run) | Q(candidates=run)
    for comparison in Comparison.objects.filter(part_of, project=run.project).distinct():
        try:
            comparison_refresh(comparison=comparison)
        except ImpaktError:
            # The run has its record all the same; the comparison keeps what it showed.
            log.exception("%s", comparison)
