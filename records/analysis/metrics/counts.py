"""What became of the attempted requests."""

from __future__ import annotations

from typing import Any

import pandas as pd

from records.analysis.figures import Absent, later
from records.analysis.frames import Frames, column
from records.analysis.metrics.acceptance import Accepted
from records.errors import BadEvidence
from records.evidence.columns import OUTCOMES


def counts(frames: Frames, accepted: Accepted) -> dict[str, Any]:
    """How many requests were attempted and how each ended; attempts, tools, judgments.

    `attempted` counts requests whose intended arrival lies in the window; the
    nine outcomes sum to it. accepted, unjudged, severe_failures and
    authority_violations count workflows. BadEvidence when the sum does not hold.
    """
    arrived = frames.arrived
    ended = arrived["outcome"].value_counts()
    outcomes = {name: int(ended.get(name, 0)) for name in OUTCOMES}
    if sum(outcomes.values()) != len(arrived):
        raise BadEvidence("requests", "outcome", f"nine outcomes that sum to {len(arrived)}")
    tries = frames.tries
    sent_once = tries["row"].nunique()
    return {
        "attempted": len(arrived),
        "workflows": accepted.workflows,
        **outcomes,
        **accepted.counts(),
        "attempts": len(tries),
        "retries": len(tries) - sent_once,
        "fallbacks": int(arrived["fallback"].sum()),
        "tool_calls": _tool_calls(frames.completed),
        "tools_failed": _tools_failed(frames),
        "recovery_events": later(),
    }


def _tool_calls(completed: pd.DataFrame) -> int | Absent:
    calls = column(completed, "tool_calls")
    seen = calls == calls
    if not seen.all():
        return Absent(f"tool calls not observed in {int((~seen).sum())} of {calls.size} answers")
    return int(calls.sum())


def _tools_failed(frames: Frames) -> int | Absent:
    tools = frames.ran
    if tools.empty:
        calls = _tool_calls(frames.completed)
        return 0 if calls == 0 else Absent("no tool execution was recorded")
    return int((~tools["ok"]).sum())
