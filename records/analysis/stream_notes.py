"""What a reader must know of how answers came: together or one by one, and who counted tokens."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from records.analysis.figures import Distribution
from records.analysis.frames import Frames, column

# From this many chunks to a receive at the median, something buffers.
BUFFERED_FROM = 2.0
# A first token known less closely than this is worth a word, if so for a share of answers.
_WIDE_S, _WIDE_SHARE = 0.001, 0.01
_COUNTED_BY = {
    "chunks": "the chunks that bore tokens, as nobody counted them",
    "stream": "the running counts of the stream, as no final usage came",
    "tokenizer": "our own tokenizer, as the server counted none",
}


def stream_notes(frames: Frames, latency: Mapping[str, Distribution]) -> list[str]:
    """Notes for the record, in a fixed order; empty where every token came alone and counted."""
    return _buffered(frames, latency) + _first_token(frames, latency) + _sources(frames.completed)


def _buffered(frames: Frames, latency: Mapping[str, Distribution]) -> list[str]:
    per_receive = latency["chunks_per_receive"].p50.value
    if per_receive is None or per_receive < BUFFERED_FROM:
        return []
    rows = frames.completed["row"].to_numpy(dtype=np.int64)
    gaps = frames.gaps.of_rows(rows).gap_us
    # Chunks of one receive have one time: what is above 0 lies between receives.
    between = gaps[gaps > 0]
    text = (
        f"answers came {per_receive:.3g} chunks to a receive at the median: the server or something"
        " on the way sends them together; ITL shows that buffer"
    )
    if between.size:
        within_ms = float(np.median(between)) / 1e3
        text += f", and a token's time is known only to within {within_ms:.3g} ms"
    return [text]


def _first_token(frames: Frames, latency: Mapping[str, Distribution]) -> list[str]:
    bound = latency["first_token_bound_s"]
    done = len(frames.completed)
    if not bound.n or bound.n < _WIDE_SHARE * done:
        return []
    p50, p99 = bound.p50.value, bound.p99.value
    if p50 is None or p99 is None or p99 <= _WIDE_S:
        return []
    return [
        f"in {bound.n} of {done} answers the first token came in one receive with a later one:"
        f" its time is known to within {p50 * 1e3:.3g} ms (p50), {p99 * 1e3:.3g} ms (p99)"
    ]


def _sources(done: pd.DataFrame) -> list[str]:
    streamed = done[~np.isnan(column(done, "output_tokens"))]
    counts = streamed["token_count_source"].value_counts()
    return [
        f"in {int(counts[name])} of {len(done)} answers output tokens are {how}"
        for name, how in _COUNTED_BY.items()
        if name in counts.index
    ]
