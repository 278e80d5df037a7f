"""A comparison whose runs are not all measured: what is done, what goes on, what never will be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from records.models import Run
from records.models.choices import RunState
from records.web import format as fmt
from records.web.pages.progress import progress_of

_MINUTES_FROM = 90


def waiting(sides: Sequence[tuple[str, Sequence[Run]]]) -> dict[str, Any]:
    """Context of `_comparison_waiting.html`.

    `going_on` until every run is over; `lost` are runs that ended without a
    record, for which the comparison would wait for ever.
    """
    runs = [run for _, side in sides for run in side]
    open_runs = [r for r in runs if r.is_open]
    lost = [r for r in runs if r.valid is None and not r.is_open and r.state != RunState.COMPLETED]
    done = [r for r in runs if r.valid is not None]
    ordered = sorted(
        ((side, run) for side, members in sides for run in members), key=lambda p: p[1].number
    )
    return {
        "rows": [(side, run, progress_of(run) if run.is_open else None) for side, run in ordered],
        "going_on": bool(open_runs) or not lost,
        "open_runs": open_runs,
        "lost": lost,
        "invalid": [r for r in done if r.valid is False],
        "done": len(done),
        "total": len(runs),
        "percent": round(100 * sum(map(_part, runs)) / len(runs), 1) if runs else 0.0,
        "counted": _counted(runs, done),
        "left": _left(open_runs),
    }


def _counted(runs: Sequence[Run], done: Sequence[Run]) -> str:
    """3 of 10 measured, 1 running, 6 queued."""
    parts = [f"{len(done)} of {len(runs)} measured"]
    for state in (RunState.RUNNING, RunState.ANALYSING, RunState.QUEUED):
        n = sum(r.state == state for r in runs)
        if n:
            parts.append(f"{n} {state.label.lower()}")
    return ", ".join(parts)


def _part(run: Run) -> float:
    """How far a run is, from 0 to 1; one that ended without a record is as far as it will be."""
    if not run.is_open:
        return 1.0
    return (progress_of(run).percent or 0.0) / 100


def _left(open_runs: Sequence[Run]) -> str:
    """The load still to be sent, in words; "" where a run does not say how long it is."""
    total = 0.0
    for run in open_runs:
        window = run.policies.get("window_s")
        if window is None:
            return ""
        span = window + (run.policies.get("warmup_s") or 0.0)
        total += max(0.0, span - ((run.progress or {}).get("elapsed_s") or 0.0))
    if total <= 0:
        return ""
    # By the minute: runs also start, drain and are analysed.
    rounded = total if total < _MINUTES_FROM else 60 * math.ceil(total / 60)
    return f"about {fmt.duration(rounded)} of load left"
