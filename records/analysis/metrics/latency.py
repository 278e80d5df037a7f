"""Latency of completions, from the intended arrival; and how long failures took."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from records.analysis.distribution import distribution, no_distribution
from records.analysis.figures import Absent, Distribution
from records.analysis.frames import Frames, column
from records.analysis.gaps import Gaps

FAILED = ("failed", "timed_out", "rejected")
NO_COMPLETION = "no completed request"
NOT_STREAMED = "no token time was seen: not streamed"


def latency(frames: Frames) -> dict[str, Any]:
    """The latency distributions of the completed requests of the window.

    Only time_to_failure_s reads other requests: end - intended arrival of those
    that failed, timed out or were rejected. Definitions: METHODS 1.
    """
    done = frames.completed
    seen = NO_COMPLETION if done.empty else NOT_STREAMED
    sent = frames.arrived
    return {
        "ttft_s": distribution(column(done, "ttft_s"), absent=seen),
        "ttft_from_send_s": distribution(column(done, "ttft_from_send_s"), absent=seen),
        "first_visible_s": distribution(
            column(done, "first_visible_s"),
            absent=NO_COMPLETION if done.empty else "no visible token was seen",
        ),
        **inter_token(done, frames.gaps),
        "tpot_s": distribution(
            column(done, "tpot_s"),
            grade=count_grade(done),
            absent=NO_COMPLETION
            if done.empty
            else "no answer of two or more tokens in more than one chunk",
        ),
        "e2e_s": distribution(column(done, "e2e_s"), absent=NO_COMPLETION),
        "chunks_per_receive": chunks_per_receive(done),
        "first_token_bound_s": first_token_bound(done),
        "client_wait_s": distribution(column(sent, "client_wait_s"), absent="no request was sent"),
        "time_to_failure_s": time_to_failure(sent),
    }


def inter_token(done: pd.DataFrame, gaps: Gaps) -> dict[str, Any]:
    """ITL pooled over tokens, the gaps between chunks, and which of them ITL counts.

    A chunk of k tokens makes its gap k samples of gap/k; the first chunk's extra
    tokens give none. Where any chunk does not say its tokens, ITL falls back to
    chunk gaps and the basis says `chunk`; it is null without any gap.
    """
    rows = done["row"].to_numpy(dtype=np.int64)
    mine = gaps.of_rows(rows)
    if not mine.row.size:
        reason = NO_COMPLETION if done.empty else "no gap between two token-bearing chunks"
        nothing = no_distribution(reason)
        return {"itl_s": nothing, "chunk_gap_s": nothing, "itl_basis": Absent(reason)}
    sum_s = int(mine.gap_us.sum()) / 1e6
    chunk = distribution(mine.gap_us / 1e6, total=sum_s)
    if not mine.counts_known:
        return {"itl_s": chunk, "chunk_gap_s": chunk, "itl_basis": "chunk"}
    weights = mine.tokens.astype(np.int64)
    itl = chunk
    if (weights > 1).any():
        # k samples of gap/k sum to the gap, so the exact sum is that of the gaps.
        itl = distribution(mine.gap_us / weights / 1e6, weights=weights, total=sum_s)
    return {"itl_s": itl, "chunk_gap_s": chunk, "itl_basis": "token"}


def chunks_per_receive(done: pd.DataFrame) -> Distribution:
    """Token-bearing chunks over the receives that brought them, per completed request.

    1 where every chunk came alone. More where the server or something on the way
    sends several together: their gaps are then 0, and ITL shows the buffer.
    """
    chunks, receives = column(done, "chunks"), column(done, "receives")
    ratio = chunks / np.where(receives > 0, receives, np.nan)
    absent = "receives were not recorded" if np.isnan(receives).all() else NOT_STREAMED
    return distribution(ratio, absent=NO_COMPLETION if done.empty else absent)


def first_token_bound(done: pd.DataFrame) -> Distribution:
    """How closely the first token's time is known, where it shared its receive with a later one.

    It came after the receive before and by its own: the time between the two.
    """
    width = column(done, "first_token_s") - column(done, "first_token_after_s")
    alone = "every first token came alone, or receives were not recorded"
    return distribution(width, absent=NO_COMPLETION if done.empty else alone)


def count_grade(done: pd.DataFrame) -> str:
    """`measured` when the server or the stream counted the tokens, else `derived`."""
    sources = set(done["token_count_source"].dropna())
    return "measured" if sources <= {"usage", "stream"} else "derived"


def time_to_failure(sent: pd.DataFrame) -> Distribution:
    """End minus intended arrival of requests that failed, timed out or were rejected."""
    failed = sent[sent["outcome"].isin(FAILED)]
    waited = column(failed, "end_s") - column(failed, "intended_s")
    return distribution(waited, absent="no request failed, timed out or was rejected")
