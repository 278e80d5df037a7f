"""One watch over all connections: what is ready is received first and understood after.

All sockets are in an epoll of our own and only that is known to the event loop, which costs
half of a reader per socket. Where there is no epoll, each socket is a reader of the loop.
Between two answers the schedule's timers go first, so that no burst makes a send late.
"""

from __future__ import annotations

import asyncio
import select
import socket
from collections.abc import Callable
from typing import Any, Protocol

from runners.load.transports.fast.pauses import Pauses
from runners.load.transports.fast.stamps import (
    ANCILLARY_BYTES,
    StampClock,
    ask_for_stamps,
    timespec_of,
)
from runners.load.transports.seam import Timers

RECEIVE_BYTES = 16 << 10
_AT_ONCE = 256
# How often, a millisecond apart, the kernel is asked whether it stamps.
_PROOFS = 100
# What a connection that is given up may still hold and have taken in.
_REST_RECEIVES = 64
_IN, _OUT = 1, 4  # EPOLLIN, EPOLLOUT, also where select has no such names
_G = 1_000_000_000
# What one receive gave: its bytes (none: the end), its ancillary data, and when it was read.
_Taken = tuple["Watched", bytes, Any, float]


class Watched(Protocol):
    """A connection as the hub sees it."""

    last_s: float
    floor_s: float | None
    fault: OSError | None
    # True while the socket is to be told when it can be written to.
    waits: bool
    # True while no request is under way on it.
    parked: bool
    recvmsg: Callable[[int, int], Any]
    take: Callable[[bytes, float], None]

    def ready(self) -> bool:
        """It can be written to; whether there may also be something to read."""

    def unstamped(self) -> None:
        """The time of a receive is not the kernel's."""

    def stray(self, data: bytes) -> None:
        """Something came, or the end, while no request was under way."""

    def ended(self, at_s: float) -> None:
        """The other side closed, or `fault` came up."""


