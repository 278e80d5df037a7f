"""A body is refused by its size before Django stores it, and read whole where it is allowed."""

from __future__ import annotations

import asyncio
import json

import pytest
from django.test import Client

from impakt_web.body_limit import BodyLimit
from records.services import access

KIB = 1024
# What the tests allow: 1 KiB of form or JSON, 100 KiB of file, 64 KiB of framing on each.
PLAIN, FILE = 65 * KIB, 164 * KIB


@pytest.fixture(autouse=True)
def _limits(settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = KIB
    settings.UPLOAD_MAX_BYTES = 100 * KIB


async def _reader(scope, receive, send):
    """As Django does: all of the body, then an answer that says how much it was."""
    size = 0
    while True:
        message = await receive()
        size += len(message.get("body", b""))
        if not message.get("more_body"):
            break
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(size).encode()})


def ask(size, path="/sign-in/", declared=True, headers=()):
    """Status, body of the answer, and how many bytes were taken from the client."""
    sent, taken = [], 0
    more = [(b"content-length", str(size).encode())]
    scope = {
        "type": "http", "path": path,
        "headers": [*headers, *(more if declared else [(b"transfer-encoding", b"chunked")])],
    }  # fmt: skip

    async def receive():
        nonlocal taken
        piece = min(16 * KIB, size - taken)
        taken += piece
        return {"type": "http.request", "body": b"x" * piece, "more_body": taken < size}

    async def send(message):
        sent.append(message)

    asyncio.run(BodyLimit(_reader)(scope, receive, send))
    return sent[0]["status"], sent[1]["body"], taken


def test_what_is_within_the_limit_is_read_whole():
    assert ask(PLAIN) == (200, str(PLAIN).encode(), PLAIN)
    assert ask(PLAIN, declared=False) == (200, str(PLAIN).encode(), PLAIN)


def test_a_declared_length_beyond_it_is_refused_unread():
    status, body, taken = ask(PLAIN + 1)
    assert (status, taken) == (413, 0)
    assert json.loads(body)["detail"] == "More than the 1024 bytes that this server takes here"


@pytest.mark.parametrize("length", [b"9" * 5000, b"-1", b"x"])
def test_a_length_that_is_none_gets_no_further_than_the_limit(length):
    """5 000 digits are too many to be made a number; others are counted."""
    status, _, _ = ask(PLAIN + 1, declared=False, headers=[(b"content-length", length)])
    assert status == 413


def test_a_body_without_a_length_is_counted():
    """Pieces of 16 KiB: the fifth passes 65 KiB, and no sixth is asked for."""
    status, _, taken = ask(10 * PLAIN, declared=False)
    assert (status, taken) == (413, 80 * KIB)


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("path", ["/api/v1/uploads/", "/api/v1/traces/"])
@pytest.mark.django_db(transaction=True)
def test_files_are_taken_from_a_known_token_only(alice, project, path, declared):
    token, secret = access.token_create(project=project, user=alice, name="ci", scope="write")

    def status(credentials, size=FILE, to=path):
        return ask(size, to, declared, [(b"authorization", credentials)])[0]

    known = f"Bearer {secret}".encode()
    assert status(known) == 200
    assert status(known, FILE + 1) == 413
    assert status(known, to="/api/v1/runs/") == 413
    for stranger in (b"", b"Bearer", b"Bearer x", b"Bearer \xff", b"Basic YTpi"):
        assert status(stranger) == 413, stranger
    access.token_revoke(token=token, user=alice)
    assert status(known) == 413


@pytest.mark.django_db(transaction=True)
def test_files_are_taken_from_a_signed_in_browser(alice):
    client = Client()
    client.force_login(alice)
    cookie = f"a=b; sessionid={client.cookies['sessionid'].value}".encode()
    assert ask(FILE, "/api/v1/uploads/", headers=[(b"cookie", cookie)])[0] == 200
    client.logout()
    for stranger in (cookie, b"sessionid=x", b"\xff;;=", b"sessionid"):
        assert ask(FILE, "/api/v1/uploads/", headers=[(b"cookie", stranger)])[0] == 413


def test_the_served_application_has_the_limit():
    from impakt_web.asgi import application

    assert isinstance(application, BodyLimit)
