"""Does no class wait longer in its tail?"""

from __future__ import annotations

from records.analysis.gates.base import OPEN, GateResult, Sides, at_most, open_reason

NAME = "tail_latency"


def gate(sides: Sides) -> list[GateResult]:
    """E2E p95 of every class: its relative change must stay within the tolerance.

    A result per class, since a faster class must not pay for a slower one.
    """
    limit = sides.thresholds.tail_latency_tolerance
    if not sides.classes:
        return [
            GateResult(
                name=NAME, title="Tail latency", threshold=_text(limit), limit=limit,
                result=OPEN, reason="no class has requests in the window",
            )
        ]  # fmt: skip
    return [_class(sides, name, limit) for name in sides.classes]


def _class(sides: Sides, name: str, limit: float) -> GateResult:
    found = sides.difference("e2e_p95", name)
    result = at_most(found.relative_low, found.relative_high, limit)
    reason = open_reason(found.relative_low, found.reason, f"{100 * limit:+g} %")
    return GateResult(
        name=NAME,
        title=f"Tail latency, {name}",
        threshold=_text(limit),
        service_class=name,
        limit=limit,
        baseline=found.baseline,
        candidate=found.candidate,
        unit=found.unit,
        difference=found.relative,
        low=found.relative_low,
        high=found.relative_high,
        difference_unit="relative",
        result=result,
        reason=reason if result == OPEN else None,
    )


def _text(limit: float) -> str:
    return f"E2E p95 ≤ {100 * limit:+g} %, the upper limit"
