"""What a run has come to so far: counts for its progress, its errors, and when to give up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

from runners.load.attempt import Attempt
from runners.load.retry import LATER_STATUSES

WRONG_KEY = (401, 403)
NOT_IMPLEMENTED = 501
# Answers that must all be the same refusal before the run gives up.
ENOUGH = 5


@dataclass(frozen=True)
class Refusal:
    """How the endpoint answered everything it was asked; `status` None: it was no answer."""

    status: int | None
    said: str

    @property
    def is_key(self) -> bool:
        """Whether it was our credentials."""
        return self.status in WRONG_KEY


class Tally:
    """Counters of one run; none of them grows with the number of requests."""

    def __init__(self, planned: int) -> None:
        self.planned = planned
        self.outcomes: Counter[str] = Counter()
        self.due = self.sent = self.in_flight = self.retried = 0
        self.given_up: Counter[str] = Counter()
        self.errors: dict[str, dict[str, Any]] = {}
        # Set when the first answers were all the same refusal.
        self.refusal: Refusal | None = None
        self.on_refusal: Callable[[], None] = lambda: None
        self._ended = 0
        self._first: int | str | None = None

    def ended(self, attempt: Attempt) -> None:
        """Counts an attempt whose row is written."""
        if attempt.error_kind is not None:
            first = {"count": 0, "example": attempt.error_text}
            self.errors.setdefault(attempt.error_kind, first)["count"] += 1
        if self._ended < ENOUGH:
            self._judge(attempt)

    def _judge(self, attempt: Attempt) -> None:
        refused = _refused_with(attempt.http_status) or _no_answer(attempt)
        if self._ended == 0:
            self._first = refused
        elif _group(refused) != _group(self._first):
            self._first = None
        self._ended += 1
        if self._ended == min(ENOUGH, self.planned) and self._first is not None:
            status = self._first if isinstance(self._first, int) else None
            self.refusal = Refusal(status, _message(attempt.error_text))
            self.on_refusal()

    def retries(self) -> dict[str, Any]:
        """`retries` of run.json: tries after the first, and why there were no more."""
        return {"sent": self.retried, "given_up": dict(self.given_up)}


def _refused_with(status: int | None) -> int | None:
    """A status by which a server says that it will never do this; None for all others."""
    if status is None or status in LATER_STATUSES:
        return None
    return status if 300 <= status < 500 or status == NOT_IMPLEMENTED else None


def _no_answer(attempt: Attempt) -> str | None:
    """Whether what came is none of the API's answers from its beginning: a page, another protocol.

    After a first token it is a server at fault, which is measured.
    """
    if attempt.error_kind == "bad_response" and attempt.answer.first_token_s is None:
        return attempt.error_kind
    return None


def _group(refused: int | str | None) -> int | str | None:
    return WRONG_KEY[0] if refused in WRONG_KEY else refused


def _message(text: str | None) -> str:
    """The server's own words out of an error body, whose shape differs from server to server."""
    try:
        body = orjson.loads(text or "")
    except orjson.JSONDecodeError:
        return text or ""
    error = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(error, dict):
        found = next((error[k] for k in ("message", "detail", "error") if error.get(k)), None)
        error = text if found is None else found
    return error if isinstance(error, str) else str(text)
