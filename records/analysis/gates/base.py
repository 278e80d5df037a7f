"""What a gate is given and what it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from records.analysis.differences import Difference

Result = Literal["pass", "fail", "not_enough_evidence"]
PASSED: Result = "pass"
FAILED: Result = "fail"
OPEN: Result = "not_enough_evidence"


@dataclass(frozen=True)
class Thresholds:
    """The limits of the gates. Fractions; relative ones are of the baseline."""

    accepted_goodput_margin: float = 0.02
    tail_latency_tolerance: float = 0.10
    lowest_class_tolerance: float = -0.01
    replicates: int = 3


@dataclass(frozen=True)
class Sides:
    """A comparison as its gates see it: records of both sides, and what was found so far."""

    candidates: Sequence[Mapping[str, Any]]
    baselines: Sequence[Mapping[str, Any]]
    items: Sequence[Mapping[str, Any]]
    differences: Sequence[Difference]
    thresholds: Thresholds = Thresholds()

    def difference(self, metric: str, service_class: str | None = None) -> Difference:
        """The difference of one metric for a class, None for the whole run."""
        return next(
            d for d in self.differences if d.metric == metric and d.service_class == service_class
        )

    @property
    def classes(self) -> list[str]:
        """The service classes, in order."""
        return list(dict.fromkeys(d.service_class for d in self.differences if d.service_class))


@dataclass(frozen=True)
class GateResult:
    """One gate, or one class of it: limit, both sides, the interval, the answer and why.

    baseline and candidate are in `unit`; difference, low and high in
    `difference_unit`, where `relative` is a fraction of the baseline. `limit`
    is the threshold in that unit.
    """

    name: str
    title: str
    threshold: str
    result: Result
    reason: str | None
    service_class: str | None = None
    limit: float | None = None
    baseline: float | int | str | None = None
    candidate: float | int | str | None = None
    unit: str | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    difference_unit: str | None = None

    def to_json(self) -> dict[str, Any]:
        """As the comparison document carries it."""
        out = asdict(self)
        out["class"] = out.pop("service_class")
        return out


def improvement(low: float | None, high: float | None, margin: float) -> Result:
    """Passes when the whole interval clears the margin, fails when it is all below it."""
    if low is not None and low >= margin:
        return PASSED
    if high is not None and high < margin:
        return FAILED
    return OPEN


def at_most(low: float | None, high: float | None, tolerance: float) -> Result:
    """A guard: passes when the worst (upper) limit is inside, fails when the best is outside."""
    if high is not None and high <= tolerance:
        return PASSED
    if low is not None and low > tolerance:
        return FAILED
    return OPEN


def at_least(low: float | None, high: float | None, tolerance: float) -> Result:
    """A guard: passes when the worst (lower) limit is inside, fails when the best is outside."""
    if low is not None and low >= tolerance:
        return PASSED
    if high is not None and high < tolerance:
        return FAILED
    return OPEN


def open_reason(low: float | None, reason: str | None, limit: str) -> str:
    """Why a gate is undecided: what is missing, or that the interval spans the limit."""
    if low is None:
        return reason or "no relative change exists: the mean of a side is 0"
    return f"the interval spans the limit of {limit}"
