"""Candidate runs against baseline runs: `impakt.comparison/1`.

What was asked of both sides, how far their figures lie apart, which gates that
passes, and the verdict that follows. docs/methods/comparison.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from records.analysis.comparability import comparability, configuration_diff, differing
from records.analysis.differences import differences
from records.analysis.gates import GATES
from records.analysis.gates.base import OPEN, PASSED, GateResult, Sides, Thresholds
from records.analysis.gates.completeness import NOT_JUDGED
from records.analysis.gates.verdict import verdict
from records.analysis.validity import SIMULATED
from records.analysis.version import ANALYSIS_VERSION
from records.errors import BadInput
from records.evidence.canonical import normalise

SCHEMA = "impakt.comparison/1"
Record = Mapping[str, Any]


def compare(
    *,
    candidates: Sequence[Record],
    baselines: Sequence[Record],
    intervention: str | None = None,
    thresholds: Thresholds | None = None,
) -> dict[str, Any]:
    """The comparison of measurement records, replicates of one configuration on each side.

    `intervention` is what was changed on purpose; prompts may differ only when
    it is the prompt, context or evidence selection. When a required item
    differs the verdict is refused: `refused` true, verdict not_enough_evidence,
    `rerun` what would make the sides comparable. BadInput when a side is empty
    or one run's evidence stands twice.
    """
    _check(candidates, baselines)
    items = comparability(candidates, baselines, intervention)
    found = differences(candidates, baselines)
    sides = Sides(candidates, baselines, items, found, thresholds or Thresholds())
    refused = differing(items)
    gates = [_held(g, bool(refused)) for gate in GATES.values() for g in gate(sides)]
    changed = configuration_diff(candidates, baselines)
    document: dict[str, Any] = normalise(
        {
            "schema": SCHEMA,
            "analysis_version": ANALYSIS_VERSION,
            "intervention": intervention,
            "baselines": [_run(r) for r in baselines],
            "candidates": [_run(r) for r in candidates],
            "workload": baselines[0]["run"].get("workload"),
            "comparable": not refused,
            "comparability": items,
            "configuration_diff": changed,
            "changed_fields": len(changed),
            "differences": [d.to_json() for d in found],
            "gates": [g.to_json() for g in gates],
            "verdict": verdict(g.result for g in gates),
            "refused": bool(refused),
            "rerun": [str(i["rerun"]) for i in refused],
            "not_judged": list(NOT_JUDGED),
            "notes": _notes(candidates, baselines, changed),
        }
    )
    return document


def _check(candidates: Sequence[Record], baselines: Sequence[Record]) -> None:
    if not candidates or not baselines:
        raise BadInput("a comparison needs at least one candidate and one baseline run")
    seen: set[str] = set()
    for record in [*candidates, *baselines]:
        place = str(record["run"]["evidence_location"])
        if place in seen:
            name = record["run"].get("run_id")
            raise BadInput(f"run {name} stands twice in the comparison; it is one replicate")
        seen.add(place)


def _held(gate: GateResult, refused: bool) -> GateResult:
    """Of runs that are not comparable no figure passes or fails anything."""
    if not refused or gate.result == OPEN or gate.name in ("comparability", "validity"):
        return gate
    if gate.name == "replicates" and gate.result == PASSED:
        return gate
    return replace(gate, result=OPEN, reason="the runs are not comparable")


def _run(record: Record) -> dict[str, Any]:
    run = record["run"]
    keys = ("run_id", "configuration_fingerprint", "evidence_location", "date", "replicate",
            "simulated", "cache_state")  # fmt: skip
    return {key: run.get(key) for key in keys} | {"valid": record["valid"]}


def _notes(
    candidates: Sequence[Record], baselines: Sequence[Record], changed: Sequence[Any]
) -> list[str]:
    runs = [r["run"] for r in [*candidates, *baselines]]
    out = ["intervals are Welch's over replicates, 95 %; replicates are the unit, not requests"]
    if any(run.get("simulated") for run in runs):
        out.append(SIMULATED)
    if not changed:
        out.append("both sides have the same configuration: this compares a thing with itself")
    if len(changed) > 1:
        out.append(f"{len(changed)} fields differ: the change cannot be pinned on one of them")
    if all(run.get("cache_state") is None for run in runs):
        out.append("the cache state was not declared on either side")
    return out
