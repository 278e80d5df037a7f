"""Whether a record from elsewhere has the shape of impakt.record/1.

Lists and pages read records by that shape: one that a stranger misshaped would
break every page it stands on. Values may be null anywhere; keys that this
version does not know are kept and not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from records.errors import BadEvidence
from records.evidence.canonical import is_number
from records.evidence.columns import OUTCOMES

# What a column of whole numbers holds in any database, and what a page can still print.
MOST_COUNTED = 2**31 - 1
_LARGEST = 1e15
_GRADES = ("measured", "derived", "declared", "not_observable")


class _Wrong(Exception):
    """Where in the record, and what was expected there."""


Check = Callable[[Any, str], None]


def _number(value: Any, path: str) -> None:
    if value is not None and not (is_number(value) and abs(value) <= _LARGEST):
        raise _Wrong(path, f"a number up to {_LARGEST:g}, or null")


def _count(value: Any, path: str) -> None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if value is not None and not (whole and 0 <= value <= MOST_COUNTED):
        raise _Wrong(path, f"a whole number from 0 to {MOST_COUNTED}, or null")


def _text(value: Any, path: str) -> None:
    if value is not None and not isinstance(value, str):
        raise _Wrong(path, "text or null")


def _truth(value: Any, path: str) -> None:
    if value is not None and not isinstance(value, bool):
        raise _Wrong(path, "true, false or null")


def _grade(value: Any, path: str) -> None:
    if value is not None and value not in _GRADES:
        raise _Wrong(path, f"one of {', '.join(_GRADES)}")


def _anything(value: Any, path: str) -> None:
    """Declared by whoever ran it; shown as it is."""


def _all(names: str, check: Check) -> dict[str, Check]:
    return dict.fromkeys(names.split(), check)


def _object(known: Mapping[str, Check], needed: tuple[str, ...] = ()) -> Check:
    def check(value: Any, path: str) -> None:
        if value is None:
            return
        if not isinstance(value, Mapping):
            raise _Wrong(path, "an object or null")
        for name in needed:
            if value.get(name) is None:
                raise _Wrong(f"{path}.{name}", "a value")
        for name, inner in known.items():
            inner(value.get(name), f"{path}.{name}")

    return check


def _map(inner: Check) -> Check:
    def check(value: Any, path: str) -> None:
        if value is not None and not isinstance(value, Mapping):
            raise _Wrong(path, "an object or null")
        for name, item in (value or {}).items():
            inner(item, f"{path}.{name}")

    return check


def _list(inner: Check) -> Check:
    def check(value: Any, path: str) -> None:
        if value is not None and not isinstance(value, list):
            raise _Wrong(path, "a list or null")
        for i, item in enumerate(value or []):
            if item is None:
                raise _Wrong(f"{path}[{i}]", "a value")
            inner(item, f"{path}[{i}]")

    return check


_REASONS = {"reasons": _map(_text)}
_ABOUT: dict[str, Check] = {"grade": _grade, "reason": _text}
_PERCENTILE = _object(_all("value low high", _number) | {"supported": _truth})
_I = _object(_all("value low high", _number) | {"n": _count} | _ABOUT)
_Q = _object(
    _all("mean min max", _number) | {"n": _count} | _all("p50 p90 p95 p99 p99_9", _PERCENTILE)
    | _ABOUT
)  # fmt: skip
_PHASE = _object(_all("total_s share p50_s p95_s", _number) | _REASONS | {"grade": _grade})
_DOMINANT = _object({"phase": _text, "share": _number, "grade": _grade} | _REASONS)
_BURST = _object(_all("at_s peak recovered_after_s", _number) | {"censored": _truth})
_ERROR = _object(_all("n median p99", _number) | _REASONS)
_LEVEL = _object(
    _all("events_per_s requests cpu_fraction", _number)
    | _all("ttft_error_s itl_error_s e2e_error_s schedule_lag_s", _ERROR) | _REASONS
)  # fmt: skip
_CALIBRATION = _object(
    {
        "date": _text, "age_s": _number, "host": _object({}), "error_bound_s": _number,
        "levels": _object(_all("light half full", _LEVEL) | _REASONS),
        "ceiling": _object(
            {"events_per_s": _number, "bounded_by": _text, "text": _text} | _REASONS
        ),
        "cpu": _object(_all("us_per_token us_per_request", _number) | _REASONS),
    }
    | _REASONS
)  # fmt: skip
# The keys that a record has for the whole and for each class.
_FIGURES: dict[str, Check] = {
    "arrivals": _object(
        _all("offered_per_s sent_per_s cv burstiness peak_per_s", _number) | _REASONS
    ),
    "concurrency": _object({"declared": _number, "observed": _Q} | _REASONS),
    "counts": _object(
        _all(
            "attempted workflows accepted unjudged severe_failures authority_violations attempts "
            "retries fallbacks tool_calls tools_failed recovery_events", _count,
        )
        | dict.fromkeys(OUTCOMES, _count) | {"review_minutes": _number} | _REASONS,
        needed=("attempted", *OUTCOMES),
    ),
    "latency": _object(
        _all(
            "ttft_s ttft_from_send_s first_visible_s itl_s chunk_gap_s tpot_s e2e_s "
            "client_wait_s time_to_failure_s chunks_per_receive first_token_bound_s", _Q,
        )
        | {"itl_basis": _text} | _REASONS
    ),
    "goodput": _object(
        _all("attempted_per_s completed_per_s output_tokens_per_s amplification", _number)
        | _all(
            "completed_fraction slo_attainment slo_attainment_of_attempted accepted_fraction "
            "accepted_per_s", _I,
        )
        | _REASONS
    ),
    "phases": _object(
        _all("client backoff queue prefill queue_prefill decode external residual", _PHASE)
        | {"dominant": _object({"median": _DOMINANT, "tail": _DOMINANT})}
    ),
    "stability": _object(
        {
            "verdict": _text, "backlog_start": _number, "backlog_end": _number,
            "slope_per_s": _I, "deferred": _map(_count), "bursts": _list(_BURST),
        }
        | _REASONS
    ),
    "fairness": _object(
        _all("min_class_attainment max_class_attainment jain", _number)
        | {
            "starved": _list(_text), "longest_wait_without_service_s": _map(_number),
            "slowdown_by_size": _list(_object({})),
        }
        | _REASONS
    ),
    "cache": _object(
        {"declared": _text, "observed_hit_ratio": _number, "agrees": _truth} | _REASONS
    ),
    "speculation": _object({}),
    "tools": _object(_all("calls failed completion_fraction exclusive_s", _number) | _REASONS),
    "exceptions": _object(_all("handled minutes", _number) | _REASONS),
    "cost": _object({}),
    "energy": _object({}),
    "generator": _object(
        {
            "schedule_lag_s": _Q, "cpu_fraction": _number, "missed": _count, "loop_stall_s": _Q,
            "transport": _object({"name": _text}), "stamp_source": _text,
            "calibration": _CALIBRATION,
        }
        | _REASONS
    ),
    "lengths": _object(_all("prompt_tokens output_tokens", _Q)),
    "diagnosis": _list(_object({})),
    **_REASONS,
}  # fmt: skip
_DECLARED_OBJECTS = "policies versions host configuration end declared_window"
_RECORD = _object(
    _FIGURES
    | {
        "schema": _text, "analysis_version": _text, "valid": _truth,
        "inputs": _list(_object({"name": _text, "sha256": _text, "bytes": _number})),
        "invalid_reasons": _list(
            _object({"code": _text, "text": _text, "figure": _anything}, needed=("code", "text"))
        ),
        "notes": _list(_text),
        "run": _object(_all(_DECLARED_OBJECTS, _object({})) | _REASONS),
        "window": _object(_all("start_s end_s duration_s warmup_s drain_s", _number)),
        "classes": _map(_object(_FIGURES, needed=("counts",))),
    },
    needed=("analysis_version", "valid", "run", "counts", "latency", "goodput"),
)  # fmt: skip


def check_shape(record: Mapping[str, Any], where: str) -> None:
    """BadEvidence naming the field of a record that is not of its kind."""
    try:
        _RECORD(record, "")
    except _Wrong as wrong:
        path, expected = wrong.args
        raise BadEvidence(where, path.lstrip("."), expected) from None
