"""The specification that `impakt trace make` reads: its keys, and what each must be.

```toml
name = "two classes"
seed = 1

[arrivals]
process = "gamma"          # constant | poisson | gamma, or trace = "other.jsonl"
rate_per_s = 5.0
cv = 2.0                   # gamma only
duration_s = 60            # or count = 300

[classes.interactive]
share = 3                  # weights, any scale
prompt_tokens = 400        # a number, or a distribution:
output_tokens = { distribution = "lognormal", median = 120, sigma = 0.8, max = 600 }
timeout_s = 30
```
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from records.errors import FieldError
from records.traces import values
from records.traces.lengths import LENGTHS
from records.traces.processes import PROCESSES
from records.traces.values import Wrong, shown

MOST_REQUESTS = 5_000_000
_TOP = ("name", "seed", "arrivals", "classes")
_PROCESS_KEYS = ("process", "rate_per_s", "cv", "duration_s", "count")
_CUT_KEYS = ("trace", "start_s", "end_s")
TIMES = ("cancel_after_s", "deadline_s", "timeout_s")
_CLASS_KEYS = ("share", "prompt_tokens", "output_tokens", *TIMES)


def read_spec(path: str | Path) -> Any:
    """The document in a .toml or .json file; FieldError when it is not readable as one."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FieldError(str(path), None, f"a readable UTF-8 file ({error})") from error
    is_json = Path(path).suffix == ".json"
    try:
        return json.loads(text) if is_json else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise FieldError(str(path), None, f"{'JSON' if is_json else 'TOML'} ({error})") from None


def check_spec(raw: Any, where: str) -> dict[str, Any]:
    """The specification with every default made explicit; FieldError names the wrong field."""
    spec = _table(raw, where, None, _TOP)
    seed = _value(values.tokens, spec.get("seed", 0), where, "seed")
    arrivals = _arrivals(spec.get("arrivals"), where)
    default: dict[str, Any] = {"default": {}} if "trace" not in arrivals else {}
    classes = _table(spec.get("classes", default), where, "classes", None)
    if not classes and "trace" not in arrivals:
        raise FieldError(where, "classes", "at least one class")
    checked = {
        _value(values.name, name, where, f"classes.{name}"): _class(part, where, f"classes.{name}")
        for name, part in classes.items()
    }
    if checked and not sum(part["share"] for part in checked.values()) > 0:
        raise FieldError(where, "classes", "shares that add up to more than 0")
    return {"name": spec.get("name"), "seed": seed, "arrivals": arrivals, "classes": checked}


def _arrivals(raw: Any, where: str) -> dict[str, Any]:
    if isinstance(raw, Mapping) and "trace" in raw:
        return _cut(_table(raw, where, "arrivals", _CUT_KEYS), where)
    spec = _table(raw, where, "arrivals", _PROCESS_KEYS)
    process = spec.get("process")
    if process not in PROCESSES:
        known = ", ".join(PROCESSES)
        raise FieldError(where, "arrivals.process", f"one of {known}, not {shown(process)}")
    takes = PROCESSES[process][1]
    if "cv" in spec and "cv" not in takes:
        raise FieldError(where, "arrivals.cv", f"no such parameter of a {process} process")
    for key in ("rate_per_s", *takes):
        spec[key] = _above_zero(spec.get(key), where, f"arrivals.{key}")
    _extent(spec, where)
    return spec


def _cut(spec: dict[str, Any], where: str) -> dict[str, Any]:
    """Arrivals taken from a window of a trace file."""
    spec["trace"] = _value(values.text, spec["trace"], where, "arrivals.trace")
    spec["start_s"] = _value(values.seconds, spec.get("start_s", 0.0), where, "arrivals.start_s")
    if "end_s" in spec:
        spec["end_s"] = _above_zero(spec["end_s"], where, "arrivals.end_s")
    return spec


def _extent(spec: dict[str, Any], where: str) -> None:
    """One of count and duration_s, and not more requests than anyone can replay."""
    if ("count" in spec) == ("duration_s" in spec):
        raise FieldError(where, "arrivals", "one of count and duration_s")
    if "count" in spec:
        spec["count"] = _value(values.tokens, spec["count"], where, "arrivals.count")
        expected = spec["count"]
    else:
        spec["duration_s"] = _above_zero(spec["duration_s"], where, "arrivals.duration_s")
        expected = spec["duration_s"] * spec["rate_per_s"]
    if not 1 <= expected <= MOST_REQUESTS and "count" in spec:
        raise FieldError(where, "arrivals.count", f"1 to {MOST_REQUESTS} requests, not {expected}")
    if expected > MOST_REQUESTS:
        wanted = f"at most {MOST_REQUESTS} requests expected (rate times duration)"
        raise FieldError(where, "arrivals.duration_s", f"{wanted}, not {expected:g}")


def _class(raw: Any, where: str, field: str) -> dict[str, Any]:
    spec = _table(raw, where, field, _CLASS_KEYS)
    share = spec.get("share", 1)
    if share != 0:
        share = _above_zero(share, where, f"{field}.share")
    out: dict[str, Any] = {"share": float(share)}
    out["prompt_tokens"] = _lengths(spec.get("prompt_tokens", 256), where, f"{field}.prompt_tokens")
    out["output_tokens"] = _lengths(spec.get("output_tokens", 128), where, f"{field}.output_tokens")
    for key in TIMES:
        if key in spec:
            out[key] = _above_zero(spec[key], where, f"{field}.{key}")
    return out


def _lengths(raw: Any, where: str, field: str) -> dict[str, Any]:
    if not isinstance(raw, Mapping):
        return {"distribution": "fixed", "value": _value(values.tokens, raw, where, field)}
    name = raw.get("distribution")
    if name not in LENGTHS:
        known = ", ".join(LENGTHS)
        raise FieldError(where, f"{field}.distribution", f"one of {known}, not {shown(name)}")
    _, needs, may = LENGTHS[name]
    spec = _table(raw, where, field, ("distribution", *needs, *may))
    for key in (*needs, *(key for key in may if key in spec)):
        check = _above_zero if key in ("median", "sigma") else _whole
        spec[key] = check(spec.get(key), where, f"{field}.{key}")
    if spec.get("min", 0) > spec.get("max", math.inf):
        raise FieldError(where, f"{field}.min", f"at most max ({spec['max']}), not {spec['min']}")
    return spec


def _table(raw: Any, where: str, field: str | None, known: Iterable[str] | None) -> dict[str, Any]:
    if not isinstance(raw, Mapping):
        raise FieldError(where, field, f"a table, not {shown(raw)}")
    for key in raw:
        if known is not None and key not in known:
            path = key if field is None else f"{field}.{key}"
            raise FieldError(where, path, f"one of {', '.join(known)}")
    return dict(raw)


def _above_zero(value: Any, where: str, field: str) -> float:
    return float(_value(values.seconds_above_zero, value, where, field, "a number above 0"))


def _whole(value: Any, where: str, field: str) -> int:
    return int(_value(values.tokens, value, where, field))


def _value(
    check: values.Check, value: Any, where: str, field: str, expected: str | None = None
) -> Any:
    try:
        return check(value)
    except Wrong as wrong:
        raise FieldError(where, field, f"{expected or wrong}, not {shown(value)}") from None
