"""The seam between a replay and the network: what a transport is given and what it must fill in.

A transport sends one attempt at a time and is chosen by name (`run.TRANSPORTS`). It never
decides outcomes, never retries and never reads the clock of the schedule: the gate tells it
when its first byte may reach the network, and it tells the gate that it did.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from runners.load.attempt import Attempt


class Gate(Protocol):
    """When an attempt may reach the network. Opens once, at its time, never before."""

    def call(self, fire: Callable[[], None]) -> None:
        """Calls `fire` at the attempt's time, straight from the timer; at once when it is past.

        For transports that can write to a socket without waiting. `fire` must call `opened`
        right before its first system call that reaches the network, and must not raise.
        """

    def wait(self) -> Awaitable[None]:
        """Returns at the attempt's time, for transports that await; calls `opened` itself."""

    def opened(self) -> float:
        """Notes that the first thing goes to the network now; seconds from run start."""

    def cancel(self) -> None:
        """Forgets a `call` that has not fired."""


class Alarm(Protocol):
    """Rings once at a moment of the monotonic clock."""

    def set(self, at_s: float) -> None:
        """Rings at this moment and no other; infinity for never."""

    def close(self) -> None:
        """Never rings again."""


class Timers(Protocol):
    """The part of the schedule that a busy transport must give way to."""

    # The moment of the next timer, in seconds from run start; infinity when there is none.
    next_s: float

    def run_due(self) -> None:
        """Runs what is due. Cheap to call; a transport calls it between two reads when
        `now() >= next_s`, so that a burst of answers never makes a send late."""

    def another_alarm(self, ring: Callable[[], None]) -> Alarm:
        """An alarm of the transport's own, as exact as the schedule's."""


class Transport(Protocol):
    """Sends attempts to one endpoint; made as `T(plan, now, timers)` on the running loop."""

    # What the times of answers are: "kernel" receive stamps or "user" space readings.
    stamp_source: str

    async def get_models(self, timeout_s: float) -> tuple[int, bytes]:
        """Status and body of GET {url}/models; attempt.Broken when no answer came."""

    def begin(self) -> None:
        """Run start has just been set: `now` counts from it from here on."""

    async def send(
        self, attempt: Attempt, body: bytes, headers: Mapping[str, str], gate: Gate
    ) -> None:
        """Sends one attempt and reads its answer to the end, filling in `attempt`.

        Returns when the answer is over; Broken for every failure of the transport. May be
        cancelled at any time: then what has been received up to `attempt.limit_s` (None: up
        to now) is still taken in before CancelledError goes on.
        """

    def told(self) -> dict[str, object]:
        """What run.json keeps of the transport under `generator.transport`: stamp source,
        counts of new, reused and resent connections, clock corrections, ..."""

    async def close(self) -> None:
        """Closes every connection."""
