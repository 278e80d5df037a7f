"""Whether one class is left behind while the average looks fine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from records.analysis.figures import Absent, Estimate, later


def fairness(attainments: Mapping[str, Estimate] | None) -> dict[str, Any]:
    """Least and greatest SLO attainment of a class, and Jain's index over them.

    `attainments` is slo_attainment by class, None inside a single class. Absent
    when a class has none. The gate looks at the minimum: Jain's index of .95,
    .92 and .40 is .90 (METHODS 7).
    """
    reason = _why_absent(attainments)
    values = [e.value for e in (attainments or {}).values() if e.value is not None]
    gone = Absent(reason or "")
    index = None if reason else jain(values)
    return {
        "min_class_attainment": gone if reason else min(values),
        "max_class_attainment": gone if reason else max(values),
        "jain": gone if reason else (Absent("all attainments are 0") if index is None else index),
        "starved": later(),
        "longest_wait_without_service_s": later(),
        "slowdown_by_size": later(),
    }


def jain(values: list[float]) -> float | None:
    """Jain's index (sum x)^2 / (n sum x^2): 1 is even; None for no or only zero values."""
    squares = sum(x * x for x in values)
    if not values or squares == 0:
        return None
    return sum(values) ** 2 / (len(values) * squares)


def _why_absent(attainments: Mapping[str, Estimate] | None) -> str | None:
    if attainments is None:
        return "compares classes; this is one class"
    if not attainments:
        return "no request was attempted"
    for name, estimate in attainments.items():
        if estimate.value is None:
            return f"class {name}: {estimate.reason}"
    return None
