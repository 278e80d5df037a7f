"""When tokens came: the gaps between token-bearing chunks, flat over all requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from records.errors import BadEvidence


@dataclass(frozen=True)
class Gaps:
    """One entry per gap; `row` is the request's row, `tokens` what the chunk after it held.

    `gap_us` is int64 microseconds; `tokens` is float64, NaN where unknown.
    """

    row: npt.NDArray[np.int64]
    gap_us: npt.NDArray[np.int64]
    tokens: npt.NDArray[np.float64]

    def of_rows(self, rows: npt.NDArray[np.int64]) -> Gaps:
        """The gaps of some requests."""
        size = max(int(rows.max(initial=-1)), int(self.row.max(initial=-1))) + 1
        wanted = np.zeros(size, dtype=bool)
        wanted[rows] = True
        keep = wanted[self.row]
        if keep.all():
            return self
        return Gaps(self.row[keep], self.gap_us[keep], self.tokens[keep])

    @property
    def counts_known(self) -> bool:
        """Whether every chunk says how many tokens it held."""
        return not bool(np.isnan(self.tokens).any())


def token_gaps(chunks: pd.DataFrame, requests: pd.DataFrame) -> Gaps:
    """The gaps of the attempts that counted.

    Reads chunks (request_id, attempt, gap_us, tokens) and requests (request_id,
    attempts, row). BadEvidence when a chunk row's lists do not fit together.
    """
    ids = requests["request_id"].to_numpy()
    found, counted = _counted(chunks, requests)
    rows: list[int] = []
    gap_lists: list[npt.NDArray[np.int64]] = []
    token_lists: list[npt.NDArray[np.float64]] = []
    gaps, tokens = chunks["gap_us"].to_numpy(), chunks["tokens"].to_numpy()
    for i in np.flatnonzero(counted):
        gap, count = _lists(gaps[i], tokens[i], str(ids[int(found[i])]))
        rows.append(int(found[i]))
        gap_lists.append(gap)
        token_lists.append(count)
    lengths = np.array([g.size for g in gap_lists], dtype=np.int64)
    return Gaps(
        row=np.repeat(np.array(rows, dtype=np.int64), lengths),
        gap_us=_joined(gap_lists, np.int64),
        tokens=_joined(token_lists, np.float64),
    )


def chunk_counts(chunks: pd.DataFrame, requests: pd.DataFrame) -> npt.NDArray[np.float64]:
    """Token-bearing chunks of the attempt that counted, per request; NaN without any."""
    found, counted = _counted(chunks, requests)
    out = np.full(len(requests), np.nan)
    gaps = chunks["gap_us"].to_numpy()
    for i in np.flatnonzero(counted):
        out[int(found[i])] = 1 if gaps[i] is None else len(gaps[i]) + 1
    return out


def _counted(
    chunks: pd.DataFrame, requests: pd.DataFrame
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """For each row of chunks its request's place, and whether it is of the attempt that counted."""
    ids = requests["request_id"].to_numpy()
    place = pd.Series(np.arange(len(ids)), index=ids, dtype=np.int64)
    found = chunks["request_id"].map(place).to_numpy(dtype=np.float64, na_value=np.nan)
    attempts = requests["attempts"].to_numpy(dtype=np.float64)
    number = chunks["attempt"].to_numpy(dtype=np.float64, na_value=np.nan)
    known = ~np.isnan(found)
    counted = known.copy()
    counted[known] = attempts[found[known].astype(np.int64)] == number[known]
    return found, counted


def _lists(
    gap: Any, tokens: Any, request: str
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    gaps = np.asarray([] if gap is None else gap)
    if tokens is None or (isinstance(tokens, float) and np.isnan(tokens)):
        return gaps, np.full(gaps.size, np.nan)
    counts = np.asarray(tokens)
    if counts.dtype == object:
        counts = counts.astype(np.float64)
    if counts.size != gaps.size + 1:
        raise BadEvidence("chunks", "tokens", f"one longer than gap_us, request {request}")
    # The first chunk has no gap before it, so its extra tokens give no sample.
    return gaps, counts[1:]


def _joined(parts: list[Any], dtype: Any) -> Any:
    if not parts:
        return np.empty(0, dtype=dtype)
    out = np.concatenate(parts).astype(dtype)
    if dtype is np.float64:
        # A chunk of no token has no gap per token: its count is as good as unknown.
        out[out < 1] = np.nan
    return out