class Hub:
    """Watches sockets and hands each what it received, with its time from run start."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, now: Callable[[], float], timers: Timers
    ) -> None:
        self._loop, self.now, self._timers = loop, now, timers
        self.clock = StampClock(now)
        self._lines: dict[int, Watched] = {}
        # The kernel stamps nothing until some socket asks, and goes on while this one does.
        self._keeper = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._keeper.setblocking(False)
        self.kernel = ask_for_stamps(self._keeper)
        self._ancillary = ANCILLARY_BYTES if self.kernel else 0
        self._epoll: Any = select.epoll() if hasattr(select, "epoll") else None
        self._pauses = (
            None
            if self._epoll is None
            else Pauses(loop, timers, self._epoll.fileno(), self._on_ready)
        )

    def __len__(self) -> int:
        return len(self._lines)

    async def prove(self) -> bool:
        """Whether the kernel stamps what comes; it begins a little after it was first asked.

        Asked of a datagram to ourselves: some systems take the option and never stamp.
        """
        if not self.kernel:
            return False
        if self._keeper.getsockname()[1] == 0:
            self._keeper.bind(("127.0.0.1", 0))
        for _ in range(_PROOFS):
            self._keeper.sendto(b"?", self._keeper.getsockname())
            await asyncio.sleep(0.001)
            try:
                _, ancillary, _, _ = self._keeper.recvmsg(1, ANCILLARY_BYTES)
            except BlockingIOError:
                continue
            if ancillary:
                return True
        self.kernel, self._ancillary = False, 0
        return False

    def begin(self) -> None:
        """Run start has been set: times of before mean nothing now."""
        self.clock.begin()
        for line in self._lines.values():
            line.last_s, line.floor_s = self.now(), None

    def watch(self, fd: int, line: Watched) -> None:
        """Takes a socket in; whether it also waits to be written to, `line.waits` says."""
        self._lines[fd] = line
        if self._pauses is not None:
            self._epoll.register(fd, _IN | _OUT if line.waits else _IN)
            self._pauses.waits(1 if line.waits else 0)
            return
        self._loop.add_reader(fd, self._on_one, fd, _IN)
        if line.waits:
            self._loop.add_writer(fd, self._on_one, fd, _OUT)

    def rewatch(self, fd: int, waits: bool) -> None:
        """Takes note that a socket now waits to be written to, or no longer does."""
        if self._pauses is not None:
            self._epoll.modify(fd, _IN | _OUT if waits else _IN)
            self._pauses.waits(1 if waits else -1)
        elif waits:
            self._loop.add_writer(fd, self._on_one, fd, _OUT)
        else:
            self._loop.remove_writer(fd)

    def forget(self, fd: int) -> None:
        """Leaves a socket alone; before it is closed."""
        line = self._lines.pop(fd, None)
        if line is None:
            return
        if self._pauses is not None:
            self._epoll.unregister(fd)
            self._pauses.waits(-1 if line.waits else 0)
        else:
            self._loop.remove_reader(fd)
            self._loop.remove_writer(fd)

    def take_rest(self, line: Watched) -> None:
        """Takes in what the socket of a connection to be given up still holds."""
        for _ in range(_REST_RECEIVES):
            taken: list[_Taken] = []
            self._receive(line, taken)
            if not taken or not taken[0][1]:
                return
            self._hand_out(taken)

    def give_way(self) -> None:
        """Lets the schedule go first when something is due."""
        if self.now() >= self._timers.next_s:
            self._timers.run_due()

    def close(self) -> None:
        """Ends the watch; every socket has been forgotten before."""
        if self._pauses is not None:
            self._pauses.close()
            self._epoll.close()
        self._keeper.close()

    def _on_ready(self) -> None:
        """With the kernel's stamps: each receive is understood before the next is read."""
        if not self.kernel:
            self._read_first()
            return
        now, timers, lines, clock = self.now, self._timers, self._lines, self.clock
        read_s = now()
        if read_s >= clock.next_s:
            clock.sample()
        ready = self._epoll.poll(0, _AT_ONCE)
        for fd, mask in ready:
            line = lines.get(fd)
            if line is None or (mask != _IN and not self._also(line, mask)):
                continue
            try:
                data, mark, _, _ = line.recvmsg(RECEIVE_BYTES, ANCILLARY_BYTES)
            except OSError as error:
                self._refused(line, error)
                continue
            read_s = now()
            if data and mark and not line.parked:
                seconds, nanos = timespec_of(mark[0][2])
                at_s = (seconds * _G + nanos - clock.base_ns) * 1e-9
                if line.last_s <= at_s <= read_s:
                    line.last_s = at_s
                else:
                    at_s = self._doubtful(line, seconds * _G + nanos, read_s)
                line.take(data, at_s)
            else:
                self._hand_over(line, data, read_s)
            if read_s >= timers.next_s:
                timers.run_due()
        if self._pauses is not None:
            self._pauses.looked(len(ready))

    def _read_first(self) -> None:
        """Without them a time is when we read: everything is read, and only then understood."""
        taken: list[_Taken] = []
        for fd, mask in self._epoll.poll(0, _AT_ONCE):
            self.give_way()
            line = self._lines.get(fd)
            if line is not None and (mask == _IN or self._also(line, mask)):
                self._receive(line, taken)
        self._hand_out(taken)

    def _on_one(self, fd: int, mask: int) -> None:
        line = self._lines.get(fd)
        taken: list[_Taken] = []
        if line is not None and (mask == _IN or self._also(line, mask)):
            self._receive(line, taken)
        self._hand_out(taken)

    def _also(self, line: Watched, mask: int) -> bool:
        """Lets a connection write when that is why it is ready; whether to read it, too."""
        if line.waits:
            return line.ready() and bool(mask & ~_OUT)
        return bool(mask & ~_OUT)

    def _receive(self, line: Watched, taken: list[_Taken]) -> None:
        """Reads one connection, to be handed out."""
        try:
            data, mark, _, _ = line.recvmsg(RECEIVE_BYTES, self._ancillary)
        except OSError as error:
            self._refused(line, error)
            return
        if line.parked:
            # At once: until the others are handed out it may carry a request.
            line.stray(data)
        else:
            taken.append((line, data, mark, self.now()))

    def _refused(self, line: Watched, error: OSError) -> None:
        if isinstance(error, BlockingIOError | InterruptedError):
            return
        line.fault = error
        self._hand_over(line, b"", self.now())

    def _hand_out(self, taken: list[_Taken]) -> None:
        """Gives each connection what was received for it, at its time."""
        for line, data, mark, read_s in taken:
            self.give_way()
            if data and self.kernel and mark:
                line.take(data, self._time_of(line, mark, read_s))
            else:
                self._hand_over(line, data, read_s)

    def _hand_over(self, line: Watched, data: bytes, read_s: float) -> None:
        """What is not bytes of an answer with a stamp."""
        if line.parked:
            line.stray(data)
        elif not data:
            line.ended(read_s)
        else:
            line.take(data, self._unstamped(line, read_s))

    def _time_of(self, line: Watched, mark: Any, read_s: float) -> float:
        """Seconds of a stamp; written out in `_on_ready`, where it is once a token."""
        seconds, nanos = timespec_of(mark[0][2])
        at_s: float = (seconds * _G + nanos - self.clock.base_ns) * 1e-9
        if line.last_s <= at_s <= read_s:
            line.last_s = at_s
            return at_s
        return self._doubtful(line, seconds * _G + nanos, read_s)

    def _doubtful(self, line: Watched, stamp_ns: int, read_s: float) -> float:
        at_s, believed = self.clock.place(stamp_ns, line, read_s)
        if not believed:
            line.unstamped()
        return at_s

    def _unstamped(self, line: Watched, read_s: float) -> float:
        if self.kernel:
            line.unstamped()
        return self.clock.read(line, read_s)
