"""Is no class left behind?"""

from __future__ import annotations

from records.analysis.differences import LOWEST_CLASS, difference
from records.analysis.gates.base import OPEN, GateResult, Sides, at_least, open_reason

NAME = "lowest_class_attainment"


def gate(sides: Sides) -> list[GateResult]:
    """The least SLO attainment of a class in each run: its change must stay above the tolerance.

    The minimum, not Jain's index, which looks healthy while one class fails.
    """
    limit = sides.thresholds.lowest_class_tolerance
    found = difference(LOWEST_CLASS, None, sides.candidates, sides.baselines)
    result = at_least(found.low, found.high, limit)
    text = f"{100 * limit:+g} points"
    return [
        GateResult(
            name=NAME,
            title="Lowest class attainment",
            threshold=f"≥ {text}, the lower limit",
            limit=limit,
            baseline=found.baseline,
            candidate=found.candidate,
            unit=found.unit,
            difference=found.difference,
            low=found.low,
            high=found.high,
            difference_unit="fraction",
            result=result,
            reason=open_reason(found.low, found.reason, text) if result == OPEN else None,
        )
    ]
