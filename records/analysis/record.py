"""Assembles `impakt.record/1` from an evidence folder.

The same evidence and judgments give the same bytes: nothing here reads a
clock, a path or an order that could differ. docs/methods/record.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from records.analysis.declared import (
    hashes_of,
    later_blocks,
    location_of,
    run_block,
    window_block,
    window_of,
)
from records.analysis.figures import Absent, Estimate, to_json
from records.analysis.frames import Frames, build_frames
from records.analysis.metrics.acceptance import accepted_workflows, workflow_table
from records.analysis.metrics.arrivals import arrivals
from records.analysis.metrics.calibration import OF_THE_RUN
from records.analysis.metrics.concurrency import concurrency_observed
from records.analysis.metrics.counts import counts
from records.analysis.metrics.fairness import fairness
from records.analysis.metrics.generator import found_slot, generator
from records.analysis.metrics.goodput import goodput
from records.analysis.metrics.latency import latency
from records.analysis.metrics.lengths import cache, lengths
from records.analysis.metrics.phases import phases
from records.analysis.metrics.slo import objective_met, objectives
from records.analysis.metrics.stability import stability
from records.analysis.metrics.tools import tools
from records.analysis.stream_notes import stream_notes
from records.analysis.validity import invalid_reasons, notes
from records.analysis.version import ANALYSIS_VERSION, RECORD_SCHEMA
from records.evidence.canonical import canonical_bytes, normalise
from records.evidence.folder import EvidenceFolder
from records.evidence.judgments import Judgments, load_judgments

READ_FILES = (
    "run.json", "workload.json", "requests.parquet", "attempts.parquet", "chunks.parquet",
    "tools.parquet",
)  # fmt: skip
_TABLES = ("requests", "attempts", "chunks", "tools")


@dataclass(frozen=True)
class Evidence:
    """What the figures of one run are computed from."""

    run: Mapping[str, Any]
    workload: Mapping[str, Any]
    frames: Frames
    judgments: Judgments
    workflows: pd.DataFrame


def analyze_folder(path: Path | str, save: bool = False) -> dict[str, Any]:
    """The measurement record of an evidence folder; `save` also adds it to the folder.

    BadEvidence when the folder is not one or its tables contradict each other.
    """
    folder = EvidenceFolder.open(path)
    record = record_of_folder(folder)
    if save:
        folder.add_record(record_bytes(record))
    return record


def record_bytes(record: Mapping[str, Any]) -> bytes:
    """The one byte form of a record: canonical JSON."""
    return canonical_bytes(dict(record))


def record_of_folder(folder: EvidenceFolder, evidence: Evidence | None = None) -> dict[str, Any]:
    """The measurement record of an open evidence folder; `evidence` when already read from it."""
    evidence = evidence or read_evidence(folder)
    files = [{"name": f.name, "sha256": f.sha256, "bytes": f.bytes} for f in folder.files()]
    inputs = [f for f in files if f["name"] in READ_FILES] + evidence.judgments.sets
    return assemble(evidence, inputs, location_of(files))


def read_evidence(folder: EvidenceFolder) -> Evidence:
    """The frames, verdicts and declarations of an open evidence folder."""
    workload = folder.workload
    judgments = load_judgments(
        folder.judgment_sets(), workload.get("rubric"), hashes_of(workload)["rubric"]
    )
    tables = {name: folder.table(name) for name in _TABLES}
    return evidence_of(folder.run, workload, tables, judgments)


def evidence_of(
    run: Mapping[str, Any],
    workload: Mapping[str, Any],
    tables: Mapping[str, pd.DataFrame],
    judgments: Judgments,
) -> Evidence:
    """The same from its parts, for evidence that is not on disk."""
    frames = build_frames(tables, window_of(run, tables))
    requests = frames.requests
    limit = (run.get("policies") or {}).get("max_concurrency")
    requests["found_slot"] = found_slot(requests, limit)
    requests["met"] = objective_met(requests, frames.gaps, objectives(workload))
    return Evidence(run, workload, frames, judgments, workflow_table(requests, judgments))


def assemble(evidence: Evidence, inputs: list[dict[str, Any]], location: str) -> dict[str, Any]:
    """The record as plain JSON, every key of the contract present."""
    run, frames, targets = evidence.run, evidence.frames, objectives(evidence.workload)
    classes = {name: _figures(evidence, name) for name in frames.classes}
    attainments = {name: block["goodput"]["slo_attainment"] for name, block in classes.items()}
    total = _figures(evidence, None, attainments)
    reasons = invalid_reasons(frames, run, total["generator"], total["arrivals"])
    record = {
        "schema": RECORD_SCHEMA,
        "analysis_version": ANALYSIS_VERSION,
        "inputs": sorted(inputs, key=lambda f: str(f["name"])),
        "valid": not reasons,
        "invalid_reasons": reasons,
        "notes": notes(frames, run, targets, total["concurrency"]["observed"])
        + stream_notes(frames, total["latency"]),
        "run": run_block(run, evidence.workload, location),
        "window": window_block(frames.window),
        **total,
        "classes": classes,
    }
    plain: dict[str, Any] = normalise(to_json(record))
    return plain


def _figures(
    evidence: Evidence, name: str | None, attainments: Mapping[str, Estimate] | None = None
) -> dict[str, Any]:
    """Every figure of the run (`name` None) or of one class of it."""
    frames, workflows = evidence.frames, evidence.workflows
    if name is not None:
        frames, workflows = frames.of_class(name), workflows[workflows["class"] == name]
    accepted = accepted_workflows(workflows, evidence.judgments)
    declared = (evidence.run.get("policies") or {}).get("max_concurrency")
    of_generator = generator(frames, evidence.run)
    if name is not None:
        # A page of figures about the host is not repeated for every class.
        of_generator["calibration"] = Absent(OF_THE_RUN)
    return {
        "arrivals": arrivals(frames),
        "concurrency": {
            "declared": Absent("no concurrency limit") if declared is None else declared,
            "observed": concurrency_observed(frames),
        },
        "counts": counts(frames, accepted),
        "latency": latency(frames),
        "goodput": goodput(frames, accepted),
        "phases": phases(frames),
        "stability": stability(frames),
        "fairness": fairness(attainments),
        "cache": cache(frames, evidence.run.get("cache_state")),
        "tools": tools(frames),
        "generator": of_generator,
        "lengths": lengths(frames),
        **later_blocks(),
    }
