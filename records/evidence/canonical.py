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


def normalise(value: Any, path: str = "$") -> Any:
    """The canonical twin of a JSON value; BadInput names the path of what is not JSON."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if isinstance(value, float):
        return _number(value, path)
    if isinstance(value, list | tuple):
        return [normalise(item, f"{path}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, dict):
        return _object(value, path)
    raise BadInput(f"{path}: {type(value).__name__} is not a JSON value")


def _number(value: float, path: str) -> int | float:
    if not math.isfinite(value):
        raise BadInput(f"{path}: {value} is not a JSON number")
    # Beyond 2**53 a float's integer digits are no longer its own.
    if value.is_integer() and abs(value) <= _SAFE_INTEGER:
        return int(value)
    return value


def _object(value: dict[Any, Any], path: str) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise BadInput(f"{path}: key {key!r} is not text")
        name = unicodedata.normalize("NFC", key)
        if name in out:
            raise BadInput(f"{path}: key {name!r} stands twice once normalised to NFC")
        out[name] = normalise(item, f"{path}.{name}")
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
