"""How was it timed? Who read the clock, how late sends were, what this host is known to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from records.web import format as fmt
from records.web.format import NBSP, Shown
from records.web.pages import reading
from records.web.pages.reading import Record

_LEVELS = (("light", "Light"), ("half", "Half"), ("full", "Full"))
_ERRORS = (
    ("TTFT error", "ttft_error_s"),
    ("ITL error", "itl_error_s"),
    ("E2E error", "e2e_error_s"),
    ("Schedule lag", "schedule_lag_s"),
)
_STAMPS = {
    "kernel": "by the kernel, at arrival",
    "user": "in user space, when read",
    "mixed": "by the kernel and in user space",
}
# From this age on a calibration is said to be old: machines change.
_OLD_S = 30 * 86_400.0


@dataclass(frozen=True, slots=True)
class Fact:
    """A line of the card's head: what, and its value with n where it has one."""

    label: str
    value: Shown
    n: str = ""


@dataclass(frozen=True, slots=True)
class Level:
    """One load of the calibration; cells are median and p99 of each error, none if it failed."""

    name: str
    events: Shown
    cells: list[Shown]


@dataclass(frozen=True, slots=True)
class Timing:
    """The card. `heads` are (label, unit); `levels` is empty where nothing was measured."""

    finding: str
    facts: list[Fact]
    heads: list[tuple[str, str]]
    levels: list[Level]
    date: datetime | None
    old: bool
    ceiling: Shown
    bounded: str
    missing: str


def timing(record: Record) -> Timing:
    """What the record's `generator` says, and the calibration beside it."""
    told = reading.at(record, "generator", "calibration")
    known = isinstance(told, Mapping)
    why = "" if known else reading.reason(record, "generator", "calibration")
    age_s = reading.at(record, "generator", "calibration", "age_s")
    return Timing(
        finding=_finding(record),
        facts=_facts(record),
        heads=[(f"{label} {p}", fmt.MS.name) for label, _ in _ERRORS for p in ("median", "p99")],
        levels=[_level(record, key, name) for key, name in _LEVELS] if known else [],
        date=_date(reading.at(record, "generator", "calibration", "date")),
        old=age_s is not None and age_s >= _OLD_S,
        ceiling=_ceiling(record),
        bounded=reading.at(record, "generator", "calibration", "ceiling", "text") or "",
        missing=why,
    )


def _finding(record: Record) -> str:
    stamps = reading.at(record, "generator", "stamp_source")
    lag = reading.at(record, "generator", "schedule_lag_s", "p99", "value")
    parts = [f"times read {_STAMPS.get(stamps, stamps)}" if stamps else "who read the clock is not"
             " recorded"]  # fmt: skip
    if lag is not None:
        parts.append(f"sends {fmt.plain(lag, fmt.MS).with_unit} late at p99")
    return "; ".join(parts)


def _facts(record: Record) -> list[Fact]:
    name = reading.at(record, "generator", "transport", "name")
    stamps = reading.at(record, "generator", "stamp_source")
    lag_n = reading.at(record, "generator", "schedule_lag_s", "n")
    per_n = reading.at(record, "latency", "chunks_per_receive", "n")
    return [
        Fact("Transport", _word(name, reading.reason(record, "generator", "transport"))),
        Fact("Time stamps", _word(stamps, reading.reason(record, "generator", "stamp_source"))),
        Fact("Schedule lag p99", _bare(record, "generator", "schedule_lag_s"), _n(lag_n)),
        Fact("Longest loop stall", _plain(record, ("generator", "loop_stall_s"), "max")),
        Fact("Loop stall p99", _bare(record, "generator", "loop_stall_s")),
        Fact(
            "Chunks per receive, median",
            _bare(record, "latency", "chunks_per_receive", "p50", fmt.PLAIN), _n(per_n),
        ),
    ]  # fmt: skip


def _n(n: int | None) -> str:
    return f"n{NBSP}{fmt.number(n)}" if n else ""


def _word(value: str | None, why: str) -> Shown:
    return fmt.unknown(why) if value is None else Shown(text=value)


def _bare(record: Record, block: str, name: str, p: str = "p99", unit: fmt.Unit = fmt.MS) -> Shown:
    """A percentile without its limits: the machine's, not a sample of users."""
    holder = reading.at(record, block, name) or {}
    value = (holder.get(p) or {}).get("value")
    return fmt.plain(value, unit, reason=_reason(record, (block, name), holder))


def _plain(record: Record, path: tuple[str, str], key: str) -> Shown:
    holder = reading.at(record, *path) or {}
    return fmt.plain(holder.get(key), fmt.MS, reason=_reason(record, path, holder))


def _reason(record: Record, path: tuple[str, str], holder: Mapping[str, object]) -> str:
    return str(holder.get("reason") or "") or reading.reason(record, *path)


def _level(record: Record, key: str, name: str) -> Level:
    path = ("generator", "calibration", "levels")
    level = reading.at(record, *path, key)
    if level is None:
        why = reading.reason(record, *path, key)
        return Level(name, fmt.unknown(why, word="did not hold"), [])
    cells = []
    for _, error in _ERRORS:
        spread = level.get(error) or {}
        for which in ("median", "p99"):
            n = spread.get("n")
            cells.append(
                fmt.plain(
                    spread.get(which), fmt.MS, n="" if n is None else fmt.number(n),
                    reason="the calibration has no such figure",
                )
            )  # fmt: skip
    events = fmt.plain(level.get("events_per_s"), fmt.PER_S, reason="not in the calibration")
    return Level(name, events, cells)


def _ceiling(record: Record) -> Shown:
    path = ("generator", "calibration", "ceiling", "events_per_s")
    return fmt.plain(
        reading.at(record, *path), fmt.Unit("events/s"), reason=reading.reason(record, *path)
    )


def _date(text: str | None) -> datetime | None:
    try:
        return None if text is None else datetime.fromisoformat(text)
    except ValueError:
        return None
