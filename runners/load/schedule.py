"""When things happen: absolute times on the run's clock, one timer of the kernel for all.

A sleep relative to the last send drifts, a sleep of the event loop fires up to a millisecond
early or late, and spinning starves what it waits for. So every moment is absolute, kept in a
heap, and the nearest one arms a timerfd, which wakes the loop within microseconds and never
early. Where there is none (macOS) the loop's own timer is armed again until the time has come.
"""

from __future__ import annotations

import asyncio
import ctypes
import heapq
import math
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Protocol

_CLOCK_MONOTONIC, _ABSOLUTE = 1, 1
# TFD_NONBLOCK | TFD_CLOEXEC
_FLAGS = os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0)
_NANO = 1_000_000_000
# Forgotten timers are thrown out once there are more of them than this and than live ones.
_FORGOTTEN = 256


class Timer:
    """One moment and what is to happen then; `cancel` makes it nothing."""

    __slots__ = ("_schedule", "at_s", "callback")

    def __init__(self, schedule: Schedule, at_s: float, callback: Callable[[], None]) -> None:
        self._schedule, self.at_s = schedule, at_s
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        """Forgets it; nothing when it has fired or was cancelled before."""
        if self.callback is not None:
            self.callback = None
            self._schedule.forgotten()


class Schedule:
    """The run's clock and everything that waits for a moment on it.

    Made on the running loop. `begin` fixes run start; before it, `now` is the bare monotonic
    clock. What a callback raises goes to `on_crash`, never into the event loop's log.
    """

    def __init__(self, kernel_timer: bool = True) -> None:
        self.next_s = math.inf
        self.on_crash: Callable[[BaseException], None] = _raise
        self._t0 = 0.0
        self._heap: list[tuple[float, int, Timer]] = []
        self._sequence = self._forgotten = 0
        self._running = False
        self._kind = _KernelAlarm if kernel_timer and _has_timerfd() else _LoopAlarm
        self._alarm: _Alarm = self._kind(self.run_due)

    @property
    def alarm(self) -> str:
        """What wakes us, for run.json: "timerfd" or "event loop"."""
        return self._alarm.name

    def another_alarm(self, ring: Callable[[], None]) -> _Alarm:
        """One more of the same kind; it does not know of run start."""
        return self._kind(ring)

    def now(self) -> float:
        """Seconds from run start; below 0 before it."""
        return time.monotonic() - self._t0

    def begin(self, t0: float) -> None:
        """Run start, on the monotonic clock. Nothing may be waiting yet."""
        assert not self._heap, "a moment was set before its clock began"
        self._t0 = t0

    def at(self, at_s: float, callback: Callable[[], None]) -> Timer:
        """Calls `callback` at `at_s` or right after, never before; those of one moment in order."""
        timer = Timer(self, at_s, callback)
        self._sequence += 1
        heapq.heappush(self._heap, (at_s, self._sequence, timer))
        if at_s < self.next_s:
            self.next_s = at_s
            if not self._running:
                self._alarm.set(at_s + self._t0)
        return timer

    async def until(self, at_s: float) -> None:
        """Returns at `at_s`, never before."""
        if self.now() >= at_s:
            return
        come: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = self.at(at_s, partial(_set, come))
        try:
            await come
        finally:
            timer.cancel()

    def run_due(self) -> None:
        """Calls what is due and sets the alarm for what comes next."""
        if self._running:
            return
        self._running = True
        try:
            while self._heap and self._heap[0][0] <= self.now():
                timer = heapq.heappop(self._heap)[2]
                self._call(timer)
            self._drop_cancelled_heads()
        finally:
            self._running = False
            self.next_s = self._heap[0][0] if self._heap else math.inf
            self._alarm.set(self.next_s + self._t0)

    def give_way(self) -> None:
        """Calls what is due, if anything is. For work that keeps the loop from its timer."""
        if time.monotonic() - self._t0 >= self.next_s:
            self.run_due()

    def _call(self, timer: Timer) -> None:
        callback, timer.callback = timer.callback, None
        if callback is None:
            self._forgotten -= 1
            return
        try:
            callback()
        except Exception as error:
            self.on_crash(error)

    def _drop_cancelled_heads(self) -> None:
        while self._heap and self._heap[0][2].callback is None:
            heapq.heappop(self._heap)
            self._forgotten -= 1

    def forgotten(self) -> None:
        """A timer was cancelled. Timeouts of answered requests must not pile up for minutes."""
        self._forgotten += 1
        if self._forgotten > max(_FORGOTTEN, len(self._heap) // 2):
            self._heap = [entry for entry in self._heap if entry[2].callback is not None]
            heapq.heapify(self._heap)
            self._forgotten = 0

    def close(self) -> None:
        """Forgets everything and gives the timer back."""
        self._heap.clear()
        self.next_s = math.inf
        self._alarm.close()


class AttemptGate:
    """When one attempt may reach the network: at its time, once. See transport.Gate.

    `on_open` is called with the moment right before the first thing goes out.
    """

    __slots__ = ("_at_s", "_on_open", "_schedule", "_timer", "opened_s")

    def __init__(self, schedule: Schedule, at_s: float, on_open: Callable[[float], None]) -> None:
        self._schedule, self._at_s, self._on_open = schedule, at_s, on_open
        self._timer: Timer | None = None
        self.opened_s: float | None = None

    def call(self, fire: Callable[[], None]) -> None:
        """Calls `fire` at the attempt's time straight from the timer; at once when it is past."""
        if self._schedule.now() >= self._at_s:
            fire()
        else:
            self._timer = self._schedule.at(self._at_s, fire)

    async def wait(self) -> None:
        """Returns at the attempt's time, having noted that it opened."""
        await self._schedule.until(self._at_s)
        self.opened()

    def opened(self) -> float:
        """Notes the send; a second time, as when it is sent again, tells the first again."""
        if self.opened_s is None:
            self.opened_s = self._schedule.now()
            self._on_open(self.opened_s)
        return self.opened_s

    def cancel(self) -> None:
        """Forgets a `call` that has not fired."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _Alarm(Protocol):
    name: str

    def set(self, at_s: float) -> None:
        """Wakes us at this moment of the monotonic clock and no other; infinity for never."""

    def close(self) -> None: ...


class _Moment(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Setting(ctypes.Structure):
    _fields_ = (("interval", _Moment), ("value", _Moment))


class _KernelAlarm:
    """A timerfd. Setting it anew also takes back a ring that was not heard, so none is read."""

    name = "timerfd"

    def __init__(self, ring: Callable[[], None]) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._file = libc.timerfd_create(_CLOCK_MONOTONIC, _FLAGS)
        if self._file < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), "timerfd_create")
        self._settime = libc.timerfd_settime
        self._setting = _Setting()
        self._reference = ctypes.byref(self._setting)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._file, ring)

    def set(self, at_s: float) -> None:
        # 0 takes the alarm off. Rounded up: a nanosecond early would be early.
        nanoseconds = 0 if at_s == math.inf else max(1, math.ceil(at_s * _NANO))
        value = self._setting.value
        value.seconds, value.nanoseconds = divmod(nanoseconds, _NANO)
        if self._settime(self._file, _ABSOLUTE, self._reference, None) < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), "timerfd_settime")

    def close(self) -> None:
        self._loop.remove_reader(self._file)
        os.close(self._file)


class _LoopAlarm:
    """The event loop's timer, set again until the time has come."""

    name = "event loop"

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring, self._loop = ring, asyncio.get_running_loop()
        self._handle: asyncio.TimerHandle | None = None

    def set(self, at_s: float) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        if at_s != math.inf:
            # The loop's clock may stand still while it works, so the delay is our own.
            delay_s = max(0.0, at_s - time.monotonic())
            self._handle = self._loop.call_later(delay_s, self._ring)

    def close(self) -> None:
        self.set(math.inf)


def _set(come: asyncio.Future[None]) -> None:
    if not come.done():
        come.set_result(None)


def _has_timerfd() -> bool:
    return sys.platform == "linux"


def _raise(error: BaseException) -> None:
    raise error
