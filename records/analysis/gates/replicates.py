"""Were there enough runs to tell a difference from chance?"""

from __future__ import annotations

from records.analysis.gates.base import OPEN, PASSED, GateResult, Sides

NAME = "replicates"


def gate(sides: Sides) -> list[GateResult]:
    """Each side needs a number of replicates; more can always be run, so it never fails."""
    need = sides.thresholds.replicates
    mine, theirs = len(sides.candidates), len(sides.baselines)
    short = min(mine, theirs) < need
    missing = max(0, need - mine) + max(0, need - theirs)
    return [
        GateResult(
            name=NAME,
            title="Replicates",
            threshold=f"≥ {need} on each side",
            limit=need,
            baseline=theirs,
            candidate=mine,
            unit="runs",
            result=OPEN if short else PASSED,
            reason=f"{missing} more runs are needed" if short else None,
        )
    ]
