"""The policies of a run: what each means, and that each is of the right form."""

from __future__ import annotations

from typing import Any

from records.errors import FieldError
from records.evidence.canonical import is_number

# None: no limit for max_concurrency, through the last arrival for window_s, until
# every open request has ended for drain_s. As LoadPlan of runners.load.
DEFAULTS: dict[str, Any] = {
    "max_concurrency": None,
    "retries": 0,
    "timeout_s": 600.0,
    "warmup_s": 0.0,
    "window_s": None,
    "drain_s": None,
    "mode": "open_loop",
    "capture": "full",
    "transport": "fast",
}
# As much as an arrival trace may ask for; more would overflow times of day.
_MOST_SECONDS = 1e9
_MOST_AT_ONCE = 1_000_000
_SECONDS = ("timeout_s", "warmup_s", "window_s", "drain_s")
_WORDS = {
    "mode": ("open_loop",),
    "capture": ("none", "hashes", "full"),
    "transport": ("fast", "httpx"),
}


def checked_policies(given: dict[str, Any]) -> dict[str, Any]:
    """All policies with what was not given filled in; FieldError names the one that is wrong."""
    if not isinstance(given, dict):
        raise FieldError("run", "policies", "an object")
    for key in given:
        if key not in DEFAULTS:
            raise FieldError("run", f"policies.{key}", f"one of {', '.join(DEFAULTS)}")
    policies = DEFAULTS | given
    _check_concurrency(policies["max_concurrency"])
    if policies["retries"] != 0 or isinstance(policies["retries"], bool):
        raise FieldError("run", "policies.retries", "0: only impakt load retries, in this version")
    for key in _SECONDS:
        _check_seconds(key, policies[key])
    for key, words in _WORDS.items():
        if policies[key] not in words:
            raise FieldError("run", f"policies.{key}", f"one of {', '.join(words)}")
    return policies


def _check_concurrency(value: Any) -> None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if value is not None and not (whole and 1 <= value <= _MOST_AT_ONCE):
        wanted = f"a whole number from 1 to {_MOST_AT_ONCE}, or nothing"
        raise FieldError("run", "policies.max_concurrency", wanted)


def _check_seconds(key: str, value: Any) -> None:
    if value is None and DEFAULTS[key] is None:
        return
    above_zero = key in ("timeout_s", "window_s")
    if not is_number(value) or not 0 <= value <= _MOST_SECONDS or (above_zero and value == 0):
        least = "above 0" if above_zero else "from 0"
        wanted = f"a number of seconds {least}, at most {_MOST_SECONDS:g}"
        raise FieldError("run", f"policies.{key}", wanted)
