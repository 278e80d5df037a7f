"""Judgment sets: what was said about completions, and the verdicts they merge to.

A set is `judgments/<sha256>.jsonl`, never changed: a header line, then a line
per judged workflow. A correction is a further set.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from records.errors import BadEvidence
from records.evidence.canonical import canonical_bytes, is_number

SCHEMA = "impakt.judgments/1"
# A later method in this list knows more about a completion than an earlier one.
METHODS = ("automatic", "model", "uploaded", "human")


@dataclass
class Verdict:
    """What all sets together say about one workflow; None where none of them says."""

    criteria: dict[str, bool] = field(default_factory=dict)
    rubric_passed: bool | None = None
    severe_failure: bool | None = None
    authority_violation: bool | None = None
    review_minutes: float | None = None


@dataclass(frozen=True)
class Judgments:
    """Merged verdicts by workflow id, and the sets they came from, least telling first.

    `has_rubric` is false when the workload has nothing to judge by; `reason`
    says why there is no verdict at all.
    """

    verdicts: dict[str, Verdict]
    sets: list[dict[str, Any]]
    has_rubric: bool = True
    reason: str | None = None


def judgment_bytes(header: Mapping[str, Any], lines: Iterable[Mapping[str, Any]]) -> bytes:
    """The bytes of a set, lines in the order of their workflow ids, so that they are one hash."""
    ordered = sorted(lines, key=lambda line: str(line["workflow_id"]))
    parts = [canonical_bytes({"schema": SCHEMA, **header})]
    return b"\n".join([*parts, *(canonical_bytes(line) for line in ordered)]) + b"\n"


def load_judgments(
    paths: Iterable[Path], rubric: Mapping[str, Any] | None, rubric_hash: str | None
) -> Judgments:
    """The verdicts of the sets made under this rubric.

    For each workflow a more telling method (METHODS), then a later created_at,
    overrides what it speaks of, criterion by criterion. The rubric is passed
    when all its criteria are; it stays None while one of them has no verdict.
    """
    if rubric is None:
        return Judgments({}, [], has_rubric=False, reason="the workload has no rubric")
    found = [_read(path) for path in paths]
    fitting = sorted(
        (s for s in found if s[0].get("rubric_hash") == rubric_hash),
        key=lambda s: _order(s[0], s[2]),
    )
    if not fitting:
        other = f" ({len(found)} made under another rubric)" if found else ""
        return Judgments({}, [], reason=f"no judgment set for this rubric{other}")
    verdicts: dict[str, Verdict] = {}
    for _, lines, _ in fitting:
        for line in lines:
            _merge(verdicts.setdefault(str(line["workflow_id"]), Verdict()), line)
    ids = [c["id"] for c in rubric["criteria"]]
    for verdict in verdicts.values():
        _conclude(verdict, ids)
    return Judgments(verdicts, [entry for _, _, entry in fitting])


def _order(header: Mapping[str, Any], entry: Mapping[str, Any]) -> tuple[int, str, str]:
    method = header.get("method")
    rank = METHODS.index(method) if method in METHODS else -1
    return rank, str(header.get("created_at")), str(entry["name"])


def _read(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]]:
    data = path.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    if path.stem != digest:
        raise BadEvidence(str(path), None, "bytes that have the SHA-256 of its name")
    try:
        # At \n only: other line separators may stand in a text as they are.
        header, *lines = [json.loads(line) for line in data.decode().split("\n") if line]
    except (ValueError, RecursionError) as error:
        raise BadEvidence(str(path), None, f"a header and JSON lines ({error})") from error
    if not isinstance(header, dict) or header.get("schema") != SCHEMA:
        raise BadEvidence(f"{path}:1", "schema", SCHEMA)
    for number, line in enumerate(lines, 2):
        _check_line(line, f"{path}:{number}")
    name = f"judgments/{path.name}"
    return header, lines, {"name": name, "sha256": digest, "bytes": len(data)}


def _check_line(line: Any, where: str) -> None:
    if not isinstance(line, dict) or "workflow_id" not in line:
        raise BadEvidence(where, "workflow_id", "a judged workflow")
    criteria = line.get("criteria") or {}
    if not isinstance(criteria, dict):
        raise BadEvidence(where, "criteria", "an object of criteria")
    for name, said in criteria.items():
        if not isinstance(said, dict) or not isinstance(said.get("passed"), bool):
            raise BadEvidence(where, f"criteria.{name}.passed", "true or false")
    for name in ("rubric_passed", "severe_failure", "authority_violation"):
        if not isinstance(line.get(name), bool | None):
            raise BadEvidence(where, name, "true, false or null")
    minutes = line.get("review_minutes")
    if minutes is not None and not (is_number(minutes) and minutes >= 0):
        raise BadEvidence(where, "review_minutes", "a number from 0, or null")


def _merge(verdict: Verdict, line: Mapping[str, Any]) -> None:
    criteria = line.get("criteria") or {}
    verdict.criteria |= {k: bool(v["passed"]) for k, v in criteria.items()}
    if not criteria and line.get("rubric_passed") is not None:
        verdict.rubric_passed = bool(line["rubric_passed"])
    for name in ("severe_failure", "authority_violation"):
        if line.get(name) is not None:
            setattr(verdict, name, bool(line[name]))
    if line.get("review_minutes") is not None:
        verdict.review_minutes = (verdict.review_minutes or 0.0) + float(line["review_minutes"])


def _conclude(verdict: Verdict, ids: list[str]) -> None:
    if all(i in verdict.criteria for i in ids):
        verdict.rubric_passed = all(verdict.criteria[i] for i in ids)
