"""What a run says about itself: the record's `run` block and its window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from records.analysis.figures import Absent, later
from records.analysis.frames import Window
from records.errors import BadEvidence
from records.evidence.canonical import sha256_of
from records.evidence.workload import with_hashes

# Configuration tuple key -> name in the record.
_TUPLE = {
    "artifact_digest": "artifact", "tokenizer": "tokenizer", "runtime": "runtime",
    "kernels": "kernels", "hardware": "hardware", "precision": "precision",
    "parallelism": "parallelism", "scheduler": "scheduler", "batching": "batch",
    "queue_policy": "queue_policy", "cache_policy": "cache_policy", "sampling": "sampling",
    "speculative": "speculative", "placement": "placement",
}  # fmt: skip
_RUN = (
    "run_id", "state", "owner", "url", "api", "transport", "capture", "cache_state",
    "simulated", "replicate", "configuration_fingerprint", "policies", "versions", "host",
)  # fmt: skip
_CUT_SHORT = ("interrupted", "failed", "stopped", "running")
NOT_DECLARED = "not declared"


def run_block(run: Mapping[str, Any], workload: Mapping[str, Any], location: str) -> dict[str, Any]:
    """The declared fields of a run; what nobody declared is absent, not empty.

    `location` is the content address of the evidence: a path would make the
    same evidence give another record after a move.
    """
    tuple_ = run.get("configuration") or {}
    trace = run.get("trace") or {}
    hashes = hashes_of(workload)
    out = {name: _declared(run.get(name)) for name in _RUN}
    out["model"] = _declared(tuple_.get("model") or run.get("model"))
    out |= {name: _declared(tuple_.get(key)) for key, name in _TUPLE.items()}
    out["configuration"] = dict(tuple_)
    out["date"] = _declared(run.get("created_at"))
    out["expires"] = Absent("no expiry was set")
    out["triggers"] = Absent("no change trigger was set")
    out["evidence_location"] = location
    out["end"] = _declared(run.get("end"))
    for name in ("trace_hash", "demand_hash", "prompt_hash"):
        out[name] = _declared(trace.get(name))
    out["workload"] = _declared(workload.get("name"))
    out["workload_hash"] = hashes["workload"]
    for name in ("rubric", "case_set", "evidence_packet"):
        out[f"{name}_hash"] = hashes[name] or Absent(f"the workload has no {name}")
    out["objectives_hash"] = sha256_of(
        {k: v.get("objective") for k, v in (workload.get("classes") or {}).items()}
    )
    out["declared_window"] = _declared(run.get("window"))
    return out


def hashes_of(workload: Mapping[str, Any]) -> dict[str, Any]:
    """The workload's hashes, computed where the evidence does not carry them."""
    hashes: dict[str, Any] = workload.get("hashes") or with_hashes(workload)["hashes"]
    return hashes


def _declared(value: Any) -> Any:
    return Absent(NOT_DECLARED) if value is None else value


def location_of(entries: list[dict[str, Any]]) -> str:
    """The content address of a set of files: sha256 over their names, hashes and sizes."""
    return f"sha256:{sha256_of(sorted(entries, key=lambda e: str(e['name'])))}"


def window_of(run: Mapping[str, Any], tables: Mapping[str, pd.DataFrame]) -> Window:
    """The window the run measured: as declared, but not beyond the end of a run cut short.

    Dividing what five seconds saw by a window of sixty would invent a low rate.
    """
    declared = run.get("window")
    if not isinstance(declared, Mapping):
        raise BadEvidence("run.json", "window", "start_s and end_s")
    start, end = _number(declared, "start_s"), _number(declared, "end_s")
    if end < start:
        raise BadEvidence("run.json", "window.end_s", "not before window.start_s")
    policies = run.get("policies") or {}
    if run.get("state") in _CUT_SHORT:
        end = max(start, min(end, _ended(run, tables)))
    return Window(start, end, policies.get("warmup_s"), policies.get("drain_s"))


def _number(window: Mapping[str, Any], key: str) -> float:
    value = window.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadEvidence("run.json", f"window.{key}", "a number of seconds")
    return float(value)


def _ended(run: Mapping[str, Any], tables: Mapping[str, pd.DataFrame]) -> float:
    told = (run.get("end") or {}).get("ended_s")
    if told is not None:
        return float(told)
    seen = [0.0]
    for name, column in (
        ("requests", "intended_s"),
        ("requests", "end_s"),
        ("attempts", "end_s"),
        ("attempts", "sent_s"),
        ("requests", "last_token_s"),
    ):
        values = tables[name][column].to_numpy(dtype=np.float64, na_value=np.nan)
        seen.append(float(np.nanmax(values, initial=0.0)))
    return max(seen)


def window_block(window: Window) -> dict[str, Any]:
    """The record's window."""
    return {
        "start_s": window.start_s,
        "end_s": window.end_s,
        "duration_s": window.duration_s,
        "warmup_s": _declared(window.warmup_s),
        "drain_s": _declared(window.drain_s),
    }


def later_blocks() -> dict[str, Any]:
    """Blocks of the record that a later analysis version fills."""
    return {
        "speculation": later(),
        "exceptions": {"handled": later(), "minutes": later()},
        "cost": later(),
        "energy": later(),
        "diagnosis": later(),
    }
