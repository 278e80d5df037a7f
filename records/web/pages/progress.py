"""A run in progress: how far it is, what is in flight, whether the generator keeps time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from records.models import Run
from records.models.choices import RunState
from records.web import format as fmt
from records.web.format import Shown

_WAITING = "the load generator has not reported yet"


@dataclass(frozen=True, slots=True)
class Progress:
    """What the live card shows; `percent` is None while nothing is known."""

    percent: float | None
    words: str
    counts: list[tuple[str, Shown, int | None]]
    lag: Shown
    lag_tone: str


def progress_of(run: Run) -> Progress:
    """The latest report of the run's worker."""
    told: dict[str, Any] = run.progress or {}
    planned, due, sent = told.get("planned"), told.get("due"), told.get("sent")
    percent = None
    if run.state == RunState.ANALYSING:
        percent = 100.0
    elif planned and due is not None:
        percent = round(min(100.0, 100 * due / planned), 1)
    outcomes = told.get("outcomes")
    done = bad = None
    if outcomes is not None:
        done = outcomes.get("completed", 0)
        bad = sum(n for key, n in outcomes.items() if key != "completed")
    counts = [
        ("Arrived", fmt.count(due, _WAITING), planned),
        ("Sent", fmt.count(sent, _WAITING), None),
        ("In flight", fmt.count(told.get("in_flight"), _WAITING), None),
        ("Completed", fmt.count(done, _WAITING), None),
        ("Not completed", fmt.count(bad, _WAITING), None),
    ]
    lag = fmt.plain(told.get("lag_p99_s"), fmt.MS, reason=_WAITING)
    late = told.get("lag_p99_s") is not None and told["lag_p99_s"] > 0.010
    return Progress(percent, _words(run, told), counts, lag, "negative" if late else "positive")


def _words(run: Run, told: dict[str, Any]) -> str:
    if run.state == RunState.QUEUED:
        return "Waiting for a free worker"
    if run.state == RunState.ANALYSING:
        return "Load over; judging answers and computing figures"
    if run.cancel_requested:
        return "Stopping; what was measured so far is kept"
    elapsed, span = told.get("elapsed_s"), told.get("planned_s")
    if elapsed is None:
        return "Starting"
    if span and elapsed > span:
        return f"Draining: {fmt.duration(elapsed)} since start"
    return f"{fmt.duration(elapsed)}{f' of {fmt.duration(span)}' if span else ''}"
