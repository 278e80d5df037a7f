"""What a server says when it fails, whatever the form, as one text."""

from __future__ import annotations

from typing import Any

import orjson

from runners.load.answers.dialect import BadEvent, mended, parse, shown

MAX_ERROR = 500


def error_text(error: Any) -> str:
    """The text of an error object or of an error that is a text."""
    said = error.get("message") if isinstance(error, dict) else error
    text = said if said and isinstance(said, str) else _json(said or error)
    return mended(text[:MAX_ERROR])


def error_event_text(data: bytes) -> str:
    """What an event named error says; its data may be anything."""
    try:
        value = parse(data)
    except BadEvent:
        value = data[:MAX_ERROR].decode("utf-8", "replace").strip()
    if isinstance(value, dict):
        value = value.get("error") or value
    return error_text(value or "an error event")


def only_object(body: bytes) -> bytes:
    """The object in a list of one, as some gateways answer with; BadEvent for other lists."""
    values = parse(body)
    if isinstance(values, list) and len(values) == 1 and isinstance(values[0], dict):
        return orjson.dumps(values[0])
    raise BadEvent(f"a JSON list instead of an answer: {shown(body)}")


def _json(value: Any) -> str:
    try:
        return orjson.dumps(value).decode()
    except (TypeError, orjson.JSONEncodeError):
        return str(value)
