"""External runs: what was measured elsewhere and uploaded.

Where evidence is there, every figure is computed here; a record that comes
with it is kept as a file and never believed.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from django.db import transaction

from records.analysis.record import analyze_folder
from records.analysis.shape import MOST_COUNTED, check_shape
from records.analysis.version import RECORD_SCHEMA
from records.errors import BadEvidence
from records.evidence.canonical import is_number
from records.evidence.columns import OUTCOMES
from records.evidence.folder import EvidenceFolder
from records.models import Project, Run, Trace, Workload
from records.models.choices import CacheState, RunKind, RunState
from records.services import audit, configuration, trace, workload
from records.services.documents import checked
from records.services.evidence import evidence_put, evidence_rows
from records.services.numbers import next_number
from records.services.permissions import require
from records.services.record import record_store, run_analyse
from records.traces.reading import parse_trace

# States that run.json may end with; anything else was never sealed by us.
_STATES = (RunState.COMPLETED, RunState.STOPPED, RunState.INTERRUPTED, RunState.FAILED)


def run_from_folder(*, project: Project, user, folder: Path, filename: str) -> Run:
    """An external run from an evidence folder, with its record computed from it.

    Workload, configuration and trace become rows where the folder holds them.
    BadEvidence or EvidenceDiffers name the file that is wrong; nothing is left
    in the registry then.
    """
    require(user, project, "upload")
    opened = EvidenceFolder.open(folder)
    if opened.run.get("state") not in _STATES:
        raise BadEvidence("run.json", "state", f"one of {', '.join(_STATES)}")
    # Before anything is written: a folder that cannot be analysed is no evidence of a run.
    analyze_folder(folder)
    stored = evidence_put(folder)
    with transaction.atomic():
        parts = _parts(project, user, opened, filename)
        run = _created(project, user, opened.run, filename, **parts)
        evidence_rows(run=run, stored=stored)
    run_analyse(run=run)
    return run


def run_from_record(*, project: Project, user, record: Mapping[str, Any], filename: str) -> Run:
    """An external run from a bare record, which nobody can recompute: `source` says so.

    BadEvidence names the field that is not one of impakt.record/1.
    """
    require(user, project, "upload")
    plain = checked(record, filename, BadEvidence)
    _check_record(plain, filename)
    about = {k: None if _absent(v) else v for k, v in plain["run"].items()}
    with transaction.atomic():
        run = _created(
            project, user, about | {"source": "uploaded record", "created_at": about.get("date")},
            filename,
            configuration=_configuration(project, user, about),
            workload=_known(Workload, project, sha256=about.get("workload_hash")),
            trace=_known(Trace, project, trace_hash=about.get("trace_hash")),
        )  # fmt: skip
        record_store(run=run, record=plain, series={})
    return run


def _absent(value: Any) -> bool:
    """Whether a record's field is {"value": null, "reason": …}."""
    return isinstance(value, Mapping) and "reason" in value and value.get("value") is None


def _check_record(record: dict[str, Any], where: str) -> None:
    if record.get("schema") != RECORD_SCHEMA:
        raise BadEvidence(where, "schema", RECORD_SCHEMA)
    check_shape(record, where)
    counts = record["counts"]
    if counts["attempted"] != sum(counts[key] for key in OUTCOMES):
        raise BadEvidence(where, "counts.attempted", "the sum of the nine outcomes")


def _parts(project: Project, user, folder: EvidenceFolder, filename: str) -> dict[str, Any]:
    named = folder.workload.get("name") is not None
    lines = "\n".join(folder.trace_lines())
    return {
        "workload": _workload(project, user, folder.workload) if named else None,
        "configuration": _configuration(project, user, folder.run),
        "trace": _trace(project, user, lines, filename) if lines.strip() else None,
    }


def _workload(project: Project, user, document: dict[str, Any]) -> Workload:
    return workload.ensure(project=project, document=document, user=user)


def _configuration(project: Project, user, run: Mapping[str, Any]):
    document = run.get("configuration")
    if not document:
        return None
    name = document.get("model") if isinstance(document, Mapping) else None
    name = str(name or run.get("model") or "configuration")[:120]
    return configuration.ensure(project=project, name=name, document=document, user=user)


def _trace(project: Project, user, lines: str, filename: str) -> Trace:
    parsed = parse_trace(lines.encode(), "trace.jsonl.zst")
    name = str(parsed.header.get("name") or filename)[:200]
    return trace.ensure(project=project, user=user, name=name, source=parsed)


def _known(model, project: Project, **by: Any):
    return model.objects.filter(project=project, **by).first() if all(by.values()) else None


def _created(project: Project, user, about: Mapping[str, Any], filename: str, **parts: Any) -> Run:
    started, ended = _times(about)
    cache_state, simulated = about.get("cache_state"), about.get("simulated")
    policies, replicate = about.get("policies"), about.get("replicate")
    state = about.get("state")
    whole = isinstance(replicate, int) and not isinstance(replicate, bool)
    run = Run.objects.create(
        project=project, number=next_number(project, "run"), kind=RunKind.EXTERNAL,
        created_by=user, owner=user, title=filename[:200],
        state=state if state in _STATES else RunState.COMPLETED,
        cache_state=cache_state if cache_state in CacheState.values else None,
        simulated=simulated if isinstance(simulated, bool) else None,
        policies=policies if isinstance(policies, dict) else {},
        replicate=replicate if whole and 0 <= replicate <= MOST_COUNTED else None,
        source=str(about.get("source") or "")[:60],
        started_at=started, ended_at=ended, **parts,
    )  # fmt: skip
    audit.record(
        project=project, actor=user, action="run.upload", target=run,
        after={"filename": filename[:200], "source": run.source},
    )  # fmt: skip
    return run


def _times(about: Mapping[str, Any]) -> tuple[datetime | None, datetime | None]:
    """When it began and ended, as far as it says; a time it misspells is not one."""
    clock, end = about.get("clock"), about.get("end")
    said = clock.get("started_at") if isinstance(clock, Mapping) else None
    try:
        started = datetime.fromisoformat(str(said or about.get("created_at"))).astimezone(UTC)
    except (ValueError, OverflowError):
        return None, None
    lasted = end.get("ended_s") if isinstance(end, Mapping) else None
    if not is_number(lasted):
        return started, None
    try:
        return started, started + timedelta(seconds=lasted)
    except OverflowError:
        return started, None
