"""Measurement records: computed from evidence, stored with it, shown in lists."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from typing import Any

from django.db import transaction

from records.acceptance.judging import judge_folder
from records.analysis.recompute import check_records
from records.analysis.record import record_bytes
from records.analysis.series import record_and_series
from records.errors import BadInput
from records.evidence.folder import EvidenceFolder
from records.evidence.manifest import Difference
from records.models import MeasurementRecord, Run
from records.models.choices import RunState
from records.services import alert, audit, comparison
from records.services.evidence import evidence_add, folder_checkout
from records.services.judgment import judgments_ingest

log = logging.getLogger(__name__)


def record_store(
    *, run: Run, record: Mapping[str, Any], series: Mapping[str, Any]
) -> MeasurementRecord:
    """Keeps a record with its evidence file and writes the run's headline columns.

    The same record again is the row there is; another one replaces the last.
    """
    data = record_bytes(record)
    sha256 = hashlib.sha256(data).hexdigest()
    with transaction.atomic():
        # The run's row is the lock: two analyses at once store one after the other.
        Run.objects.filter(pk=run.pk).update(**headline(record), **_simulated(record))
        known = MeasurementRecord.objects.filter(run=run, sha256=sha256).first()
        if known is not None:
            return known
        made = MeasurementRecord.objects.create(
            project=run.project, run=run, sha256=sha256, document=dict(record),
            analysis_version=str(record["analysis_version"])[:20], series=dict(series),
            evidence=evidence_add(run=run, name=f"records/{sha256}.json", data=data),
            replaces=MeasurementRecord.objects.filter(run=run).first(),
        )  # fmt: skip
        audit.record(
            project=run.project, actor_name="worker", action="record.store", target=run,
            after={"sha256": sha256, "analysis_version": made.analysis_version},
        )  # fmt: skip
    run.refresh_from_db()
    return made


def headline(record: Mapping[str, Any]) -> dict[str, Any]:
    """The run's columns that repeat figures of its record; None where the record has none."""
    rate = _at(record, "goodput", "accepted_per_s") or {}
    return {
        "valid": record.get("valid"),
        "invalid_reasons": record.get("invalid_reasons") or [],
        "attempted": _number(_at(record, "counts", "attempted")),
        "completed": _number(_at(record, "counts", "completed")),
        "accepted": _number(_at(record, "counts", "accepted")),
        "accepted_per_s": _number(rate),
        "accepted_per_s_low": _number(rate.get("low")) if isinstance(rate, Mapping) else None,
        "accepted_per_s_high": _number(rate.get("high")) if isinstance(rate, Mapping) else None,
        "slo_attainment": _number(_at(record, "goodput", "slo_attainment")),
        "ttft_p95_s": _supported(_at(record, "latency", "ttft_s", "p95")),
        "e2e_p95_s": _supported(_at(record, "latency", "e2e_s", "p95")),
    }


def _simulated(record: Mapping[str, Any]) -> dict[str, bool]:
    """What the endpoint said of itself, where it said it."""
    said = _at(record, "run", "simulated")
    return {"simulated": said} if isinstance(said, bool) else {}


def _at(record: Mapping[str, Any], *path: str) -> Any:
    value: Any = record
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _number(value: Any) -> Any:
    """A figure's number, which may stand alone or as {"value": …}."""
    if isinstance(value, Mapping):
        value = value.get("value")
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _supported(percentile: Any) -> Any:
    """A percentile's number; None where its sample is too small for it."""
    if isinstance(percentile, Mapping) and percentile.get("supported") is False:
        return None
    return _number(percentile)


def run_analyse(*, run: Run) -> MeasurementRecord:
    """Judges and analyses a run's evidence; an analysing run is completed by it.

    A run that was stopped, interrupted or failed keeps its state and gets its
    record all the same. Doing it again with the same evidence changes nothing.
    """
    with folder_checkout(run) as path:
        folder = EvidenceFolder.open(path)
        _judge(folder, run)
        judgments_ingest(run=run, folder=path)
        record, series = record_and_series(folder)
    stored = record_store(run=run, record=record, series=series)
    with transaction.atomic():
        analysing = Run.objects.filter(pk=run.pk, state=RunState.ANALYSING)
        if analysing.update(state=RunState.COMPLETED):
            audit.record(
                project=run.project, actor_name="worker", action="run.complete", target=run
            )
    run.refresh_from_db()
    comparison.refresh_for_run(run=run)
    return stored


def _judge(folder: EvidenceFolder, run: Run) -> None:
    try:
        judge_folder(folder)
    except BadInput as error:
        # Unjudged work is not accepted; the record says that there is no judgment set.
        log.warning("%s: not judged: %s", run, error)


def analysis_failed(*, run: Run, reason: str) -> None:
    """An analysing run fails with a reason and an alert; its evidence stays as it is."""
    with transaction.atomic():
        analysing = Run.objects.filter(pk=run.pk, state=RunState.ANALYSING)
        if analysing.update(state=RunState.FAILED, failure=f"Not analysed: {reason}"):
            run.refresh_from_db()
            audit.record(
                project=run.project, actor_name="worker", action="run.fail", target=run,
                after={"failure": run.failure},
            )  # fmt: skip
            alert.raise_for_run(run)


def record_recompute(*, run: Run) -> list[Difference]:
    """Records of the run that its stored evidence no longer gives; empty when none.

    One of another analysis version cannot be held against this one and is
    passed over, as is everything of a run without evidence.
    """
    if not run.evidence.filter(name="run.json").exists():
        return []
    with folder_checkout(run) as path:
        checks = check_records(path)
    return [
        Difference(check.name, "changed", check.detail)
        for check in checks
        if check.result in ("differs", "unreadable")
    ]
