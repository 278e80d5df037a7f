"""Arrival traces: bytes in the evidence store, figures and hashes in the registry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.db import transaction

from records.errors import BadTrace
from records.models import Project
from records.models import Trace as TraceRow
from records.services import audit
from records.services.ceilings import busiest_per_s
from records.services.documents import checked, named
from records.services.permissions import require
from records.services.storage import evidence_store
from records.traces import files
from records.traces.describe import describe
from records.traces.points import points_of
from records.traces.reading import Trace, parse_trace, read_trace, trace_bytes


def trace_store(*, project: Project, user, name: str, source: Path | Trace) -> TraceRow:
    """The project's trace with these requests: a new row, or the one it has already.

    `source` is a file (plain, gzip or zstd) or a trace. `description` is what
    `impakt trace describe` says, with `preview` beside it: the points of the
    charts. BadTrace names line and field.
    """
    require(user, project, "launch")
    return ensure(project=project, user=user, name=name, source=source)


def ensure(*, project: Project, user, name: str, source: Path | Trace) -> TraceRow:
    """As `trace_store`, for a caller that has asked for permission itself."""
    trace = source if isinstance(source, Trace) else read_trace(source)
    name = named(name, "name", "trace", BadTrace, longest=200)
    known = TraceRow.objects.filter(project=project, trace_hash=trace.trace_hash).first()
    if known is not None:
        return known
    fields = _fields(trace)
    with transaction.atomic():
        row, made = TraceRow.objects.get_or_create(
            project=project, trace_hash=trace.trace_hash,
            defaults=fields | {"name": name, "created_by": user},
        )  # fmt: skip
        if made:
            audit.record(
                project=project, actor=user, action="trace.store", target=row,
                after={"trace_hash": row.trace_hash, "requests": row.requests},
            )  # fmt: skip
    return row


def _fields(trace: Trace) -> dict[str, Any]:
    data = files.compressed(trace_bytes(trace.header, trace.requests), "trace.jsonl.zst")
    sha256, size = evidence_store().put_bytes(data)
    return {
        "demand_hash": trace.demand_hash,
        "prompt_hash": trace.prompt_hash,
        "requests": len(trace.requests),
        "span_s": trace.span_s,
        "header": checked(trace.header, "trace header", BadTrace),
        "description": checked(
            describe(trace)
            | {
                "preview": points_of(trace),
                "busiest_per_s": busiest_per_s(request.at_s for request in trace.requests),
            },
            "description",
            BadTrace,
        ),
        "file_sha256": sha256,
        "file_bytes": size,
    }


def trace_load(row: TraceRow) -> Trace:
    """The trace itself, its bytes checked against their hash. EvidenceDiffers otherwise."""
    data = evidence_store().read_bytes(row.file_sha256)
    return parse_trace(files.decompressed(data, str(row)), str(row))
