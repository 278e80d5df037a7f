"""Rows of the table `chunks` from the times and running totals of token-bearing chunks.

Whole columns at once: a run has millions of chunks, and none of them may become
an object of Python's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from records.evidence.columns import CHUNKS

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_INT32, _INT16 = np.iinfo(np.int32), np.iinfo(np.int16)


def chunk_table(
    keys: Sequence[tuple[str, int]], counts: Ints, times_us: Ints, totals: Ints, finals: Ints
) -> pa.Table:
    """A row per attempt: first_us, gap_us clamped to int32, and tokens as `tokens_of_chunks` says.

    `counts` says how many chunks each attempt has, at least one; `times_us` and
    `totals` (-1 unknown) hold theirs one after another; `finals` each attempt's
    number of output tokens, -1 where nobody but the chunks counted them.
    """
    starts = np.concatenate(([0], np.cumsum(counts)))
    gaps = np.delete(np.diff(times_us), starts[1:-1] - 1)
    gaps = np.clip(gaps, _INT32.min, _INT32.max).astype(np.int32)
    columns = [
        pa.array([key[0] for key in keys], pa.string()),
        pa.array([key[1] for key in keys], pa.int64()),
        pa.array(times_us[starts[:-1]]),
        _lists(starts - np.arange(starts.size), gaps, None),
        _token_lists(counts, totals, finals),
    ]
    return pa.Table.from_arrays(columns, schema=CHUNKS)


def tokens_of_chunks(
    counts: Ints, totals: Ints, finals: Ints
) -> tuple[npt.NDArray[np.int16], Flags]:
    """Tokens in each chunk, and for each attempt whether they are known.

    The steps of the running totals, when every chunk of the attempt has one and
    each step is in 1..32767; else one each, when the final count is the number of
    chunks; else unknown (those chunks hold 0 here).
    """
    starts = np.cumsum(counts) - counts
    before = np.concatenate(([0], totals[:-1]))
    before[starts] = 0
    steps = totals - before
    # Where a total is unknown the chunk is no step; the step after it counts from -1, too far,
    # but its attempt is out already.
    sound = (totals >= 0) & (steps >= 1) & (steps <= _INT16.max)
    stepped = np.logical_and.reduceat(sound, starts) if counts.size else np.zeros(0, bool)
    single = ~stepped & (finals == counts)
    tokens = np.where(np.repeat(stepped, counts), steps, np.repeat(single, counts))
    return tokens.astype(np.int16), stepped | single


def _token_lists(counts: Ints, totals: Ints, finals: Ints) -> pa.ListArray:
    tokens, known = tokens_of_chunks(counts, totals, finals)
    offsets = np.concatenate(([0], np.cumsum(np.where(known, counts, 0))))
    return _lists(offsets, tokens[np.repeat(known, counts)], known)


def _lists(offsets: Ints, values: npt.NDArray[Any], known: Flags | None) -> pa.ListArray:
    nulls = None if known is None or known.all() else pa.array(~known)
    return pa.ListArray.from_arrays(
        pa.array(offsets.astype(np.int32)), pa.array(values), mask=nulls
    )
