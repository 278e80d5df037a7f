"""One byte form for one JSON value, so that equal things have equal hashes.

Sorted keys, no insignificant white space, numbers normalised (1.0 is 1, -0.0
is 0), text in Unicode NFC, NaN and infinities refused.
"""

from __future__ import annotations

import hashlib
import json
import math
import unicodedata
from typing import Any

from records.errors import BadInput

_SAFE_INTEGER = 2**53
# Deeper towers of brackets would break recursive readers and writers.
_DEEPEST = 100


def is_number(value: Any) -> bool:
    """Whether a JSON value is a number that float64 can hold; a boolean is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer of more than 308 digits
        return False


def normalise(value: Any, path: str = "$") -> Any:
    """The canonical twin of a JSON value; BadInput names the path of what is not JSON.

    At most 100 levels of nesting are taken.
    """
    try:
        return _normalised(value, path, _DEEPEST)
    except _TooDeepError:
        raise BadInput(f"{path}: at most {_DEEPEST} levels of nesting") from None


class _TooDeepError(Exception):
    """A value nested deeper than `_DEEPEST`; its path would be as long as it is deep."""


def _normalised(value: Any, path: str, room: int) -> Any:
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if isinstance(value, float):
        return _number(value, path)
    if room == 0:
        raise _TooDeepError
    if isinstance(value, list | tuple):
        return [_normalised(item, f"{path}[{i}]", room - 1) for i, item in enumerate(value)]
    if isinstance(value, dict):
        return _object(value, path, room - 1)
    raise BadInput(f"{path}: {type(value).__name__} is not a JSON value")


def _number(value: float, path: str) -> int | float:
    if not math.isfinite(value):
        raise BadInput(f"{path}: {value} is not a JSON number")
    # Beyond 2**53 a float's integer digits are no longer its own.
    if value.is_integer() and abs(value) <= _SAFE_INTEGER:
        return int(value)
    return value


def _object(value: dict[Any, Any], path: str, room: int) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise BadInput(f"{path}: key {key!r} is not text")
        name = unicodedata.normalize("NFC", key)
        if name in out:
            raise BadInput(f"{path}: key {name!r} stands twice once normalised to NFC")
        out[name] = _normalised(item, f"{path}.{name}", room)
    return out


def canonical_bytes(value: Any) -> bytes:
    """UTF-8 bytes of the canonical form."""
    text = json.dumps(
        normalise(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return text.encode()


def sha256_of(value: Any) -> str:
    """Hex SHA-256 of the canonical form: the fingerprint of a configuration, trace or rubric."""
    return hashlib.sha256(canonical_bytes(value)).hexdigest()
