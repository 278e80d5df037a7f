"""Whether the records in an evidence folder are what its evidence gives."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from records.analysis.record import record_bytes, record_of_folder
from records.analysis.version import ANALYSIS_VERSION
from records.errors import BadEvidence
from records.evidence.folder import EvidenceFolder


@dataclass(frozen=True)
class RecordCheck:
    """One record held against its evidence; `other_version` could not be recomputed here."""

    name: str
    result: Literal["same", "differs", "other_version", "unreadable"]
    detail: str


class _AsOf(EvidenceFolder):
    """The folder with only the judgment sets that a record names as its inputs."""

    def __init__(self, path: Path, hashes: set[str]) -> None:
        super().__init__(path)
        self._hashes = hashes

    def judgment_sets(self) -> list[Path]:
        return [p for p in super().judgment_sets() if p.stem in self._hashes]


def check_records(path: Path) -> list[RecordCheck]:
    """Every record of a sealed folder, recomputed where this analysis version matches.

    BadEvidence when the folder is not one.
    """
    return [_check(path, record) for record in EvidenceFolder.open(path).records()]


def _check(folder: Path, path: Path) -> RecordCheck:
    name = f"records/{path.name}"
    try:
        stored = path.read_bytes()
        record = json.loads(stored)
        version = record["analysis_version"]
        hashes = {str(i["sha256"]) for i in record["inputs"]}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return RecordCheck(name, "unreadable", "not a measurement record")
    if version != ANALYSIS_VERSION:
        text = f"computed by analysis version {version}, this is version {ANALYSIS_VERSION}"
        return RecordCheck(name, "other_version", text)
    try:
        again = record_of_folder(_AsOf(folder, hashes))
    except BadEvidence as error:
        return RecordCheck(name, "differs", f"cannot be computed from this evidence: {error}")
    if record_bytes(again) == stored:
        return RecordCheck(name, "same", "recomputed, the same bytes")
    return RecordCheck(name, "differs", f"recomputed figures differ at {_first(record, again)}")


def _first(a: Any, b: Any, path: str = "$") -> str:
    """The path of the first value in which two records differ."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted({*a, *b}):
            if a.get(key) != b.get(key):
                return _first(a.get(key), b.get(key), f"{path}.{key}")
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            if x != y:
                return _first(x, y, f"{path}[{i}]")
    return path
