"""What the simulator is told to be: batching, costs, queue, answers.

A profile is a flat TOML file; every field has a default, and a field that is
unknown or of the wrong form is refused by name.
"""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

BUILT_IN = Path(__file__).parent / "profiles"
BATCHING = ("continuous", "static")


class ProfileError(ValueError):
    """A profile that cannot be served: `where` names the file, `field` the field."""

    def __init__(self, where: str, field: str | None, expected: str) -> None:
        self.where, self.field, self.expected = where, field, expected
        super().__init__(": ".join(part for part in (where, field, expected) if part))


@dataclasses.dataclass(frozen=True, slots=True)
class Profile:
    """One simulated engine. Costs in seconds, limits in requests or tokens.

    `queue_limit` None means that nobody is refused; `api_key_env` None means
    that no key is asked for. `jitter` j multiplies each step by a seeded
    uniform factor between 1 - j and 1 + j.
    """

    name: str = "custom"
    model: str = "reference-1"
    seed: int = 1
    batching: str = "continuous"
    slots: int = 16
    max_prefill_tokens: int = 8192
    queue_limit: int | None = None
    retry_after_s: int = 1
    prefill_base_s: float = 0.005
    prefill_per_token_s: float = 0.00005
    decode_base_s: float = 0.008
    decode_per_sequence_s: float = 0.00005
    jitter: float = 0.0
    default_tokens: int = 128
    uncited_share: float = 0.0
    overlong_share: float = 0.0
    api_key_env: str | None = None
    token_times: bool = False


# field -> (lowest, highest) allowed value of a number.
_RANGES: dict[str, tuple[float, float]] = {
    "seed": (0, 2**63 - 1),
    "slots": (1, 4096),
    "max_prefill_tokens": (1, 10**9),
    "queue_limit": (0, 10**9),
    "retry_after_s": (0, 3600),
    "prefill_base_s": (0, 3600),
    "prefill_per_token_s": (0, 60),
    "decode_base_s": (0, 3600),
    "decode_per_sequence_s": (0, 60),
    "jitter": (0, 0.9),
    "default_tokens": (1, 10**6),
    "uncited_share": (0, 1),
    "overlong_share": (0, 1),
}
_TYPES = {f.name: str(f.type) for f in dataclasses.fields(Profile)}


def load_profile(name_or_path: str) -> Profile:
    """The profile of a file, or the built-in one of that name; ProfileError otherwise."""
    path = BUILT_IN / f"{name_or_path}.toml"
    if not re.fullmatch(r"[a-z0-9_-]+", name_or_path) or not path.is_file():
        path = Path(name_or_path)
    if not path.is_file():
        names = ", ".join(sorted(p.stem for p in BUILT_IN.glob("*.toml")))
        raise ProfileError(name_or_path, None, f"a profile file or one of {names}")
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ProfileError(str(path), None, f"a readable TOML file ({error})") from error
    return check_profile({"name": path.stem, **data}, str(path))


def check_profile(data: Mapping[str, Any], where: str) -> Profile:
    """The profile with these fields; ProfileError names the first wrong one."""
    for field, value in data.items():
        if field not in _TYPES:
            raise ProfileError(where, field, f"one of {', '.join(_TYPES)}")
        _check_field(where, field, value)
    profile = Profile(**data)
    if profile.decode_base_s + profile.decode_per_sequence_s <= 0:
        raise ProfileError(where, "decode_base_s", "a decode step that takes time, not 0 s")
    return profile


def _check_field(where: str, field: str, value: Any) -> None:
    kind = _TYPES[field]
    if value is None and "None" in kind:
        return
    if kind.startswith("str"):
        if not isinstance(value, str) or not value.strip():
            raise ProfileError(where, field, f"text, not {value!r}")
    elif kind == "bool":
        if not isinstance(value, bool):
            raise ProfileError(where, field, f"true or false, not {value!r}")
    else:
        _check_number(where, field, value, whole=kind.startswith("int"))
    if field == "batching" and value not in BATCHING:
        raise ProfileError(where, field, f"one of {', '.join(BATCHING)}, not {value!r}")


def _check_number(where: str, field: str, value: Any, *, whole: bool) -> None:
    low, high = _RANGES[field]
    word = "a whole number" if whole else "a number"
    right_type = isinstance(value, int) if whole else isinstance(value, int | float)
    if isinstance(value, bool) or not right_type:
        raise ProfileError(where, field, f"{word}, not {value!r}")
    if not low <= value <= high:
        said = f"{word} from {low:g} to {high:g}, not {str(value)[:40]}"
        raise ProfileError(where, field, said)
