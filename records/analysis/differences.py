"""How far the candidate's figures lie from the baseline's, with intervals over replicates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from records.statistics.intervals import relative_change, welch_difference

Record = Mapping[str, Any]
NEEDED = 2
# Half the width of a 95 % interval is this many standard errors of a normal.
_Z = 1.959963984540054


@dataclass(frozen=True)
class Metric:
    """A figure of a record that comparisons look at: its path, unit and better direction."""

    name: str
    path: tuple[str, ...]
    unit: str
    better: str


@dataclass(frozen=True)
class _Value:
    value: float | None
    # Squared standard error of the value from within its run; 0 when the run does not tell.
    squared_error: float
    reason: str


def _percentile(name: str, key: str, percentile: str) -> Metric:
    return Metric(f"{name}_{percentile}", ("latency", key, percentile), "s", "lower")


METRICS = (
    Metric("accepted_per_s", ("goodput", "accepted_per_s"), "/s", "higher"),
    Metric("accepted_fraction", ("goodput", "accepted_fraction"), "fraction", "higher"),
    Metric("slo_attainment", ("goodput", "slo_attainment"), "fraction", "higher"),
    *(
        _percentile(name, key, p)
        for name, key in (("ttft", "ttft_s"), ("e2e", "e2e_s"), ("itl", "itl_s"))
        for p in ("p50", "p95")
    ),
)
LOWEST_CLASS = Metric(
    "min_class_attainment", ("fairness", "min_class_attainment"), "fraction", "higher"
)


@dataclass(frozen=True)
class Difference:
    """One metric on both sides; values are means over replicates.

    difference = candidate - baseline with Welch's 95 % limits; relative =
    candidate / baseline - 1 with its own. Replicates are the unit: with fewer
    than two on a side there are no limits, and `reason` says so. The standard
    error of a side is never taken smaller than the uncertainty within its runs,
    because replicates of one trace can agree by chance or share its arrivals.
    None where a run does not have the figure, or no spread can be told.
    """

    metric: str
    service_class: str | None
    unit: str
    better: str
    baseline: float | None
    candidate: float | None
    baseline_replicates: int
    candidate_replicates: int
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    relative: float | None = None
    relative_low: float | None = None
    relative_high: float | None = None
    reason: str | None = None

    def to_json(self) -> dict[str, Any]:
        """As the comparison document carries it; `class` is null for the whole run."""
        plain = asdict(self)
        out = {"metric": plain.pop("metric"), "class": plain.pop("service_class")}
        for side in ("baseline", "candidate"):
            value, n = plain.pop(side), plain.pop(f"{side}_replicates")
            out[side] = {"value": value, "n_replicates": n}
        return out | plain


def difference(
    metric: Metric,
    service_class: str | None,
    candidates: Sequence[Record],
    baselines: Sequence[Record],
) -> Difference:
    """The difference of one metric, for a class or for the whole run (None)."""
    mine = [_value(r, metric, service_class) for r in candidates]
    theirs = [_value(r, metric, service_class) for r in baselines]
    new = [v.value for v in mine if v.value is not None]
    old = [v.value for v in theirs if v.value is not None]
    bare = Difference(
        metric=metric.name,
        service_class=service_class,
        unit=metric.unit,
        better=metric.better,
        baseline=None,
        candidate=None,
        baseline_replicates=len(old),
        candidate_replicates=len(new),
    )
    missing = next((v.reason for v in theirs + mine if v.value is None), None)
    if missing is not None:
        # A mean over the runs that happen to have the figure would be of another population.
        return replace(bare, reason=missing)
    found = replace(bare, baseline=sum(old) / len(old), candidate=sum(new) / len(new))
    return _with_limits(found, old, new, (_least(theirs), _least(mine)))


def _with_limits(
    found: Difference, old: list[float], new: list[float], least: tuple[float, float]
) -> Difference:
    """The difference, absolute and relative; without limits where no spread can be told."""
    absolute = welch_difference(old, new, least=least)
    relative = relative_change(old, new, least=least)
    found = replace(found, difference=absolute.value, relative=relative.value)
    if min(len(old), len(new)) < NEEDED:
        return replace(found, reason=f"an interval needs {NEEDED} replicates on each side")
    if absolute.low == absolute.high:
        return replace(found, reason="the replicates agree and no run tells its own spread")
    return replace(
        found,
        low=absolute.low,
        high=absolute.high,
        relative_low=relative.low,
        relative_high=relative.high,
    )


def _least(values: Sequence[_Value]) -> float:
    """Squared standard error of the side's mean from the intervals within its runs."""
    return sum(v.squared_error for v in values) / len(values) ** 2


def differences(candidates: Sequence[Record], baselines: Sequence[Record]) -> list[Difference]:
    """Every metric for the whole run, then for each class that any run has."""
    classes = class_names([*candidates, *baselines])
    return [
        difference(metric, name, candidates, baselines)
        for name in (None, *classes)
        for metric in METRICS
    ]


def class_names(records: Sequence[Record]) -> list[str]:
    """The service classes that occur in any of the records, sorted."""
    return sorted({name for record in records for name in record["classes"]})


def _value(record: Record, metric: Metric, service_class: str | None) -> _Value:
    """A run's figure with its uncertainty within the run, or why it has none."""
    block: Any = record
    if service_class is not None:
        block = record["classes"].get(service_class)
        if block is None:
            return _Value(None, 0.0, f"a run has no requests of class {service_class}")
    holder: Any = block
    for key in metric.path:
        holder, block = block, block[key]
    if not isinstance(block, Mapping):
        reason = holder.get("reasons", {}).get(metric.path[-1])
        return _Value(block, _lowest_class_error(record), reason or f"a run has no {metric.name}")
    reason = block.get("reason") or f"a run has no {metric.name}"
    return _Value(block["value"], _squared_error(block), reason)


def _squared_error(interval: Mapping[str, Any]) -> float:
    low, high = interval.get("low"), interval.get("high")
    return 0.0 if low is None or high is None else ((high - low) / 2 / _Z) ** 2


def _lowest_class_error(record: Record) -> float:
    """The lowest class's attainment carries no interval of its own: its class has it."""
    classes = [c["goodput"]["slo_attainment"] for c in record["classes"].values()]
    known = [c for c in classes if c["value"] is not None]
    return _squared_error(min(known, key=lambda c: c["value"])) if known else 0.0
