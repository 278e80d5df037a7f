"""Verdicts from a CSV file, as an uploaded judgment set."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from records.acceptance.judging import ended_at, last_requests, rubric_hash
from records.errors import BadInput
from records.evidence.folder import EvidenceFolder
from records.evidence.judgments import judgment_bytes

COLUMNS = (
    "workflow_id", "criterion", "passed", "severe_failure", "authority_violation",
    "review_minutes",
)  # fmt: skip
_TRUE, _FALSE = {"true", "1", "yes"}, {"false", "0", "no"}


def add_verdicts(folder: EvidenceFolder, csv_path: Path, workload: Mapping[str, Any]) -> Path:
    """Adds the verdicts of a CSV file under the workload's rubric; the path of the set.

    Columns: COLUMNS, a row per workflow and criterion; severe_failure,
    authority_violation and review_minutes may be empty and count once for the
    workflow (any true; minutes summed). The set covers `all` when each workflow
    whose last request completed has its row. BadInput names file, line, column.
    """
    rubric = workload.get("rubric")
    if rubric is None:
        raise BadInput(f"{csv_path}: the workload has no rubric to judge by")
    known = last_requests(folder.table("requests"))
    ids = {workflow: request for request, workflow in known.items()}
    rows = read_verdicts(csv_path, set(ids), [c["id"] for c in rubric["criteria"]])
    lines = [_line(name, ids[name], rows[name], rubric) for name in sorted(rows)]
    header = {
        "method": "uploaded",
        "author": csv_path.name,
        "rubric_hash": rubric_hash(workload),
        "created_at": ended_at(folder.run),
        "covers": "all" if set(rows) == set(ids) else "sample",
    }
    return folder.add_judgments(judgment_bytes(header, lines))


def read_verdicts(
    path: Path, workflows: Iterable[str], criteria: Iterable[str]
) -> dict[str, list[dict[str, Any]]]:
    """The checked rows of a verdict file by workflow."""
    known, named = set(workflows), list(criteria)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: a readable UTF-8 CSV file ({error})") from error
    reader = csv.DictReader(io.StringIO(text), strict=True)
    out: dict[str, list[dict[str, Any]]] = {}
    try:
        _check_header(path, reader.fieldnames)
        for raw in reader:
            row = _row(raw, f"{path}: line {reader.line_num}", known, named)
            mine = out.setdefault(row["workflow_id"], [])
            if any(r["criterion"] == row["criterion"] for r in mine):
                raise BadInput(
                    f"{path}: line {reader.line_num}: criterion: once per workflow,"
                    f" {row['criterion']} stands twice for {row['workflow_id']}"
                )
            mine.append(row)
    except csv.Error as error:
        raise BadInput(f"{path}: line {reader.line_num}: a CSV row ({error})") from error
    if not out:
        raise BadInput(f"{path}: at least one verdict")
    return out


def _check_header(path: Path, names: Iterable[str] | None) -> None:
    have = list(names or [])
    for name in COLUMNS[:3]:
        if name not in have:
            raise BadInput(f"{path}: line 1: {name}: a column; found {', '.join(have) or 'none'}")
    for name in have:
        if name not in COLUMNS:
            raise BadInput(f"{path}: line 1: {name}: one of {', '.join(COLUMNS)}")


def _row(
    raw: Mapping[str | None, Any], where: str, workflows: set[str], criteria: list[str]
) -> dict[str, Any]:
    if None in raw:
        raise BadInput(f"{where}: more fields than the header has columns")
    text = {str(k): (v or "").strip() for k, v in raw.items()}
    if text["workflow_id"] not in workflows:
        raise BadInput(
            f"{where}: workflow_id: a workflow whose last request completed,"
            f" not {text['workflow_id']!r}"
        )
    if text["criterion"] not in criteria:
        wanted = ", ".join(criteria)
        raise BadInput(f"{where}: criterion: one of {wanted}, not {text['criterion']!r}")
    passed = _truth(text["passed"], f"{where}: passed")
    if passed is None:
        raise BadInput(f"{where}: passed: true or false, not empty")
    return {
        "workflow_id": text["workflow_id"],
        "criterion": text["criterion"],
        "passed": passed,
        "severe_failure": _truth(text.get("severe_failure", ""), f"{where}: severe_failure"),
        "authority_violation": _truth(
            text.get("authority_violation", ""), f"{where}: authority_violation"
        ),
        "review_minutes": _minutes(text.get("review_minutes", ""), f"{where}: review_minutes"),
    }


def _truth(text: str, where: str) -> bool | None:
    word = text.lower()
    if not word:
        return None
    if word not in _TRUE | _FALSE:
        raise BadInput(f"{where}: true or false, not {text!r}")
    return word in _TRUE


def _minutes(text: str, where: str) -> float | None:
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise BadInput(f"{where}: minutes of at least 0, not {text!r}")
    return value


def _line(
    workflow_id: str, request_id: str, rows: list[dict[str, Any]], rubric: Mapping[str, Any]
) -> dict[str, Any]:
    said = {r["criterion"]: r["passed"] for r in rows}
    minutes = [r["review_minutes"] for r in rows if r["review_minutes"] is not None]
    whole = all(c["id"] in said for c in rubric["criteria"])
    return {
        "workflow_id": workflow_id,
        "request_id": request_id,
        "rubric_passed": (all(said.values()) if whole else None) if all(said.values()) else False,
        "criteria": {k: {"passed": v, "reason": None} for k, v in said.items()},
        "severe_failure": _any(r["severe_failure"] for r in rows),
        "authority_violation": _any(r["authority_violation"] for r in rows),
        "review_minutes": math.fsum(minutes) if minutes else None,
    }


def _any(values: Iterable[bool | None]) -> bool | None:
    """True when one is, false when one says so and none is true, None when none says."""
    told = [v for v in values if v is not None]
    return any(told) if told else None
