"""How far the candidate's figures lie from the baseline's, with intervals over replicates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from records.statistics.intervals import relative_change, welch_difference

Record = Mapping[str, Any]
NEEDED = 2


@dataclass(frozen=True)
class Metric:
    """A figure of a record that comparisons look at: its path, unit and better direction."""

    name: str
    path: tuple[str, ...]
    unit: str
    better: str


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
    than two on a side there are no limits, and `reason` says so. None where a
    run does not have the figure.
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
    new, old = ([v for v, _ in side if v is not None] for side in (mine, theirs))
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
    missing = next((reason for v, reason in theirs + mine if v is None), None)
    if missing is not None:
        # A mean over the runs that happen to have the figure would be of another population.
        return replace(bare, reason=missing)
    absolute, relative = welch_difference(old, new), relative_change(old, new)
    few = min(len(old), len(new)) < NEEDED
    return replace(
        bare,
        baseline=sum(old) / len(old),
        candidate=sum(new) / len(new),
        difference=absolute.value,
        low=absolute.low,
        high=absolute.high,
        relative=relative.value,
        relative_low=relative.low,
        relative_high=relative.high,
        reason=f"an interval needs {NEEDED} replicates on each side" if few else None,
    )


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


def _value(
    record: Record, metric: Metric, service_class: str | None
) -> tuple[float | None, str | None]:
    """A run's figure, or None and why it has none."""
    block: Any = record
    if service_class is not None:
        block = record["classes"].get(service_class)
        if block is None:
            return None, f"a run has no requests of class {service_class}"
    holder: Any = block
    for key in metric.path:
        holder, block = block, block[key]
    if isinstance(block, Mapping):
        value = block["value"]
        reason = block.get("reason")
    else:
        value, reason = block, holder.get("reasons", {}).get(metric.path[-1])
    if value is None:
        return None, reason or f"a run has no {metric.name}"
    return float(value), None
