"""Bodies that are no answer: a list of models, what a refusal says, what follows an answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import httpx

from runners.load.attempt import Attempt
from runners.load.transports.httpx.foreign import FOREIGN
from runners.load.transports.redirects import redirect_text

_MAX_ERROR_BODY, _MAX_ERROR_TEXT = 64 << 10, 500
_MAX_MODELS = 4 << 20
# How long the tail of a finished stream may take, for the connection's reuse.
_TAIL_S = 1.0


async def limited(stream: AsyncIterator[bytes]) -> bytes:
    """The body, or its first _MAX_MODELS bytes and a little more."""
    body = b""
    async for data in stream:
        body += data
        if len(body) >= _MAX_MODELS:
            break
    return body


async def take_refusal(response: httpx.Response, attempt: Attempt) -> None:
    """What the server says to its refusal, as far as it comes."""
    location = response.headers.get("location")
    if response.status_code < 400 and location is not None:
        attempt.error_text = redirect_text(location)
        return
    body = bytearray()
    try:
        async for data in response.aiter_bytes():
            body += data
            if len(body) >= _MAX_ERROR_BODY:
                break
    except FOREIGN:
        if not body:
            raise
    finally:
        text = body.decode("utf-8", "replace")[:_MAX_ERROR_TEXT]
        attempt.error_text = " ".join(text.split()) or None


async def close(response: httpx.Response) -> None:
    """Lets go of an answer that has been read; what breaks now says nothing of it."""
    try:
        await response.aclose()
    except FOREIGN:
        return


async def drain(stream: AsyncIterator[bytes], held: AsyncExitStack) -> None:
    """Reads the tail after an answer's end, so that its connection, `held`, can be used again."""
    try:
        async with held, asyncio.timeout(_TAIL_S):
            async for _ in stream:
                pass
    except (TimeoutError, *FOREIGN):
        return
