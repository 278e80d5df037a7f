"""The shapes a figure can have, and their JSON.

CONTRACT "Record" names them: a `Distribution` is its Q, a `Percentile` its P,
an `Estimate` its I. A plain value that is not known is `Absent`: in the JSON it
becomes null, and the object that holds it names the reason under `reasons`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from records.analysis.version import NOT_COMPUTED

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99_9": 0.999}


@dataclass(frozen=True, slots=True)
class Absent:
    """A plain value that is not known, with the reason a reader is given."""

    reason: str


@dataclass(frozen=True, slots=True)
class Percentile:
    """P: one percentile with its 95 % limits, in the unit of its distribution.

    `supported` is false when a limit does not exist for so small a sample;
    `reason` then says what would be needed.
    """

    value: float | None
    low: float | None
    high: float | None
    supported: bool
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Distribution:
    """Q: how a quantity is spread over `n` samples."""

    n: int | None
    mean: float | None
    min: float | None
    max: float | None
    p50: Percentile
    p90: Percentile
    p95: Percentile
    p99: Percentile
    p99_9: Percentile
    grade: str
    reason: str | None = None


def distribution_of(
    n: int | None,
    moments: tuple[float | None, float | None, float | None],
    percentiles: Mapping[str, Percentile],
    grade: str,
    reason: str | None = None,
) -> Distribution:
    """A distribution from its (mean, min, max) and its percentiles by name."""
    mean, least, greatest = moments
    p50, p90, p95, p99, p99_9 = (percentiles[name] for name in PERCENTILES)
    return Distribution(n, mean, least, greatest, p50, p90, p95, p99, p99_9, grade, reason)


@dataclass(frozen=True, slots=True)
class Estimate:
    """I: one value with its 95 % limits over `n` units."""

    value: float | None
    low: float | None
    high: float | None
    n: int | None
    grade: str
    reason: str | None = None


def no_estimate(reason: str = NOT_COMPUTED, n: int | None = None) -> Estimate:
    """An estimate that does not exist, and why."""
    return Estimate(None, None, None, n, "not_observable", reason)


def later() -> Absent:
    """A figure that a later analysis version computes."""
    return Absent(NOT_COMPUTED)


def to_json(value: Any) -> Any:
    """Plain JSON values; an object that holds something `Absent` gets a `reasons` map."""
    if isinstance(value, Distribution | Percentile | Estimate):
        return {f.name: to_json(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return _object(value)
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    return value


def _object(value: Mapping[str, Any]) -> dict[str, Any]:
    reasons = {key: item.reason for key, item in value.items() if isinstance(item, Absent)}
    out = {k: None if isinstance(v, Absent) else to_json(v) for k, v in value.items()}
    if reasons:
        out["reasons"] = reasons | (out.get("reasons") or {})
    return out
