"""The truth log: what really happened to each request, as the simulator knows it.

JSON Lines. Each start of the server writes a header that maps CLOCK_MONOTONIC
to UTC; then comes a line per request, refused ones included, written and
flushed before the last bytes of the answer: who has read those finds the line.
All `_s` are seconds on CLOCK_MONOTONIC.
"""

from __future__ import annotations

import dataclasses
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from runners.endpoint.profile import Profile

SCHEMA = "impakt.truth/1"


@dataclasses.dataclass(slots=True)
class Truth:
    """One request. Times are None when it did not come so far.

    `first_token_s` and `last_token_s` are taken just before a streamed answer's
    token chunks are written; None when it was not streamed. `prefill_done_s` is the end of
    the engine's prefill step; `end_s` is just before the last bytes, or the
    moment the client was seen gone. `outcome`: completed, cancelled (the client left), rejected
    (queue full or stopping), interrupted (the server stopped), bad_request,
    not_found, unauthorized.
    """

    request_id: str | None
    run: str | None
    received_s: float
    stream: bool | None = None
    prompt_tokens: int | None = None
    output_tokens: int = 0
    batch_size: int | None = None
    admitted_s: float | None = None
    prefill_done_s: float | None = None
    first_token_s: float | None = None
    last_token_s: float | None = None
    end_s: float | None = None
    status: int | None = None
    finish_reason: str | None = None
    outcome: str | None = None
    token_times_s: list[float] | None = None


class TruthLogError(OSError):
    """The disk does not take the truth log; the message names the file and why."""


class TruthLog:
    """Appends truths to a file; without a path it drops them. TruthLogError when that fails."""

    def __init__(self, path: Path | None, profile: Profile, seed: int) -> None:
        self._file: BinaryIO | None = None
        self._path = path
        if path is None:
            return
        try:
            # Unbuffered: a line is with the kernel when the call returns, even if we are killed.
            self._file = path.open("ab", buffering=0)
        except OSError as error:
            raise TruthLogError(f"truth log {path}: {error.strerror}") from error
        self._append(_header(profile, seed))

    def write(self, truth: Truth) -> None:
        """Append the line of a request that is over."""
        self._append(dataclasses.asdict(truth))

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _append(self, line: dict[str, Any]) -> None:
        if self._file is None:
            return
        try:
            self._file.write(orjson.dumps(line) + b"\n")
        except OSError as error:
            raise TruthLogError(f"truth log {self._path}: {error.strerror}") from error


def _header(profile: Profile, seed: int) -> dict[str, Any]:
    epoch = {
        "monotonic_s": time.monotonic(),
        "utc": datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
    }
    return {
        "schema": SCHEMA,
        "epoch": epoch,
        "seed": seed,
        "profile": dataclasses.asdict(profile),
    }
