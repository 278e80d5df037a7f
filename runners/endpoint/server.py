"""Runs the simulator: listening, signals, a stop within three seconds."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from runners.endpoint.http import Connection
from runners.endpoint.pacer import LoopClock
from runners.endpoint.profile import Profile
from runners.endpoint.service import Service
from runners.endpoint.truth import TruthLog

# Open answers may finish for this long after a stop was asked for.
GRACE_S = 1.5
_PARENT_POLL_S = 0.5
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class Options:
    """How to serve a profile; port 0 picks a free one, `seed` None takes the profile's."""

    profile: Profile
    host: str = "127.0.0.1"
    port: int = 0
    truth_log: Path | None = None
    seed: int | None = None
    exit_with_parent: bool = False


class Server:
    """One simulator on one socket. Make it, `await run(ready)`; `stop` may come from a signal."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._stop = asyncio.Event()
        self._connections: set[Connection] = set()
        self._failure: OSError | None = None

    def stop(self) -> None:
        """Ask for a graceful end."""
        self._stop.set()

    async def run(self, ready: Callable[[str], None]) -> None:
        """Serve until `stop`; `ready` gets the URL, /v1 included.

        OSError when the address is taken or the truth log cannot be written;
        ProfileError when the profile names a key that is not set.
        """
        profile = self._options.profile
        seed = profile.seed if self._options.seed is None else self._options.seed
        loop = asyncio.get_running_loop()
        truth = TruthLog(self._options.truth_log, profile, seed)
        try:
            service = Service(profile, seed, LoopClock(loop), truth, self._fail)
            listener = await loop.create_server(
                lambda: Connection(service.handle, self._connections, self._stop),
                self._options.host, self._options.port, backlog=1024,
            )  # fmt: skip
            ready(_url(self._options.host, listener.sockets[0]))
            await self._stop.wait()
            await self._drain(service, listener)
        finally:
            truth.close()
        if self._failure is not None:
            raise self._failure

    async def _drain(self, service: Service, listener: asyncio.Server) -> None:
        service.stopping = True
        listener.close()
        for connection in list(self._connections):
            if connection.idle():
                connection.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(service.idle.wait(), GRACE_S)
        service.interrupt()
        # Let transports flush what was written last.
        await asyncio.sleep(0.02)
        for connection in list(self._connections):
            connection.abort()

    def _fail(self, error: OSError) -> None:
        self._failure = self._failure or error
        self.stop()


def serve(options: Options, ready: Callable[[str], None]) -> None:
    """Serve in this process until SIGINT or SIGTERM. Raises as `Server.run` does."""
    runner = asyncio.Runner(loop_factory=_loop_factory())
    with runner:
        runner.run(_serve(options, ready))


async def _serve(options: Options, ready: Callable[[str], None]) -> None:
    loop = asyncio.get_running_loop()
    server = Server(options)
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, server.stop)
    watch = asyncio.create_task(_follow_parent(server)) if options.exit_with_parent else None
    try:
        await server.run(ready)
    finally:
        if watch is not None:
            watch.cancel()


async def _follow_parent(server: Server) -> None:
    """Stop when the process that started us is gone, however it went."""
    parent = os.getppid()

    def look() -> None:
        if os.getppid() != parent:
            server.stop()

    if sys.platform == "linux":
        # Not SIGTERM: the kernel also signals when only the *thread* that started us ends.
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, look)
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGUSR1)
    while parent != 1:
        look()
        await asyncio.sleep(_PARENT_POLL_S)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


def _url(host: str, sock: socket.socket) -> str:
    port = sock.getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}/v1"
