"""When to look at sockets: as soon as one is ready, or by the clock while very much comes.

Waking costs more than reading, and the kernel's stamps do not see when we read. Only what
comes to one connection within a pause shares a receive, and so a time.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable

from runners.load.transports.seam import Alarm, Timers

# Above the first many receives a second there are pauses, below the second none.
_MANY_PER_S, _FEW_PER_S = 4000, 2000
_PAUSE_S = 0.001
_WEIGH_S = 0.02


class Pauses:
    """Calls `look` whenever there may be something to read on `file`."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, timers: Timers, file: int, look: Callable[[], None]
    ) -> None:
        self._loop, self._timers, self._file, self._look = loop, timers, file, look
        self._alarm: Alarm | None = None
        # Connections that wait to be written to: while there are any, nothing is put off.
        self._waiting = 0
        self._since_s = -math.inf
        self._received = 0
        self.pausing = False
        # How often it came to pauses.
        self.times = 0
        loop.add_reader(file, look)

    def looked(self, received: int) -> None:
        """After each look that so many receives came of. Sets the next look."""
        self._received += received
        now_s = time.monotonic()
        if now_s - self._since_s > _WEIGH_S:
            self._weigh(now_s)
        if self.pausing and self._alarm is not None:
            self._alarm.set(now_s + _PAUSE_S)

    def waits(self, more: int) -> None:
        """One connection more (less: -1) waits to be written to."""
        self._waiting += more
        if more > 0 and self.pausing:
            self._stop()

    def close(self) -> None:
        """Never looks again."""
        self._loop.remove_reader(self._file)
        if self._alarm is not None:
            self._alarm.close()

    def _weigh(self, now_s: float) -> None:
        per_s = self._received / (now_s - self._since_s)
        self._since_s, self._received = now_s, 0
        if self.pausing and per_s < _FEW_PER_S:
            self._stop()
        elif not self.pausing and per_s > _MANY_PER_S and not self._waiting:
            if self._alarm is None:
                self._alarm = self._timers.another_alarm(self._look)
            self._loop.remove_reader(self._file)
            self.pausing = True
            self.times += 1

    def _stop(self) -> None:
        self.pausing = False
        if self._alarm is not None:
            self._alarm.set(math.inf)
        self._loop.add_reader(self._file, self._look)
