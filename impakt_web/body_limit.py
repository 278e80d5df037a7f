"""How much of a request body is taken, decided before Django stores a byte of it.

Django writes a body to a temporary file before any view runs, so without this a
stranger could fill the disk. Files go to two addresses of the API, from readers
whom the server knows; everything else is a form or a JSON document.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings

Scope = dict[str, Any]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

FILES = ("/api/v1/uploads/", "/api/v1/traces/")
# Boundaries and headers of a form around what it carries.
_FRAMING = 64 * 1024


class TooMuch(Exception):
    """More came than was allowed."""


class BodyLimit:
    """Answers 413 in the application's place, by the declared length or by counting."""

    def __init__(self, application: Application) -> None:
        self.application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.application(scope, receive, send)
            return
        headers = {name.lower(): value for name, value in scope["headers"]}
        declared = headers.get(b"content-length", b"")
        plain = settings.DATA_UPLOAD_MAX_MEMORY_SIZE + _FRAMING
        small = declared.isdigit() and len(declared) < 20 and int(declared) <= plain
        bodyless = not declared and b"transfer-encoding" not in headers
        if small or bodyless:
            # The server reads no more than was declared.
            await self.application(scope, receive, send)
            return
        limit = plain
        if scope["path"] in FILES and await sync_to_async(_known)(headers):
            limit = settings.UPLOAD_MAX_BYTES + _FRAMING
        if declared.isdigit() and (len(declared) >= 20 or int(declared) > limit):
            await _refuse(send, limit)
            return
        await self._counted(scope, receive, send, limit)

    async def _counted(self, scope: Scope, receive: Receive, send: Send, limit: int) -> None:
        taken = 0

        async def counted() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > limit:
                raise TooMuch
            return message

        try:
            await self.application(scope, counted, send)
        except TooMuch:
            # Django reads the whole body before it says anything.
            await _refuse(send, limit)


def _known(headers: dict[bytes, bytes]) -> bool:
    """Whether a live token or a signed-in session comes with the request."""
    from django.db import connection

    from records.services.access import token_authenticate

    words = headers.get(b"authorization", b"").decode("latin-1").split()
    try:
        if len(words) == 2 and words[0].lower() == "bearer":
            return token_authenticate(words[1]) is not None
        return _signed_in(headers.get(b"cookie", b"").decode("latin-1"))
    finally:
        # Django closes those of its own requests' threads only.
        connection.close()


def _signed_in(cookie: str) -> bool:
    from django.contrib.auth import SESSION_KEY
    from django.contrib.sessions.backends.db import SessionStore
    from django.http import parse_cookie

    session = parse_cookie(cookie).get(settings.SESSION_COOKIE_NAME)
    return session is not None and SESSION_KEY in SessionStore(session)


async def _refuse(send: Send, limit: int) -> None:
    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    body = {
        "type": "about:blank", "title": status.phrase, "status": int(status),
        "detail": f"More than the {limit - _FRAMING} bytes that this server takes here",
    }  # fmt: skip
    headers = [
        (b"content-type", b"application/problem+json"),
        (b"content-security-policy", b"default-src 'none'"),
        # What is left of the body is not read.
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": int(status), "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(body).encode()})
