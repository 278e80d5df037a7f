"""Whether a request is tried again and when: `--retries`, docs/methods/load.md "Retries".

Waits grow exponentially under full jitter, drawn from the run's and the request's names, so
that two runs of one id wait alike and no two requests come back together.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal

from runners.load.attempt import Attempt

BASE_S, CAP_S = 0.5, 30.0
# A server that asks for more than this is taken to mean "not in this run".
MAX_RETRY_AFTER_S = 600.0
# Client errors that say "later" rather than "not like this".
LATER_STATUSES = frozenset({408, 425, 429})
_KINDS = frozenset(
    {"connect", "connection_reset", "truncated", "empty_response", "stream_error", "timeout"}
)
_SECONDS = re.compile(r"\d+(\.\d+)?", re.ASCII)
GaveUp = Literal["used_up", "retry_after_too_long", "deadline"]


@dataclass(frozen=True)
class RetryPolicy:
    """How often one request may be tried again, and how long it waits before it is."""

    retries: int
    run_id: str

    def told(self) -> dict[str, Any] | None:
        """`policies.retry` of run.json; None when nothing is retried."""
        if not self.retries:
            return None
        return {
            "base_s": BASE_S, "cap_s": CAP_S, "jitter": "full", "seed": "run_id/request_id/attempt",
            "max_retry_after_s": MAX_RETRY_AFTER_S,
        }  # fmt: skip

    def wait_s(self, attempt: Attempt, clock: datetime | None = None) -> float | GaveUp:
        """Seconds from the end of a failed attempt to the next, or why there is none.

        The server's Retry-After is the least it waits, and the jitter comes on top of it: all
        whom it refused at once would otherwise return at once.
        """
        if attempt.number > self.retries:
            return "used_up"
        asked_s = retry_after_s(attempt.retry_after, clock or datetime.now(UTC))
        if asked_s > MAX_RETRY_AFTER_S:
            return "retry_after_too_long"
        ceiling_s = min(CAP_S, BASE_S * 2.0 ** (attempt.number - 1))
        return asked_s + ceiling_s * self._drawn(attempt)

    def _drawn(self, attempt: Attempt) -> float:
        """A number in [0, 1) that is the same in every process."""
        seed = f"{self.run_id}/{attempt.request_id}/{attempt.number}".encode()
        return int.from_bytes(hashlib.sha256(seed).digest()[:6]) / 2**48


def may_retry(attempt: Attempt) -> bool:
    """Whether what became of the attempt may pass.

    Never after a whole answer, nor after an error of ours to correct: other 4xx, redirects,
    names, certificates, bytes that are no answer. A timeout is one of the attempt, not of the
    request's deadline; the caller knows which.
    """
    status = attempt.http_status
    if status is not None and not 200 <= status < 300:
        return status >= 500 or status in LATER_STATUSES
    return attempt.error_kind in _KINDS and not attempt.answer.done


def retry_after_s(text: str | None, clock: datetime) -> float:
    """What a Retry-After header asks for, from `clock` on; 0 when it asks nothing we can read."""
    text = (text or "").strip()
    if _SECONDS.fullmatch(text):
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return 0.0
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - clock).total_seconds())
