"""Judgment sets in the registry: the files that a folder holds, and their rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.db import transaction

from records.errors import BadEvidence
from records.evidence.folder import EvidenceFolder
from records.evidence.judgments import SCHEMA
from records.models import Judgment, JudgmentSet, Run
from records.models.choices import JudgmentMethod
from records.services import audit
from records.services.evidence import evidence_add

_BATCH = 2000


def judgments_ingest(*, run: Run, folder: Path) -> list[JudgmentSet]:
    """Takes in every judgment set of an evidence folder; known ones change nothing.

    BadEvidence names the line and field that is not one of a judgment set.
    """
    return [_ingest(run, path) for path in EvidenceFolder.open(folder).judgment_sets()]


def _ingest(run: Run, path: Path) -> JudgmentSet:
    data = path.read_bytes()
    name = f"judgments/{path.name}"
    known = JudgmentSet.objects.filter(run=run, evidence__name=name).first()
    if known is not None:
        return known
    header, rows = _parsed(data, path.name)
    with transaction.atomic():
        made = JudgmentSet.objects.create(
            project=run.project, run=run, evidence=evidence_add(run=run, name=name, data=data),
            method=header["method"], author=str(header.get("author") or "")[:120],
            rubric_hash=str(header.get("rubric_hash") or "")[:64],
        )  # fmt: skip
        for row in rows:
            row.judgment_set = made
        Judgment.objects.bulk_create(rows, batch_size=_BATCH)
        audit.record(
            project=run.project, actor_name=made.author or "worker", action="judgments.ingest",
            target=made, after={"method": made.method, "judgments": len(rows)},
        )  # fmt: skip
    return made


def _parsed(data: bytes, where: str) -> tuple[dict[str, Any], list[Judgment]]:
    try:
        header, *lines = [json.loads(line) for line in data.decode().splitlines() if line]
    except ValueError as error:
        raise BadEvidence(where, None, f"a header and JSON lines ({error})") from error
    if not isinstance(header, dict) or header.get("schema") != SCHEMA:
        raise BadEvidence(f"{where}:1", "schema", SCHEMA)
    if header.get("method") not in JudgmentMethod.values:
        wanted = f"one of {', '.join(JudgmentMethod.values)}"
        raise BadEvidence(f"{where}:1", "method", wanted)
    judged = [_judgment(line, f"{where}:{n}") for n, line in enumerate(lines, 2)]
    return header, [row for row in judged if row is not None]


def _judgment(line: Any, where: str) -> Judgment | None:
    """The row of a line; None when it leaves the rubric as a whole open."""
    if not isinstance(line, dict) or not isinstance(line.get("workflow_id"), str):
        raise BadEvidence(where, "workflow_id", "a judged workflow")
    passed = line.get("rubric_passed")
    if passed is None:
        return None
    for key in ("rubric_passed", "severe_failure", "authority_violation"):
        if not isinstance(line.get(key, False), bool | None):
            raise BadEvidence(where, key, "true or false")
    return Judgment(
        workflow_id=line["workflow_id"][:200],
        request_id=str(line.get("request_id") or line["workflow_id"])[:200],
        rubric_passed=passed,
        criteria=line.get("criteria") or {},
        severe_failure=bool(line.get("severe_failure")),
        authority_violation=bool(line.get("authority_violation")),
        review_minutes=line.get("review_minutes"),
    )
