"""How long prompts and answers were, and what came from the cache."""

from __future__ import annotations

from typing import Any

import numpy as np

from records.analysis.distribution import distribution
from records.analysis.figures import Absent, later
from records.analysis.frames import Frames, column
from records.analysis.metrics.latency import count_grade


def lengths(frames: Frames) -> dict[str, Any]:
    """Prompt and output tokens of the completed requests of the window."""
    done = frames.completed
    absent = "no completed request" if done.empty else "the server did not say"
    grade = count_grade(done)
    return {
        "prompt_tokens": distribution(column(done, "prompt_tokens"), grade=grade, absent=absent),
        "output_tokens": distribution(column(done, "output_tokens"), grade=grade, absent=absent),
    }


def cache(frames: Frames, declared: str | None) -> dict[str, Any]:
    """The declared cache state beside the share of prompt tokens the server says it reused.

    cached / prompt tokens over completed requests; cached tokens lie inside the
    prompt tokens. Absent unless the server said both for every one of them.
    """
    cached = column(frames.completed, "cached_tokens")
    prompt = column(frames.completed, "prompt_tokens")
    ratio: float | Absent = Absent("the server did not say how many prompt tokens were cached")
    if cached.size and not np.isnan(cached + prompt).any() and prompt.sum() > 0:
        ratio = float(cached.sum() / prompt.sum())
    return {
        "declared": Absent("not declared") if declared is None else declared,
        "observed_hit_ratio": ratio,
        "agrees": later(),
    }
