"""Striking credentials out of whatever is kept or shown, in each form a server may echo them."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

# Parameters of a query whose values are not for others.
SECRET_NAME = re.compile(r"key|token|secret|password|sig|auth|code", re.IGNORECASE)
_STRUCK = "***"
# Shorter values of a URL occur in any text, and guard nothing.
_LEAST = 6
_HEX = re.compile(r"%[0-9A-F]{2}")


class Hider:
    """Strikes out some secrets: as they are, percent-encoded, in JSON, in HTML."""

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {form for secret in secrets if secret for form in _forms(secret)}
        self.longest = max(map(len, forms), default=0)
        # The longest first: a form may be the beginning of another.
        self._forms = sorted(forms, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, self._forms))) if forms else None

    def hide_in(self, value: Any) -> Any:
        """A text, or a JSON value of texts, with every occurrence struck out."""
        if self._pattern is None:
            return value
        if isinstance(value, str):
            return self._pattern.sub(_STRUCK, value)
        if isinstance(value, list):
            return [self.hide_in(item) for item in value]
        if isinstance(value, dict):
            return {key: self.hide_in(item) for key, item in value.items()}
        return value

    def hide_in_cut(self, text: str | None) -> str | None:
        """The same for a text that may have been cut in the middle of a credential."""
        if text is None:
            return None
        text = str(self.hide_in(text))
        for form in self._forms:
            for length in range(len(form) - 1, _LEAST - 1, -1):
                if text.endswith(form[:length]):
                    return text[:-length] + _STRUCK
        return text


def _forms(secret: str) -> Iterator[str]:
    in_json = json.dumps(secret)[1:-1]
    yield from (secret, in_json, in_json.replace("/", r"\/"), html.escape(secret))
    for encoded in (quote(secret, safe=""), quote(secret), quote_plus(secret)):
        yield encoded
        yield _HEX.sub(lambda found: found.group().lower(), encoded)


def url_secrets(url: str | None) -> Iterator[str]:
    """What a URL holds that is not for others: the password, also as it is sent, and keys.

    A user without a password is one: some services take a key as the user.
    """
    parts = urlsplit(url or "")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if user or password:
        yield base64.b64encode(f"{user}:{password}".encode()).decode()
        if len(password or user) >= _LEAST:
            yield password or user
    for name, value in parse_qsl(parts.query):
        if SECRET_NAME.search(name) and len(value) >= _LEAST:
            yield value
