"""Evidence tables made ready: one row per request with its derived times.

Every metric reads these frames, so that a definition (what E2E is, when a
request departs) stands in one place. METHODS 1; docs/methods/record.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from records.analysis.gaps import Gaps, chunk_counts, token_gaps
from records.errors import BadEvidence
from records.evidence.columns import OUTCOMES, TABLES

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Window:
    """The measurement window in seconds from run start, both ends inclusive."""

    start_s: float
    end_s: float
    warmup_s: float | None = None
    drain_s: float | None = None

    @property
    def duration_s(self) -> float:
        return max(0.0, self.end_s - self.start_s)

    def holds(self, times: Floats) -> Bools:
        """Which times lie in the window; a time that did not happen does not."""
        return (times >= self.start_s) & (times <= self.end_s)


@dataclass(frozen=True)
class Frames:
    """One run, or one service class of it.

    `requests` holds every request, also those outside the window; see
    `prepare_requests` for its columns.
    """

    requests: pd.DataFrame
    attempts: pd.DataFrame
    tools: pd.DataFrame
    gaps: Gaps
    window: Window

    @cached_property
    def arrived(self) -> pd.DataFrame:
        """The attempted requests: intended arrival in the window."""
        return self.requests[self.requests["in_window"]]

    @cached_property
    def completed(self) -> pd.DataFrame:
        """The attempted requests that completed."""
        return self.arrived[self.arrived["outcome"] == "completed"]

    @cached_property
    def tries(self) -> pd.DataFrame:
        """The attempts of the attempted requests."""
        return self.attempts[self.attempts["row"].isin(self.arrived["row"])]

    @cached_property
    def ran(self) -> pd.DataFrame:
        """The tool executions of the attempted requests."""
        return self.tools[self.tools["row"].isin(self.arrived["row"])]

    @cached_property
    def classes(self) -> list[str]:
        """Service classes of the attempted requests, sorted."""
        return sorted(set(self.arrived["class"]))

    def of_class(self, name: str) -> Frames:
        """The same run seen through one service class."""
        mine = self.requests[self.requests["class"] == name]
        return replace(
            self,
            requests=mine,
            attempts=self.attempts[self.attempts["row"].isin(mine["row"])],
            tools=self.tools[self.tools["row"].isin(mine["row"])],
        )


def column(frame: pd.DataFrame, name: str) -> Floats:
    """A numeric column as float64, null as NaN."""
    return frame[name].to_numpy(dtype=np.float64, na_value=np.nan)


def tidy(name: str, frame: pd.DataFrame) -> pd.DataFrame:
    """A table with plain dtypes: float64 (NaN null), bool (null is false), text or None."""
    out: dict[str, Any] = {}
    for field in TABLES[name]:
        if field.name not in frame:
            raise BadEvidence(name, field.name, "a column")
        series = frame[field.name]
        if pa.types.is_floating(field.type) or pa.types.is_integer(field.type):
            out[field.name] = pd.to_numeric(series).to_numpy(dtype=np.float64, na_value=np.nan)
        elif pa.types.is_boolean(field.type):
            out[field.name] = series.fillna(False).to_numpy(dtype=bool)
        elif pa.types.is_string(field.type):
            text = series.astype(object)
            out[field.name] = text.where(text.notna(), None).to_numpy()
        else:
            out[field.name] = series.astype(object).to_numpy()
    return pd.DataFrame(out)


def build_frames(tables: Mapping[str, pd.DataFrame], window: Window) -> Frames:
    """Frames of a run from its evidence tables requests, attempts, chunks and tools.

    BadEvidence names a missing column, an unknown outcome or a request that
    stands twice.
    """
    attempts = tidy("attempts", tables["attempts"])
    requests = prepare_requests(tidy("requests", tables["requests"]), attempts)
    requests["chunks"] = chunk_counts(tables["chunks"], requests)
    return Frames(
        requests=requests,
        attempts=_numbered(attempts, requests),
        tools=_numbered(tidy("tools", tables["tools"]), requests),
        gaps=token_gaps(tables["chunks"], requests),
        window=window,
    )


def _numbered(frame: pd.DataFrame, requests: pd.DataFrame) -> pd.DataFrame:
    """The frame with `row`, the row of its request; -1 for a request that is not there."""
    place = pd.Series(requests["row"].to_numpy(), index=requests["request_id"])
    rows = frame["request_id"].map(place).fillna(-1)
    return frame.assign(row=rows.astype(np.int64))


def prepare_requests(requests: pd.DataFrame, attempts: pd.DataFrame) -> pd.DataFrame:
    """The requests with what their attempts say and the times derived from both.

    Adds sent_s (first attempt), counted_sent_s, queue_s, prefill_s, decode_s,
    phase_grade, cached_tokens, tool_calls, receives, first_token_after_s,
    token_count_source (of the attempt that counted), backoff_s, departure_s and
    ttft_s, ttft_from_send_s, first_visible_s, tpot_s, e2e_s, client_wait_s. `row`
    numbers the requests.
    """
    _check(requests)
    out = requests.copy()
    alone = out["workflow_id"].isna()
    out.loc[alone, "workflow_id"] = out.loc[alone, "request_id"]
    out.loc[out["class"].isna(), "class"] = "default"
    out["row"] = np.arange(len(out))
    _join_attempts(out, attempts)
    _add_times(out)
    return out


def _check(requests: pd.DataFrame) -> None:
    unknown = sorted(set(requests["outcome"].map(str)) - set(OUTCOMES))
    if unknown:
        raise BadEvidence("requests", "outcome", f"one of {', '.join(OUTCOMES)}, not {unknown[0]}")
    twice = requests["request_id"].duplicated()
    if twice.any():
        name = requests.loc[twice, "request_id"].iloc[0]
        raise BadEvidence("requests", "request_id", f"each once, {name} stands twice")


# Numbers of the attempt that counted, beside the request.
_OF_COUNTED = (
    "queue_s", "prefill_s", "decode_s", "cached_tokens", "tool_calls", "receives",
    "first_token_after_s",
)  # fmt: skip


def _join_attempts(out: pd.DataFrame, attempts: pd.DataFrame) -> None:
    ordered = attempts.sort_values(["request_id", "attempt"], kind="stable")
    first = ordered.drop_duplicates("request_id").set_index("request_id")
    last = ordered.drop_duplicates("request_id", keep="last").set_index("request_id")
    ids = out["request_id"]
    out["sent_s"] = ids.map(first["sent_s"]).astype(np.float64)
    out["counted_sent_s"] = ids.map(last["sent_s"]).astype(np.float64)
    for name in _OF_COUNTED:
        out[name] = ids.map(last[name]).astype(np.float64)
    for name in ("phase_grade", "token_count_source"):
        out[name] = ids.map(last[name]).astype(object)
    # Pauses between tries: the next send minus the end of the try before it.
    pauses = ordered["sent_s"] - ordered.groupby("request_id")["end_s"].shift()
    waited = pauses.fillna(0.0).groupby(ordered["request_id"]).sum()
    out["backoff_s"] = ids.map(waited).astype(np.float64)


def _add_times(out: pd.DataFrame) -> None:
    intended, sent = column(out, "intended_s"), column(out, "sent_s")
    first, last, end = (column(out, c) for c in ("first_token_s", "last_token_s", "end_s"))
    done = (out["outcome"] == "completed").to_numpy()
    # A trailing usage chunk or [DONE] moves the end of the stream, not the answer.
    departure = np.where(done & ~np.isnan(last), last, end)
    out["departure_s"] = departure
    out["client_wait_s"] = sent - intended
    out["ttft_s"] = first - intended
    out["ttft_from_send_s"] = first - column(out, "counted_sent_s")
    out["first_visible_s"] = column(out, "first_visible_token_s") - intended
    out["e2e_s"] = np.where(done, departure - intended, np.nan)
    out["tpot_s"] = tpot_s(out)


def tpot_s(requests: pd.DataFrame) -> Floats:
    """Mean time per output token after the first, per request.

    Reads first_token_s, last_token_s (s), output_tokens.
    (last - first) / (output_tokens - 1); NaN below two tokens, where the count
    is unknown, and when all tokens came in one chunk (no time between them was
    seen). METHODS 1.
    """
    span = column(requests, "last_token_s") - column(requests, "first_token_s")
    n = column(requests, "output_tokens")
    defined = (n >= 2) & (span > 0)
    return np.where(defined, span / np.where(defined, n - 1, 1), np.nan)
