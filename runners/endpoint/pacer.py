"""Runs an engine on a clock: wakes at each step's end and hands on what it made."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from typing import Generic, Protocol

from runners.endpoint.engine import Engine, J, Step


class Cancellable(Protocol):
    """A call that can be taken back."""

    def cancel(self) -> None:
        """Take the call back; nothing happens when it has been made."""


class Clock(Protocol):
    """Seconds that never go back, and a way to be called at one of them."""

    def now(self) -> float:
        """Seconds now."""

    def call_at(self, when_s: float, call: Callable[[], None]) -> Cancellable:
        """Have `call` made at `when_s`, or a little later; sooner only by the clock's grain."""


class LoopClock:
    """CLOCK_MONOTONIC on the running event loop.

    libuv and epoll count whole milliseconds, so delays are rounded up: a call
    made too soon would find nothing due and spin.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def now(self) -> float:
        return time.monotonic()

    def call_at(self, when_s: float, call: Callable[[], None]) -> Cancellable:
        delay_ms = math.ceil((when_s - time.monotonic()) * 1000)
        return self._loop.call_later(max(0, delay_ms) / 1000, call)


class Pacer(Generic[J]):
    """Feeds an engine and delivers its steps, each as soon as the clock allows."""

    def __init__(self, engine: Engine[J], clock: Clock, deliver: Callable[[Step[J]], None]) -> None:
        self._engine, self._clock, self._deliver = engine, clock, deliver
        self._timer: Cancellable | None = None
        self._armed_s: float | None = None

    def submit(self, job: J) -> bool:
        """Queue a job now; False when the queue is full."""
        now_s = self._catch_up()
        taken = self._engine.submit(job, now_s)
        self._arm()
        return taken

    def cancel(self, job: J) -> None:
        """Take a job out now."""
        self._catch_up()
        if job.finished_s is None:
            self._engine.cancel(job)
        self._arm()

    def _catch_up(self) -> float:
        now_s = self._clock.now()
        for step in self._engine.advance(now_s):
            self._deliver(step)
        return now_s

    def _fire(self) -> None:
        self._timer = self._armed_s = None
        self._catch_up()
        self._arm()

    def _arm(self) -> None:
        due_s = self._engine.due_s
        if due_s == self._armed_s:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._armed_s = due_s
        if due_s is not None:
            self._timer = self._clock.call_at(due_s, self._fire)
