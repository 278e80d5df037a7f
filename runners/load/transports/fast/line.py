"""One connection: made, written to in pieces, read, given back or closed; never waited for."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from runners.load.attempt import Broken
from runners.load.transports.fast.hub import Hub
from runners.load.transports.fast.stamps import ask_for_stamps

# How long an address may be silent when there is another to try.
_NEXT_ADDRESS_S = 2.0
_UNDER_WAY = (0, errno.EINPROGRESS, errno.EWOULDBLOCK)


class Place(Protocol):
    """An address as `socket` takes it."""

    @property
    def family(self) -> int:
        """AF_INET or AF_INET6."""

    @property
    def sockaddr(self) -> tuple[Any, ...]:
        """What `connect` takes."""


class User(Protocol):
    """What a connection works for."""

    def take(self, data: bytes, at_s: float) -> None:
        """Bytes of the answer, their time seconds from run start."""

    def ended(self, fault: Broken | None, at_s: float) -> None:
        """No more bytes will come: closed by the other side, or `fault`."""

    def unstamped(self) -> None:
        """A time is not the kernel's."""


class Owner(Protocol):
    """Who keeps connections."""

    def opened(self, place: Place) -> None:
        """A connection to this address stands."""

    def gone(self, line: Line) -> None:
        """A connection that worked for nobody is closed."""


class Line:
    """One connection. `user` is what it works for, None while parked or closed."""

    __slots__ = (
        "_fd", "_hub", "_loop", "_owner", "_parts", "_places", "_sock", "_waiting", "connecting",
        "fault", "floor_s", "last_s", "parked", "recvmsg", "since_s", "take", "user", "waits",
    )  # fmt: skip

    def __init__(self, hub: Hub, loop: asyncio.AbstractEventLoop, owner: Owner) -> None:
        self._hub, self._loop, self._owner = hub, loop, owner
        self._sock: socket.socket | None = None
        self._fd = -1
        # What is to be sent and not with the operating system yet.
        self._parts: deque[bytes | memoryview] = deque()
        self._places: list[Place] = []
        self._waiting: asyncio.TimerHandle | None = None
        self.connecting = self.parked = self.waits = False
        self.fault: OSError | None = None
        self.last_s = self.since_s = 0.0
        self.floor_s: float | None = None
        self.recvmsg: Callable[[int, int], Any] = _no_socket
        self.take: Callable[[bytes, float], None] = _nothing
        self.user: User | None = None

    @property
    def open(self) -> bool:
        """Whether it has a socket."""
        return self._sock is not None

    @property
    def sending(self) -> bool:
        """Whether part of what was written is still here."""
        return self.connecting or bool(self._parts)

    def prepare(self, places: Sequence[Place]) -> None:
        """Makes the socket for the first of some addresses; nothing reaches the network."""
        self._places = list(places)
        sock = socket.socket(self._places[0].family, socket.SOCK_STREAM)
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._hub.kernel:
            ask_for_stamps(sock)
        self._sock, self._fd, self.recvmsg = sock, sock.fileno(), sock.recvmsg
        self.fault, self.connecting = None, True

    def connect(self) -> None:
        """Begins the connection; what is written goes out as soon as it stands."""
        assert self._sock is not None
        self.waits = True
        code = self._sock.connect_ex(self._places[0].sockaddr)
        if code not in _UNDER_WAY:
            self._not_connected(code)
            return
        self._hub.watch(self._fd, self)
        if len(self._places) > 1:
            self._waiting = self._loop.call_later(_NEXT_ADDRESS_S, self._too_slow)
        # On this machine it stands already.
        self.ready()

    def work_for(self, user: User, at_s: float) -> None:
        """Belongs to a request from here on, whose send is at `at_s`."""
        self.user, self.parked = user, False
        self.last_s, self.floor_s = at_s, None
        self.take = user.take

    def leave(self) -> None:
        """Works for nobody from here on; parked or closed next."""
        self.user = None
        self.take = _nothing

    def park(self, now_s: float) -> None:
        """Stays open for another request."""
        self.leave()
        self.parked, self.since_s = True, now_s

    def write(self, parts: Sequence[bytes]) -> None:
        """Sends now what the socket takes, and the rest as it can."""
        self._parts.extend(parts)
        self._flush()

    def ready(self) -> bool:
        """The socket can be written to, or has failed; whether to read it, too."""
        if self.connecting and not self._connected():
            return False
        self._flush()
        return self._sock is not None

    def unstamped(self) -> None:
        """The time of a receive is not the kernel's."""
        if self.user is not None:
            self.user.unstamped()

    def stray(self, data: bytes) -> None:
        """Nothing may come while no request is under way: not even the end."""
        self.close()
        self._owner.gone(self)

    def ended(self, at_s: float) -> None:
        """The other side closed, or the socket has a fault."""
        if self._sock is None:
            return
        fault = None
        if self.fault is not None:
            fault = Broken("connection_reset", f"the connection broke ({_words(self.fault)})")
        self.end(fault, at_s)

    def end(self, fault: Broken | None, at_s: float) -> None:
        """Closes, and tells who it works for."""
        user = self.user
        self.close()
        if user is not None:
            user.ended(fault, at_s)

    def close(self) -> None:
        """Closes at once, whatever is under way."""
        self._stop_waiting()
        self._drop_socket()
        self._parts.clear()
        self.connecting = self.parked = False
        self.leave()

    def take_rest(self) -> None:
        """Takes in what has been received and not read."""
        if self._sock is not None and not self.connecting:
            self._hub.take_rest(self)

    def _connected(self) -> bool:
        assert self._sock is not None
        code = self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            self._not_connected(code)
            return False
        try:
            self._sock.getpeername()
        except OSError:
            return False
        self._stop_waiting()
        self.connecting = False
        self._owner.opened(self._places[0])
        self._stands()
        return self._sock is not None

    def _stands(self) -> None:
        """The connection has just been made."""

    def _too_slow(self) -> None:
        self._waiting = None
        self._not_connected(errno.ETIMEDOUT)

    def _not_connected(self, code: int) -> None:
        """Goes to the next address, or gives up."""
        self._stop_waiting()
        self._drop_socket()
        del self._places[0]
        if not self._places:
            self.end(Broken("connect", f"no connection ({os.strerror(code)})"), self._hub.now())
            return
        try:
            self.prepare(self._places)
        except OSError as error:
            self._not_connected(error.errno or errno.EIO)
            return
        self.connect()

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _drop_socket(self) -> None:
        if self._sock is not None:
            self._hub.forget(self._fd)
            self._sock.close()
            self._sock, self.recvmsg, self.waits = None, _no_socket, False

    def _fill(self) -> None:
        """Puts into `_parts` what else is to be sent."""

    def _flush(self) -> None:
        """Sends what there is until the socket takes no more."""
        if self.connecting or self._sock is None:
            return
        send, parts = self._sock.send, self._parts
        try:
            self._fill()
            while parts:
                part = parts[0]
                sent = send(part)
                if sent < len(part):
                    parts[0] = memoryview(part)[sent:]
                    continue
                parts.popleft()
                self._fill()
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            # Reading tells why, and what the server said before it closed.
            parts.clear()
        if self.waits != bool(parts):
            self.waits = bool(parts)
            self._hub.rewatch(self._fd, self.waits)


def _nothing(data: bytes, at_s: float) -> None:
    """Takes what comes for a connection that works for nobody."""


def _no_socket(size: int, ancillary: int) -> Any:
    raise BlockingIOError(errno.EAGAIN, "no socket")


def _words(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else str(error)
