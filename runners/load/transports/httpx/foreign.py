"""Where errors of httpx and what lies under it become ours: one kind and one line each."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator

import httpx

from runners.load.attempt import Broken
from runners.load.transports.fast.tls import failed

# httpx translates most of what its lower layers raise, uvloop's closed handles not.
FOREIGN = (httpx.HTTPError, httpx.StreamError, OSError, RuntimeError)


def broken(error: Exception) -> Broken:
    """What a foreign error is in our words."""
    causes = list(_causes(error))
    root = _words(causes[-1])
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return Broken("dns", f"the host name is not known ({root})")
    for cause in causes:
        if isinstance(cause, ssl.SSLError):
            return failed(cause, "handshake")
    if isinstance(error, httpx.ProxyError):
        return Broken("connect", f"the proxy made no connection ({root})")
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return Broken("connect", f"no connection ({root})")
    if isinstance(error, httpx.NetworkError | OSError | RuntimeError):
        return Broken("connection_reset", f"the connection broke ({root})")
    if isinstance(error, httpx.RemoteProtocolError):
        return Broken(_protocol_kind(str(error)), text)
    return Broken("bad_response", text)


def _protocol_kind(text: str) -> str:
    if "without sending complete" in text:
        return "truncated"
    return "connection_reset" if "disconnected" in text else "bad_response"


def _words(error: BaseException) -> str:
    """What the operating system says, without its number, else the library."""
    said = error.strerror if isinstance(error, OSError) else None
    return said or str(error) or type(error).__name__


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        if isinstance(seen, BaseExceptionGroup):
            seen = seen.exceptions[0]
        else:
            seen = seen.__cause__ or seen.__context__
