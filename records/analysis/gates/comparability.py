"""Was the same asked of both sides?"""

from __future__ import annotations

from records.analysis.comparability import differing
from records.analysis.gates.base import OPEN, PASSED, GateResult, Sides

NAME = "comparability"


def gate(sides: Sides) -> list[GateResult]:
    """Every required item must be the same on both sides, validity apart.

    Runs that differ prove nothing either way, so this gate never fails: it is
    undecided, and the comparison refuses a verdict.
    """
    found = [i for i in differing(sides.items) if i["item"] != "valid"]
    required = [i for i in sides.items if i["required"] and i["item"] != "valid"]
    names = ", ".join(str(i["item"]) for i in found)
    return [
        GateResult(
            name=NAME,
            title="Comparability",
            threshold="all required items equal",
            baseline=len(sides.baselines),
            candidate=len(sides.candidates),
            unit="runs",
            difference=len(found),
            difference_unit=f"of {len(required)} items differ",
            result=OPEN if found else PASSED,
            reason=f"differs or unknown: {names}" if found else None,
        )
    ]
