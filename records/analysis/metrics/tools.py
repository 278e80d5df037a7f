"""Time spent in external tools."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from records.analysis.figures import Absent
from records.analysis.frames import Frames, column

Spans = list[tuple[float, float]]
NO_TOOL = "no tool execution was recorded"


def tools(frames: Frames) -> dict[str, Any]:
    """Tool executions of the window, how many completed, and the time only they took.

    exclusive_s sums over workflows the union of tool intervals outside any
    attempt of the same workflow: where the model is busy too, the tool is not
    what one waits for. METHODS 1.
    """
    ran = frames.ran
    if ran.empty:
        gone = Absent(NO_TOOL)
        return {"calls": gone, "failed": gone, "completion_fraction": gone, "exclusive_s": gone}
    ok = int(ran["ok"].sum())
    return {
        "calls": len(ran),
        "failed": len(ran) - ok,
        "completion_fraction": ok / len(ran),
        "exclusive_s": _exclusive(frames, ran),
    }


def _exclusive(frames: Frames, ran: pd.DataFrame) -> float:
    workflow = frames.requests.set_index("row")["workflow_id"]
    tries = frames.attempts.assign(workflow_id=frames.attempts["row"].map(workflow))
    of_tool = ran.assign(workflow_id=ran["row"].map(workflow))
    total = []
    for name, mine in of_tool.groupby("workflow_id"):
        busy = _spans(tries[tries["workflow_id"] == name], "sent_s")
        total.append(exclusive_s(busy, _spans(mine, "start_s")))
    return math.fsum(total)


def _spans(frame: pd.DataFrame, start: str) -> Spans:
    begin, end = column(frame, start), column(frame, "end_s")
    whole = ~np.isnan(begin + end)
    return list(zip(begin[whole].tolist(), end[whole].tolist(), strict=True))


def exclusive_s(model: Spans, tool: Spans) -> float:
    """Length of the union of tool intervals that no model interval covers."""
    return union_s(model + tool) - union_s(model)


def union_s(spans: Spans) -> float:
    """Length of the union of intervals."""
    total, reached = 0.0, -math.inf
    for begin, end in sorted(spans):
        if end > reached:
            total += end - max(begin, reached)
            reached = end
    return total
