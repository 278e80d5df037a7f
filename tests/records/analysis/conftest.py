"""Hand-made runs: a request is its arrival and the times at which its tokens came."""

from __future__ import annotations

import itertools
import json

import pandas as pd
import pyarrow as pa
import pytest

from records.analysis.record import assemble, evidence_of
from records.evidence.folder import write_folder
from records.evidence.judgments import Judgments
from records.evidence.tables import table_of
from records.evidence.workload import check_workload, default_workload

_NULLABLE = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}


def request_row(rid, at, tokens=(), **over):
    """A requests row, an attempts row and a chunks row for one request.

    `tokens` are the arrival times of the token-bearing chunks, `per_chunk` the
    tokens each holds (None: unknown), `n` the output tokens.
    """
    per_chunk = over.pop("per_chunk", [1] * len(tokens))
    n = over.pop("n", sum(per_chunk) if per_chunk else None)
    sent = over.pop("sent", at)
    outcome = over.pop("outcome", "completed")
    end = over.pop("end", tokens[-1] if tokens else None)
    first = tokens[0] if tokens else None
    last = tokens[-1] if tokens else None
    attempt_over = over.pop("attempt", {})
    shared = {
        "first_token_s": first, "first_visible_token_s": first, "last_token_s": last,
        "end_s": end, "outcome": outcome, "output_tokens": n, "prompt_tokens": 10,
    }  # fmt: skip
    request = {
        "request_id": rid, "workflow_id": rid, "class": "default", "intended_s": at,
        "attempts": 0 if sent is None else 1, "fallback": False, "in_window": True,
        **shared, **over,
    }  # fmt: skip
    if sent is None:
        return request, None, None
    attempt = {
        "request_id": rid, "attempt": 1, "sent_s": sent, "tool_calls": 0,
        "phase_grade": "not_observable", "token_count_source": "usage", "connection": "new",
        **shared, **attempt_over,
    }  # fmt: skip
    chunk = None
    if tokens:
        micro = [round(t * 1e6) for t in tokens]
        gaps = [b - a for a, b in itertools.pairwise(micro)]
        chunk = {
            "request_id": rid, "attempt": 1, "first_us": micro[0], "gap_us": gaps,
            "tokens": per_chunk,
        }  # fmt: skip
    return request, attempt, chunk


def tables_of(*rows, tools=(), more_attempts=()):
    """The evidence tables of some `request_row`s, as frames."""
    parts = {
        "requests": [r[0] for r in rows],
        "attempts": [r[1] for r in rows if r[1]] + list(more_attempts),
        "chunks": [r[2] for r in rows if r[2]],
        "tools": list(tools),
    }
    return {
        name: pd.DataFrame(table_of(name, part).to_pandas(types_mapper=_NULLABLE.get))
        for name, part in parts.items()
    }


def run_json(window=(0.0, 10.0), **over):
    """A completed run with a window."""
    base = {
        "schema": "impakt.run/1", "run_id": "r1", "state": "completed",
        "created_at": "2026-01-01T00:00:00Z", "owner": "ada", "model": "m",
        "url": "http://127.0.0.1:1/v1", "api": "chat", "configuration": {"model": "m"},
        "configuration_fingerprint": "f" * 64,
        "trace": {"trace_hash": "t" * 64, "demand_hash": "d" * 64, "prompt_hash": "p" * 64},
        "cache_state": "warm", "policies": {"max_concurrency": None, "retries": 0},
        "window": {"start_s": window[0], "end_s": window[1]}, "capture": "full",
        "simulated": True, "end": {"ended_s": window[1], "reason": "done", "text": "done"},
        "generator": {"cpu_s": 1.0, "wall_s": 10.0, "loop_stall_max_s": 0.001},
    }  # fmt: skip
    return base | over


class Made:
    """Builders for tests of the analysis."""

    row = staticmethod(request_row)
    tables = staticmethod(tables_of)
    run = staticmethod(run_json)

    @staticmethod
    def workload(**parts):
        """A checked workload; `objective` gives every named class the same targets."""
        return check_workload({**parts}, "test") if parts else default_workload()

    @staticmethod
    def evidence(*rows, run=None, workload=None, judgments=None, **more):
        work = workload or default_workload()
        said = judgments or Judgments({}, [], has_rubric=False, reason="the workload has no rubric")
        return evidence_of(run or run_json(), work, tables_of(*rows, **more), said)

    @classmethod
    def record(cls, *rows, **more):
        """The record of some rows; never with a NaN."""
        record = assemble(cls.evidence(*rows, **more), [], "sha256:0")
        json.dumps(record, allow_nan=False)
        return record

    @staticmethod
    def folder(path, *rows, run=None, workload=None, outputs=None, trace=None):
        return write_folder(
            path, run or run_json(), workload or default_workload(), trace,
            tables_of(*rows), outputs,
        )  # fmt: skip


@pytest.fixture
def made():
    return Made
