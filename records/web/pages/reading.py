"""Reading a record: values with the reason that stands beside an absent one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from records.charts.figure import Scene
from records.models import Run
from records.web import format as fmt
from records.web.format import Shown, Unit

Record = Mapping[str, Any]
NO_RECORD = "no measurement record has been computed"


def at(record: Record | None, *path: str) -> Any:
    """The value at a path of keys; None where any of them is missing."""
    value: Any = record
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def reason(record: Record | None, *path: str) -> str:
    """Why the value at this path is absent, as its holder says."""
    *holders, key = path
    if not record:
        return NO_RECORD
    holder = at(record, *holders) or {}
    return (holder.get("reasons") or {}).get(key) or holder.get("reason") or f"{key} is not there"


def figure(record: Record | None, *path: str, unit: Unit, signed: bool = False) -> Shown:
    """An I or P at a path, or a bare number, ready for a page."""
    value = at(record, *path)
    if isinstance(value, Mapping):
        return fmt.figure(value, unit, reason=reason(record, *path), signed=signed)
    return fmt.plain(value, unit, reason=reason(record, *path), signed=signed)


def count(record: Record | None, *path: str) -> Shown:
    """A whole number at a path."""
    return fmt.count(at(record, *path), reason(record, *path))


def percentile(record: Record | None, name: str, p: str, unit: Unit) -> Shown:
    """A percentile of a latency of the record or of one class of it, with its n."""
    quantity = at(record, "latency", name) or {}
    value = quantity.get(p) or {}
    return fmt.figure(
        {**value, "n": quantity.get("n"), "grade": quantity.get("grade")},
        unit,
        reason=quantity.get("reason") or NO_RECORD,
    )


def scene_of(run: Run, record: Record | None) -> Scene:
    """The run's classes in the workload's order with their objectives, and its window."""
    document = run.workload.document if run.workload else {}
    specs = document.get("classes") or {}
    order = run.workload.class_names if run.workload else []
    found = sorted(at(record, "classes") or {})
    names = [n for n in order if n in found or not found] + [n for n in found if n not in order]
    window = at(record, "window") or {}
    ends = (window.get("start_s"), window.get("end_s"))
    return Scene(
        classes=names,
        objectives={n: (specs.get(n) or {}).get("objective") or {} for n in names},
        window=None if None in ends else ends,
    )
