"""When bytes came: the kernel's receive stamps on the run's clock.

The kernel stamps a segment when it arrives, in nanoseconds of CLOCK_REALTIME, and so does
not see how late our event loop is. That clock may be set while a run goes on, so its
distance to the run's clock is measured again and again, and no stamp is believed outside
of what is known anyway: after what came before on its connection, before it was read.
"""

from __future__ import annotations

import math
import socket
import struct
import sys
import time
from collections.abc import Callable
from typing import Protocol

# linux/net_tstamp.h, asm-generic/socket.h
_SO_TIMESTAMPING = 37
_RX_SOFTWARE, _SOFTWARE = 1 << 3, 1 << 4
# struct scm_timestamping: three timespecs, of which the first is the software stamp.
timespec_of = struct.Struct("@ll").unpack_from
ANCILLARY_BYTES = 64
_SAMPLES = 5
_AGAIN_S = 1.0
# Stamps that miss their bounds by less are moved to the bound: the clocks are read apart.
_TOLERANCE_S = 100e-6
_G = 1_000_000_000


class Marks(Protocol):
    """What a connection knows of its own times, in seconds from run start."""

    # Of the last receive, or of the send; no later receive is before it.
    last_s: float
    # Where the last trusted stamp was when `last_s` is a user-space reading; else None.
    floor_s: float | None


def ask_for_stamps(sock: socket.socket) -> bool:
    """Switches kernel receive stamps on; whether this system has them."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPING, _RX_SOFTWARE | _SOFTWARE)
    except OSError:
        return False
    return True


class StampClock:
    """Maps stamps to seconds from run start; `base_ns` is run start on the kernel's clock.

    seconds = (stamp - base_ns) / 1e9, in integers until the last step: an epoch time in a
    float64 is only good to 0.2 us.
    """

    def __init__(self, now: Callable[[], float], wall_ns: Callable[[], int] = time.time_ns) -> None:
        self._now, self._wall_ns = now, wall_ns
        self.base_ns = 0
        self.next_s = -math.inf
        self.begin()

    def begin(self) -> None:
        """Run start has been set: everything before is forgotten."""
        self._samples = self.fallbacks = self.held = self.user = 0
        self._largest_s = 0.0
        self._width_s = math.inf
        self.base_ns, self._width_s = self._measure()
        self.next_s = self._now() + _AGAIN_S

    def sample(self) -> None:
        """Measures the distance of the clocks again and takes it up where it changed.

        Both clocks run at one rate, so a difference within the width of the readings is
        their noise; the tighter reading is kept then.
        """
        base_ns, width_s = self._measure()
        self._samples += 1
        moved_s = abs(base_ns - self.base_ns) / _G
        if moved_s > width_s + self._width_s or width_s <= self._width_s:
            self.base_ns, self._width_s = base_ns, width_s
            self._largest_s = max(self._largest_s, moved_s)
        self.next_s = self._now() + _AGAIN_S

    def _measure(self) -> tuple[int, float]:
        """Run start on the wall clock, and between how far apart readings it was found."""
        best = (math.inf, 0)
        for _ in range(_SAMPLES):
            before_s = self._now()
            wall_ns = self._wall_ns()
            after_s = self._now()
            middle_ns = round((before_s + after_s) / 2 * _G)
            best = min(best, (after_s - before_s, wall_ns - middle_ns))
        return best[1], best[0]

    def place(self, stamp_ns: int, marks: Marks, now_s: float) -> tuple[float, bool]:
        """Seconds of a stamp that lies outside of [last_s, now_s], and whether it was believed.

        The clocks are measured first, since a wall clock that was set is the likely reason.
        What then still lies outside was stamped before the clock was set: it counts as read.
        """
        self.sample()
        at_s = (stamp_ns - self.base_ns) / _G
        floor_s = marks.last_s if marks.floor_s is None else marks.floor_s
        if floor_s - _TOLERANCE_S <= at_s <= now_s + _TOLERANCE_S:
            self.held += not marks.last_s <= at_s <= now_s
            marks.last_s = min(max(at_s, marks.last_s), max(now_s, marks.last_s))
            return marks.last_s, True
        self.fallbacks += 1
        return self.read(marks, now_s), False

    def read(self, marks: Marks, now_s: float) -> float:
        """The time of a receive that has no stamp of its own: when it was read."""
        self.user += 1
        if marks.floor_s is None:
            marks.floor_s = marks.last_s
        marks.last_s = max(marks.last_s, now_s)
        return marks.last_s

    def told(self) -> dict[str, object]:
        """How the clocks behaved, for run.json."""
        return {
            "resamples": self._samples,
            "width_us": round(self._width_s * 1e6, 3),
            "largest_correction_us": round(self._largest_s * 1e6, 3),
            "held_stamps": self.held,
            "refused_stamps": self.fallbacks,
            "receives_without_stamp": self.user - self.fallbacks,
        }
