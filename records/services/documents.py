"""Documents that people hand in: JSON that any database keeps as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from records.errors import BadInput, FieldError
from records.evidence.canonical import normalise


def checked(document: Any, where: str, error: type[FieldError]) -> dict[str, Any]:
    """The canonical twin of a JSON object; `error` names the field that is not JSON.

    A NUL character is refused: PostgreSQL cannot keep it in JSON.
    """
    if not isinstance(document, Mapping):
        raise error(where, None, "a JSON object")
    try:
        plain: dict[str, Any] = normalise(dict(document))
    except BadInput as found:
        raise error(where, None, str(found)) from found
    _refuse_nul(plain, "", where, error)
    return plain


def _refuse_nul(value: Any, path: str, where: str, error: type[FieldError]) -> None:
    if isinstance(value, str):
        if "\0" in value:
            raise error(where, path, "text without NUL characters")
    elif isinstance(value, list):
        for i, item in enumerate(value):
            _refuse_nul(item, f"{path}[{i}]", where, error)
    elif isinstance(value, dict):
        for key, item in value.items():
            _refuse_nul(key, path, where, error)
            _refuse_nul(item, f"{path}.{key}".lstrip("."), where, error)


def named(value: Any, field: str, where: str, error: type[FieldError], longest: int = 120) -> str:
    """A name of 1 to `longest` printable characters, without white space around it."""
    text = value.strip() if isinstance(value, str) else ""
    if not 0 < len(text) <= longest or not text.isprintable():
        raise error(where, field, f"a name of 1 to {longest} printable characters")
    return text
