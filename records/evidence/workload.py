"""The workload a run is measured against: classes, objectives, rubric.

`workload.json` in an evidence folder and a `workload.toml` a user writes have
the same shape; this module checks it and adds the hashes that comparisons use.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from records.errors import BadInput, BadWorkload
from records.evidence.canonical import sha256_of

SCHEMA = "impakt.workload/1"
TARGETS = ("ttft_s", "tpot_s", "itl_s", "e2e_s")
_CLASS_KEYS = {"objective", "timeout_s", "priority", "share", "title"}
_OBJECTIVE_KEYS = {*TARGETS, "attainment_target"}
_TOP_KEYS = {
    "schema", "name", "title", "labels", "classes", "rubric", "case_set",
    "evidence_packet", "recovery", "prices", "hashes",
}  # fmt: skip


def default_workload() -> dict[str, Any]:
    """The workload of a run that names none: no objective, no rubric, any class."""
    return with_hashes(
        {
            "schema": SCHEMA,
            "name": None,
            "title": None,
            "labels": [],
            "classes": {},
            "rubric": None,
            "case_set": None,
            "evidence_packet": None,
            "recovery": None,
            "prices": None,
        }
    )


def read_workload(path: Path) -> dict[str, Any]:
    """The checked workload in a .toml or .json file; BadWorkload names the field."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadWorkload(str(path), None, f"a readable UTF-8 file ({error})") from error
    try:
        data = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadWorkload(str(path), None, f"valid {path.suffix[1:].upper()} ({error})") from error
    return check_workload(data, str(path))


def check_workload(data: Any, where: str) -> dict[str, Any]:
    """A workload with every key present and its hashes; BadWorkload otherwise."""
    if not isinstance(data, Mapping):
        raise BadWorkload(where, None, "an object with classes and a rubric")
    unknown = sorted(set(data) - _TOP_KEYS)
    if unknown:
        raise BadWorkload(where, unknown[0], f"one of {', '.join(sorted(_TOP_KEYS))}")
    work = default_workload() | dict(data)
    work["schema"] = SCHEMA
    if not isinstance(work["classes"], Mapping):
        raise BadWorkload(where, "classes", "a table of service classes")
    for name, spec in work["classes"].items():
        _check_class(spec, f"classes.{name}", where)
    _check_rubric(work["rubric"], where)
    try:
        return with_hashes(work)
    except BadInput as error:  # NaN, a date of TOML, too deep: no JSON value
        raise BadWorkload(where, None, str(error)) from None


def _check_class(spec: Any, field: str, where: str) -> None:
    if not isinstance(spec, Mapping):
        raise BadWorkload(where, field, "a table")
    for key in spec:
        if key not in _CLASS_KEYS:
            raise BadWorkload(where, f"{field}.{key}", f"one of {', '.join(sorted(_CLASS_KEYS))}")
    objective = spec.get("objective") or {}
    if not isinstance(objective, Mapping):
        raise BadWorkload(where, f"{field}.objective", "a table of targets")
    for key, value in objective.items():
        if key not in _OBJECTIVE_KEYS:
            wanted = ", ".join(sorted(_OBJECTIVE_KEYS))
            raise BadWorkload(where, f"{field}.objective.{key}", f"one of {wanted}")
        _check_positive(value, f"{field}.objective.{key}", where)
    if (objective.get("attainment_target") or 0) > 1:
        raise BadWorkload(where, f"{field}.objective.attainment_target", "a fraction up to 1")
    _check_positive(spec.get("timeout_s"), f"{field}.timeout_s", where)


def _check_positive(value: Any, field: str, where: str) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
        raise BadWorkload(where, field, f"a number above 0, not {value!r}")


def _check_rubric(rubric: Any, where: str) -> None:
    if rubric is None:
        return
    if not isinstance(rubric, Mapping) or not isinstance(rubric.get("criteria"), list):
        raise BadWorkload(where, "rubric.criteria", "a list of criteria")
    seen: set[str] = set()
    for i, criterion in enumerate(rubric["criteria"]):
        field = f"rubric.criteria[{i}]"
        for key in ("id", "check"):
            if not isinstance(criterion, Mapping) or not isinstance(criterion.get(key), str):
                raise BadWorkload(where, f"{field}.{key}", "text")
        if criterion["id"] in seen:
            raise BadWorkload(where, f"{field}.id", f"a new id, {criterion['id']!r} stands twice")
        seen.add(criterion["id"])


def with_hashes(work: Mapping[str, Any]) -> dict[str, Any]:
    """The workload with `hashes` of itself and of its rubric, case set and evidence packet."""
    body = {k: v for k, v in work.items() if k != "hashes"}
    parts = ("rubric", "case_set", "evidence_packet")
    hashes: dict[str, str | None] = {"workload": sha256_of(body)}
    hashes |= {p: None if body.get(p) is None else sha256_of(body[p]) for p in parts}
    return {**body, "hashes": hashes}
