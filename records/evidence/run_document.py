"""What `run.json` may hold: each known field has the kind the analysis relies on.

Unknown fields are kept as they are; a known field is null, absent or of its kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from records.errors import BadEvidence
from records.evidence.canonical import is_number

SCHEMA = "impakt.run/1"
STATES = (
    "draft",
    "queued",
    "running",
    "analysing",
    "completed",
    "stopped",
    "interrupted",
    "failed",
)


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _object(value: Any) -> bool:
    return isinstance(value, Mapping)


def _number(value: Any) -> bool:
    return is_number(value)


def _not_negative(value: Any) -> bool:
    return _number(value) and value >= 0


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _truth(value: Any) -> bool:
    return isinstance(value, bool)


def _time(value: Any) -> bool:
    try:
        return isinstance(value, str) and datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


def _state(value: Any) -> bool:
    return value in STATES


def _cache(value: Any) -> bool:
    return value in ("warm", "cold")


Kind = tuple[Callable[[Any], bool], str]
TEXT: Kind = (_text, "text")
OBJECT: Kind = (_object, "an object")
NUMBER: Kind = (_number, "a number")
SECONDS: Kind = (_not_negative, "seconds, 0 or more")
COUNT: Kind = (_count, "a whole number, 0 or more")
TRUTH: Kind = (_truth, "true or false")
TIME: Kind = (_time, "an RFC 3339 time with its zone")

# Parents stand before their fields, so that a field is only looked for in an object.
FIELDS: dict[str, Kind] = {
    "run_id": TEXT,
    "state": (_state, f"one of {', '.join(STATES)}"),
    "created_at": TIME,
    "owner": TEXT,
    "model": TEXT,
    "url": TEXT,
    "api": TEXT,
    "configuration": OBJECT,
    "configuration_fingerprint": TEXT,
    "trace": OBJECT,
    "trace.trace_hash": TEXT,
    "trace.demand_hash": TEXT,
    "trace.prompt_hash": TEXT,
    "trace.requests": COUNT,
    "workload_hash": TEXT,
    "cache_state": (_cache, "warm or cold"),
    "policies": OBJECT,
    "policies.max_concurrency": COUNT,
    "policies.retries": COUNT,
    "policies.timeout_s": SECONDS,
    "policies.warmup_s": SECONDS,
    "policies.window_s": SECONDS,
    "policies.drain_s": SECONDS,
    "policies.mode": TEXT,
    "window": OBJECT,
    "window.start_s": NUMBER,
    "window.end_s": NUMBER,
    "transport": TEXT,
    "capture": TEXT,
    "simulated": TRUTH,
    "clock": OBJECT,
    "clock.started_at": TIME,
    "clock.monotonic_s": NUMBER,
    "host": OBJECT,
    "versions": OBJECT,
    "calibration": OBJECT,
    "replicate": COUNT,
    "end": OBJECT,
    "end.ended_s": NUMBER,
    "end.reason": TEXT,
    "end.text": TEXT,
    "generator": OBJECT,
    "generator.cpu_s": SECONDS,
    "generator.wall_s": SECONDS,
    "generator.loop_stall_max_s": SECONDS,
    "generator.lag_limit_s": SECONDS,
}


def check_run(run: Any, where: str) -> dict[str, Any]:
    """The run document when every known field has its kind; BadEvidence naming the field."""
    if not isinstance(run, Mapping):
        raise BadEvidence(where, None, "an object")
    if run.get("schema") != SCHEMA:
        raise BadEvidence(where, "schema", SCHEMA)
    for path, (fits, expected) in FIELDS.items():
        value = _at(run, path)
        if value is not None and not fits(value):
            raise BadEvidence(where, path, f"{expected}, not {str(value)[:60]!r}")
    return dict(run)


def _at(run: Mapping[str, Any], path: str) -> Any:
    value: Any = run
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
