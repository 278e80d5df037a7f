"""What do the bytes alone cost, and how late is a timer that does nothing else?

The references of the load benchmark. The floor client is a bare `asyncio.Protocol` on
uvloop: it sends prepared requests, keeps (time, bytes) of each receive and drops them at
the end of the body. The bare timer is a timerfd on the same loop whose reader notes how
late it is.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import ssl
import time
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import uvloop

_ABSOLUTE = 1
_NONBLOCK = os.O_NONBLOCK


class _Protocol(asyncio.Protocol):
    def __init__(self, request: bytes, done: asyncio.Future[None], first: list[float]) -> None:
        self._request, self._done, self._first = request, done, first
        self._kept: list[tuple[float, bytes]] = []

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._kept.append((time.monotonic(), data))
        # Good enough for the one server that this meets; not how a client may find the end.
        if data.endswith(b"0\r\n\r\n"):
            self._first.append(self._kept[0][0])
            self._kept.clear()
            # A TLS connection that is closed politely outlives its loop.
            self._transport.abort()

    def connection_lost(self, _error: Exception | None) -> None:
        if not self._done.done():
            self._done.set_result(None)


def drain(
    url: str, streams: int, body: dict[str, Any], ca_file: str | None = None
) -> dict[str, Any]:
    """Reads `streams` answers that begin together; first byte of each, by request id."""
    return uvloop.run(_drain(url, streams, body, ca_file))


async def _drain(
    url: str, streams: int, body: dict[str, Any], ca_file: str | None
) -> dict[str, Any]:
    parts = urlsplit(url)
    tls = ssl.create_default_context(cafile=ca_file) if ca_file else None
    loop = asyncio.get_running_loop()
    content = json.dumps(body).encode()

    async def one(number: int) -> tuple[float, float]:
        head = (
            f"POST {parts.path}/chat/completions HTTP/1.1\r\nHost: {parts.netloc}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n"
            f"X-Request-Id: {number}\r\n\r\n"
        )
        done: asyncio.Future[None] = loop.create_future()
        first: list[float] = []
        request = head.encode() + content
        sent_s = time.monotonic()
        await loop.create_connection(
            lambda: _Protocol(request, done, first), parts.hostname, parts.port, ssl=tls
        )
        await done
        return sent_s, first[0]

    sent, firsts = zip(*await asyncio.gather(*map(one, range(streams))), strict=True)
    return {"sent_s": sent, "first_s": firsts, "ended_s": time.monotonic()}


class _TimerSpec(ctypes.Structure):
    _fields_ = [(n, ctypes.c_long) for n in ("every_s", "every_ns", "at_s", "at_ns")]


def timer_lateness_s(times_s: list[float]) -> list[float]:
    """How late each of `times_s` (from a moment soon) came on a loop that does nothing else.

    OSError where there is no timerfd.
    """
    return uvloop.run(_bare_timer(times_s))


async def _bare_timer(times_s: list[float]) -> list[float]:
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "timerfd_create"):
        raise OSError("this system has no timerfd")
    loop = asyncio.get_running_loop()
    fd = libc.timerfd_create(time.CLOCK_MONOTONIC, _NONBLOCK)
    done: asyncio.Future[None] = loop.create_future()
    due_ns = ((np.array(times_s) + 0.1) * 1e9).astype(np.int64) + time.monotonic_ns()
    due: list[int] = due_ns.tolist()
    late: list[float] = []

    def arm() -> None:
        seconds, rest = divmod(due[len(late)], 1_000_000_000)
        spec = _TimerSpec(0, 0, seconds, rest)
        if libc.timerfd_settime(fd, _ABSOLUTE, ctypes.byref(spec), None) != 0:
            raise OSError(ctypes.get_errno(), "timerfd_settime")

    def on_time() -> None:
        os.read(fd, 8)
        while len(late) < len(due) and (now := time.monotonic_ns()) >= due[len(late)]:
            late.append((now - due[len(late)]) / 1e9)
        if len(late) < len(due):
            arm()
        elif not done.done():
            done.set_result(None)

    arm()
    loop.add_reader(fd, on_time)
    try:
        await done
    finally:
        loop.remove_reader(fd)
        os.close(fd)
    return late
