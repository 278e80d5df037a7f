"""Does more accepted work come out of the same arrivals?"""

from __future__ import annotations

from records.analysis.gates.base import OPEN, GateResult, Sides, improvement, open_reason

NAME = "accepted_goodput_improves"


def gate(sides: Sides) -> list[GateResult]:
    """Accepted workflows per second, all classes: the relative change must clear the margin."""
    margin = sides.thresholds.accepted_goodput_margin
    found = sides.difference("accepted_per_s")
    result = improvement(found.relative_low, found.relative_high, margin)
    limit = f"{100 * margin:+g} %"
    return [
        GateResult(
            name=NAME,
            title="Accepted goodput improves",
            threshold=f"≥ {limit}, the whole interval",
            limit=margin,
            baseline=found.baseline,
            candidate=found.candidate,
            unit=found.unit,
            difference=found.relative,
            low=found.relative_low,
            high=found.relative_high,
            difference_unit="relative",
            result=result,
            reason=open_reason(found.relative_low, found.reason, limit) if result == OPEN else None,
        )
    ]
