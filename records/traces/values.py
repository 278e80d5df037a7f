"""Checks of single values in a trace: the value in its own type, or `Wrong`.

JSON does not tell 4 from 4.0, so a whole float counts as whole; a boolean is
never a number.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from records.evidence.canonical import is_number

Check = Callable[[Any], Any]
_MOST_TOKENS = 2**31 - 1
# A little over 30 years: later stamps are a Unix time that nobody subtracted.
_MOST_SECONDS = 1e9
_LONGEST_NAME = 200
_DEEPEST = 64
_ATTEMPT = re.compile(r"#[0-9]+$")


class Wrong(ValueError):
    """What would have been right, as the end of a sentence."""


def shown(value: Any) -> str:
    """A value as an error message quotes it: as JSON, shortened to one line."""
    return shortened(json.dumps(value, ensure_ascii=False, default=repr))


def shortened(text: str) -> str:
    """Foreign text fit for a one-line message: at most 60 characters, no control characters."""
    start = text if len(text) <= 60 else f"{text[:57]}..."
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in start)


def seconds(value: Any) -> float:
    """A finite number of seconds from 0."""
    if not is_number(value) or not 0 <= value <= _MOST_SECONDS:
        raise Wrong("a number of seconds from 0 to 1e9")
    return float(value) + 0.0  # -0.0 becomes 0.0


def seconds_above_zero(value: Any) -> float:
    """A finite number of seconds above 0."""
    if not is_number(value) or not 0 < value <= _MOST_SECONDS:
        raise Wrong("a number of seconds above 0")
    return float(value)


def tokens(value: Any) -> int:
    """A whole number from 0 that fits the evidence columns."""
    if not is_number(value) or value != int(value) or not 0 <= value <= _MOST_TOKENS:
        raise Wrong("a whole number from 0")
    return int(value)


def flag(value: Any) -> bool:
    """true or false."""
    if not isinstance(value, bool):
        raise Wrong("true or false")
    return value


def text(value: Any) -> str:
    """Any text that UTF-8 can carry."""
    if not isinstance(value, str):
        raise Wrong("text")
    return value


def name(value: Any) -> str:
    """A short name on one line; a whole number is taken as its digits."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_NAME or not value.isprintable():
        raise Wrong(f"a name of 1 to {_LONGEST_NAME} printable characters")
    return value


def header_text(value: Any) -> str:
    """A name that can travel as an HTTP header, as request ids do.

    `#2` at the end is how a second attempt is told from the first, so no id
    may end that way.
    """
    found = value if isinstance(value, str) else name(value)
    if not found.isascii() or found != found.strip() or not 0 < len(found) <= _LONGEST_NAME:
        raise Wrong(f"1 to {_LONGEST_NAME} ASCII characters (it is sent as a request header)")
    if _ATTEMPT.search(found):
        raise Wrong("a name that does not end in # and digits (attempts are marked so)")
    return name(found)


def mapping(value: Any) -> dict[str, Any]:
    """A JSON object."""
    if not isinstance(value, dict):
        raise Wrong("a JSON object")
    _check_depth(value)
    return value


def objects(value: Any) -> list[dict[str, Any]]:
    """A list of JSON objects."""
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise Wrong("a list of JSON objects")
    _check_depth(value)
    return value


def messages(value: Any) -> list[dict[str, Any]]:
    """A conversation: at least one object, each with a `role`."""
    if not value or not isinstance(value, list) or not all(_is_message(item) for item in value):
        raise Wrong("a list of messages, each an object with a role")
    _check_depth(value)
    return value


def _check_depth(value: Any, room: int = _DEEPEST) -> None:
    """Refuse towers of brackets that a recursive writer could not put out again."""
    if room == 0:
        raise Wrong(f"at most {_DEEPEST} levels of nesting")
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for item in inner:
        _check_depth(item, room - 1)


def _is_message(item: Any) -> bool:
    return isinstance(item, dict) and isinstance(item.get("role"), str)


def prefix(value: Any) -> list[dict[str, Any]]:
    """Shared blocks in order: objects of exactly `id` and `tokens`."""
    if not isinstance(value, list) or not all(
        isinstance(block, dict) and set(block) == {"id", "tokens"} for block in value
    ):
        raise Wrong('a list of {"id", "tokens"} blocks')
    return [{"id": name(block["id"]), "tokens": tokens(block["tokens"])} for block in value]
