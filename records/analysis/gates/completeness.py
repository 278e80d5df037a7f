"""Is everything judged that a decision asks for?"""

from __future__ import annotations

from records.analysis.gates.base import OPEN, PASSED, GateResult, Sides

NAME = "completeness"
# What SPEC's decision rule also asks and no gate answers yet. A later gate takes
# its line away; until none is left, no verdict can be `adopt`.
NOT_JUDGED = (
    "representativeness of the trace",
    "severe failures",
    "authority boundary",
    "recovery after bursts",
    "queue stability",
    "starvation",
    "cost",
)


def gate(sides: Sides) -> list[GateResult]:
    """Undecided while something stands unjudged: silence is not a pass."""
    return [
        GateResult(
            name=NAME,
            title="Everything a decision asks is judged",
            threshold="nothing left out",
            limit=0,
            baseline=len(NOT_JUDGED),
            candidate=len(NOT_JUDGED),
            unit="not judged",
            result=OPEN if NOT_JUDGED else PASSED,
            reason=f"not judged yet: {', '.join(NOT_JUDGED)}" if NOT_JUDGED else None,
        )
    ]
