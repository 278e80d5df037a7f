"""What this host's load generator could do when it was last measured, beside a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from records.analysis.figures import Absent
from records.evidence.canonical import is_number

LEVELS = ("light", "half", "full")
ERRORS = ("ttft_error_s", "itl_error_s", "e2e_error_s", "schedule_lag_s")
NOT_CALIBRATED = "this host was not calibrated: run impakt calibrate"
OF_THE_RUN = "of the whole run, see generator.calibration there"
_HOST = ("cpu_model", "cores", "kernel", "python", "impakt", "transport", "stamp_source")


def calibration(run: Mapping[str, Any]) -> dict[str, Any] | Absent:
    """The figures of run.json's `calibration` (`impakt.calibration/1`); Absent without one.

    Each level has the median and p99 of its errors, client minus truth, and their
    n. What a document does not hold, or holds in another form, is null with a reason.
    """
    told = run.get("calibration")
    if not isinstance(told, Mapping):
        return Absent(NOT_CALIBRATED)
    levels, ceiling, cpu = _part(told, "levels"), _part(told, "ceiling"), _part(told, "cpu")
    return {
        "date": _text(told, "date"),
        "age_s": _number(told, "age_s"),
        "host": {name: _plain(_part(told, "host"), name) for name in _HOST},
        "error_bound_s": _number(told, "error_bound_s"),
        "levels": {name: _level(levels.get(name)) for name in LEVELS},
        "ceiling": {
            "events_per_s": _number(ceiling, "events_per_s"),
            "bounded_by": _text(ceiling, "bounded_by"),
            "text": _text(ceiling, "text"),
        },
        "cpu": {name: _number(cpu, name) for name in ("us_per_token", "us_per_request")},
    }


def _level(level: Any) -> dict[str, Any] | Absent:
    if not isinstance(level, Mapping):
        return Absent("no such load held")
    out: dict[str, Any] = {
        name: _number(level, name) for name in ("events_per_s", "requests", "cpu_fraction")
    }
    for name in ERRORS:
        spread = _part(level, name)
        out[name] = {key: _number(spread, key) for key in ("n", "median", "p99")}
    return out


def _part(holder: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = holder.get(name)
    return value if isinstance(value, Mapping) else {}


def _number(holder: Mapping[str, Any], name: str) -> float | Absent:
    value: Any = holder.get(name)
    return value if is_number(value) else Absent("not in the calibration")


def _text(holder: Mapping[str, Any], name: str) -> str | Absent:
    value = holder.get(name)
    return value if isinstance(value, str) else Absent("not in the calibration")


def _plain(holder: Mapping[str, Any], name: str) -> str | float | Absent:
    number = _number(holder, name)
    return _text(holder, name) if isinstance(number, Absent) else number
