"""How true and how fast is the load generator on this machine? The whole calibration.

Light load first; then loads that double until one fails; then half of the highest
that held; then many short answers. docs/methods/calibration.md.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from records.errors import NotDecided
from runners.load.calibrate.level import SERVED_SHARE, Level, Seen, run_level
from runners.load.calibrate.truth import KnownTruth, known_truth
from runners.load.calibration import SCHEMA, host_of

# A level holds while the p99 of each error stays within this. Stamps of user space see our
# own event loop's lateness, so all that can be asked of them is what is asked of sends.
BOUNDS_S = {"kernel": 0.001, "user": 0.010}
# Above this share of a core a process has nothing left to give.
_BUSY = 0.9
# A load generator that fails while it uses less than this fails for another reason than its
# load, so that less of it would not help.
_IDLE = 0.3
_CORE_SHARED = "one core, shared with the known-truth server"
OnLevel = Callable[[str, Seen], None]


@dataclass(frozen=True)
class Profile:
    """How long to measure and how far to search; seconds, and streamed tokens a second.

    No level of the search is begun after `budget_s`; two more follow it.
    """

    name: str
    span_s: float
    light_s: float
    budget_s: float
    start_per_s: float = 5_000.0
    least_per_s: float = 100.0
    most_per_s: float = 160_000.0
    # From one level to the next.
    factor: float = 2.0
    tokens: int = 100
    first_s: float = 0.02
    gap_s: float = 0.005
    short_per_s: float = 200.0


FULL = Profile("full", span_s=2.0, light_s=4.0, budget_s=42.0)
QUICK = Profile("quick", span_s=1.0, light_s=1.5, budget_s=8.0, factor=4.0)


@dataclass
class _Search:
    """The levels so far."""

    profile: Profile
    truth: KnownTruth
    transport: str
    folder: Path
    on_level: OnLevel
    started_s: float = field(default_factory=time.monotonic)
    seen: list[Seen] = field(default_factory=list)

    def run(self, name: str, rate_per_s: float, tokens: int, span_s: float) -> Seen:
        p = self.profile
        level = Level(rate_per_s, tokens, span_s, p.first_s, p.gap_s)
        found = run_level(level, self.truth, self.transport, self.folder)
        self.seen.append(found)
        self.on_level(name, found)
        return found

    def at(self, name: str, events_per_s: float) -> Seen:
        p = self.profile
        return self.run(name, events_per_s / p.tokens, p.tokens, p.span_s)

    def time_left(self) -> bool:
        return time.monotonic() - self.started_s < self.profile.budget_s


def calibrate(
    transport: str, profile: Profile = FULL, on_level: OnLevel = lambda _name, _seen: None
) -> dict[str, Any]:
    """A document of `impakt.calibration/1` for this host; it is not stored.

    `on_level` is told of each level as it is over. NotDecided when not even the
    light load came to its end.
    """
    host = host_of(transport, None)
    with (
        tempfile.TemporaryDirectory(prefix="impakt-calibrate-") as name,
        known_truth(Path(name), profile.first_s, profile.gap_s) as truth,
    ):
        search = _Search(profile, truth, transport, Path(name), on_level)
        light = search.run("light", 25.0, 20, profile.light_s)
        if not light.figures["ttft_error_s"]["n"]:
            raise NotDecided("calibration: " + "; ".join(light.figures["reasons_invalid"]))
        tried, highest = _climb(search)
        half = None if highest is None else search.at("half", highest.level.events_per_s / 2)
        search.run("short answers", profile.short_per_s, 2, profile.span_s)
    levels = {"light": light, "half": half, "full": highest}
    return {
        "schema": SCHEMA,
        "date": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "host": host | {"stamp_source": light.stamp_source},
        "profile": profile.name,
        "error_bound_s": bound_s(light),
        "took_s": round(time.monotonic() - search.started_s, 1),
        "levels": {name: None if s is None else dict(s.figures) for name, s in levels.items()},
        "ceiling": _ceiling(tried, highest, host["cores"]),
        "cpu": cpu_costs(s for s in search.seen if s.valid),
    }


def holds(seen: Seen) -> bool:
    """Whether the run was valid, its errors within the bound and the load really there."""
    served = seen.figures["served_per_s"]
    there = served is None or served >= SERVED_SHARE * seen.level.events_per_s
    return seen.valid and there and not too_wrong(seen)


def bound_s(seen: Seen) -> float:
    """The error that a level may have, by who read the clock."""
    return BOUNDS_S[seen.stamp_source or "user"]


def too_wrong(seen: Seen) -> bool:
    """Whether an error of the level is above its bound, or none is known."""
    return seen.error_p99_s is None or seen.error_p99_s > bound_s(seen)


def _climb(search: _Search) -> tuple[list[Seen], Seen | None]:
    """The levels tried, and the highest that held: doubled until one fails, then once between.

    A level that fails is tried again while there is time: the machine may have been
    busy with something else. Where the first fails for its load the search goes down.
    """
    p = search.profile
    tried: list[Seen] = []
    best: Seen | None = None
    worst: float | None = None
    rate = p.start_per_s
    while p.least_per_s <= rate <= p.most_per_s and search.time_left():
        found = _tried(search, tried, rate)
        if holds(found):
            best = found
            if worst is not None:
                break
            rate *= p.factor
        else:
            worst = rate
            if best is not None or found.client_cpu < _IDLE:
                break
            rate /= p.factor
    if best is not None and worst is not None and search.time_left():
        between = _tried(search, tried, (best.level.events_per_s + worst) / 2)
        best = between if holds(between) else best
    return tried, best


def _tried(search: _Search, tried: list[Seen], rate: float) -> Seen:
    found = search.at("search", rate)
    tried.append(found)
    if not holds(found) and search.time_left() and not client_is_full(found):
        found = search.at("again", rate)
        tried.append(found)
    return found


def client_is_full(seen: Seen) -> bool:
    """Whether the load generator used all of its core, so that trying again cannot help."""
    return seen.client_cpu >= _BUSY


def _ceiling(tried: list[Seen], best: Seen | None, cores: int | None) -> dict[str, Any]:
    # A level that held when tried again ended nothing.
    held = 0.0 if best is None else best.level.events_per_s
    failed = [s for s in tried if not holds(s) and s.level.events_per_s > held]
    first = min(failed, key=lambda s: s.level.events_per_s, default=None)
    by, text = _bound(first, cores)
    return {
        "events_per_s": None if best is None else best.level.events_per_s,
        "bounded_by": by,
        "text": text,
        "tried": [
            {"events_per_s": s.level.events_per_s, "held": holds(s), "error_p99_s": s.error_p99_s,
             "cpu_fraction": s.figures["cpu_fraction"],
             "server_cpu_fraction": s.figures["server_cpu_fraction"],
             "served_per_s": s.figures["served_per_s"],
             "reasons_invalid": s.figures["reasons_invalid"]}
            for s in tried
        ],
    }  # fmt: skip


def _bound(failed: Seen | None, cores: int | None) -> tuple[str, str]:
    """What ended the search: a word, and a sentence with its figures."""
    if failed is None:
        return "search", "no level failed: the search ended at its highest level or its time"
    server = failed.figures["server_cpu_fraction"] or 0.0
    shares = (
        f"at {failed.level.events_per_s:,.0f} events/s the load generator used"
        f" {100 * failed.client_cpu:.0f} % of a core, the known-truth server {100 * server:.0f} %"
    )
    if cores == 1 and failed.client_cpu + server >= _BUSY:
        return "one_core", f"{_CORE_SHARED}: {shares}"
    if failed.client_cpu >= _BUSY:
        return "client_cpu", f"the load generator's core: {shares}"
    if server >= _BUSY:
        return "server", f"the known-truth server, not the load generator: {shares}"
    why = "; ".join(failed.figures["reasons_invalid"])
    if not why and failed.error_p99_s is not None and too_wrong(failed):
        why = f"an error of {1e3 * failed.error_p99_s:.2f} ms at p99"
    if failed.client_cpu < _IDLE:
        why += "; the machine was busy with something else: try again when it is quiet"
        return "other_work", f"{why}: {shares}"
    return "error", f"{why or 'the load was not delivered'}: {shares}"


def cpu_costs(seen: Iterable[Seen]) -> dict[str, Any]:
    """Processor microseconds a streamed token and a request cost the load generator.

    Least squares of its CPU seconds on wall seconds, requests and tokens over the
    valid levels. Null with a reason below three levels, or where the fit gives a
    cost that is no cost.
    """
    rows = [(s.wall_s, s.requests, s.tokens, s.cpu_s) for s in seen]
    none = {"us_per_token": None, "us_per_request": None, "n": len(rows)}
    if len(rows) < 3:
        return none | {"reason": f"{len(rows)} valid levels; three are needed"}
    table = np.array(rows, dtype=np.float64)
    costs, _, rank, _ = np.linalg.lstsq(table[:, :3], table[:, 3], rcond=None)
    if rank < 3 or (costs[1:] <= 0).any():
        return none | {"reason": "the levels do not tell requests and tokens apart"}
    return {
        "us_per_token": float(costs[2] * 1e6),
        "us_per_request": float(costs[1] * 1e6),
        "n": len(rows),
        "reason": None,
    }
