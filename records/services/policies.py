"""The policies of a run: what each means, and that each is of the right form."""

from __future__ import annotations

import math
from typing import Any

from records.errors import FieldError

# None: no limit for max_concurrency, the whole trace for window_s.
DEFAULTS: dict[str, Any] = {
    "max_concurrency": None,
    "retries": 0,
    "timeout_s": 60.0,
    "warmup_s": 0.0,
    "window_s": None,
    "drain_s": 30.0,
    "mode": "open_loop",
    "capture": "full",
}
_WHOLE = {"max_concurrency": 1, "retries": 0}
_SECONDS = ("timeout_s", "warmup_s", "window_s", "drain_s")
_WORDS = {"mode": ("open_loop",), "capture": ("none", "hashes", "full")}


def checked_policies(given: dict[str, Any]) -> dict[str, Any]:
    """All policies with what was not given filled in; FieldError names the one that is wrong."""
    if not isinstance(given, dict):
        raise FieldError("run", "policies", "an object")
    for key in given:
        if key not in DEFAULTS:
            raise FieldError("run", f"policies.{key}", f"one of {', '.join(DEFAULTS)}")
    policies = DEFAULTS | given
    for key, least in _WHOLE.items():
        value = policies[key]
        if value is None and DEFAULTS[key] is None:
            continue
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise FieldError("run", f"policies.{key}", f"a whole number from {least}")
    for key in _SECONDS:
        _check_seconds(key, policies[key])
    for key, words in _WORDS.items():
        if policies[key] not in words:
            raise FieldError("run", f"policies.{key}", f"one of {', '.join(words)}")
    return policies


def _check_seconds(key: str, value: Any) -> None:
    if value is None and DEFAULTS[key] is None:
        return
    number = isinstance(value, int | float) and not isinstance(value, bool)
    above_zero = key in ("timeout_s", "window_s")
    if not number or not math.isfinite(value) or value < 0 or (above_zero and value == 0):
        wanted = "a number of seconds above 0" if above_zero else "a number of seconds from 0"
        raise FieldError("run", f"policies.{key}", wanted)
