"""The httpx transport: addresses, proxies, HTTP/2, keys, limits; one attempt at a time."""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
import time

import pytest

from records.errors import BadInput, HostNotAllowed
from runners.load.attempt import Attempt, Broken
from runners.load.places import Address, check
from runners.load.plan import Secret
from runners.load.transports.httpx.client import HttpxClient
from tests.runners.load.conftest import plan_of
from tests.runners.load.httpx.h2_server import H2Server
from tests.runners.load.server import ANSWER, sse, token

KEY = "sk-very-secret-0123456789"


class Gate:
    """Opens at once and notes the moment."""

    def __init__(self, attempt, now):
        self.attempt, self.now = attempt, now

    async def wait(self):
        assert self.attempt.sent_s is None, "opened twice"
        self.opened()

    def opened(self):
        self.attempt.sent_s = self.now()
        return self.attempt.sent_s


@pytest.fixture
def talk():
    """Sends attempts over one transport: `talk(url, count, …)` gives them and what is told."""

    def run(url, count=1, at_once=False, limit_s=None, **options):
        return asyncio.run(_talk(plan_of(url, {}, **options), count, at_once, limit_s))

    return run


async def _talk(plan, count, at_once, limit_s):
    t0 = time.monotonic()

    def now():
        return time.monotonic() - t0

    client = HttpxClient(plan, now)
    try:
        status, _ = await client.get_models(10.0)
        assert status == 200
        client.begin()
        attempts = [Attempt(f"r{i}", 1) for i in range(count)]
        sends = [_one(client, a, now, limit_s) for a in attempts]
        if at_once:
            await asyncio.gather(*sends)
        else:
            for send in sends:
                await send
        return attempts, client.told()
    finally:
        await client.close()


async def _one(client, attempt, now, limit_s):
    broken = cut = None
    if limit_s is not None:
        attempt.limit_s = now() + limit_s
    try:
        async with asyncio.timeout(None if limit_s is None else limit_s + 0.3):
            headers = {"X-Request-Id": attempt.request_id}
            await client.send(attempt, b'{"stream":true}', headers, Gate(attempt, now))
    except Broken as error:
        broken = error
    except TimeoutError:
        cut = "timed_out"
    attempt.settle(cut, broken, now())


def outcomes(attempts):
    return [(a.outcome, a.error_kind, a.connection) for a in attempts]


def test_an_attempt_and_what_is_told_of_the_connections(talk, serve):
    """The connection of GET /models is used again by both."""
    server = serve()
    attempts, told = talk(server.url, 2)
    assert outcomes(attempts) == [("completed", None, "reused")] * 2
    assert told == {
        "stamp_source": "user",
        "http_version": "HTTP/1.1",
        "through_proxy": False,
        "address": "127.0.0.1",
        "connections": {"new": 0, "reused": 2, "resent": 0},
    }
    assert server.posts[0]["headers"]["host"] == f"127.0.0.1:{server.port}"
    assert {a.stamp_source for a in attempts} == {"user"}


def test_many_at_once_have_a_connection_each(talk, serve):
    server = serve({"events": [[100, ANSWER["events"][0][1]]]})
    attempts, told = talk(server.url, 30, at_once=True)
    assert {a.outcome for a in attempts} == {"completed"}
    assert told["connections"] == {"new": 29, "reused": 1, "resent": 0}
    assert server.connections == 30


@pytest.mark.parametrize("host", ["localhost", "127.1", "2130706433"])
def test_the_host_is_named_as_asked_and_connected_as_checked(talk, serve, host):
    server = serve()
    _, told = talk(server.url.replace("127.0.0.1", host))
    assert told["address"] in ("127.0.0.1", "::1")
    assert server.posts[0]["headers"]["host"] == f"{host}:{server.port}"


def test_a_name_is_resolved_once(talk, serve, monkeypatch):
    """The second answer of a rebinding name server would be the metadata service."""
    server, asked = serve(), []

    async def getaddrinfo(self, host, port, **_options):
        asked.append(host)
        ip = "127.0.0.1" if len(asked) == 1 else "169.254.169.254"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, port))]

    monkeypatch.setattr("asyncio.base_events.BaseEventLoop.getaddrinfo", getaddrinfo)
    url = server.url.replace("127.0.0.1", "rebinding.example")
    attempts, _ = talk(url, 5, at_once=True)
    assert {a.outcome for a in attempts} == {"completed"}
    assert asked == ["rebinding.example"]


def test_the_next_address_is_tried_where_nobody_listens_and_then_kept(talk, serve, monkeypatch):
    server = serve()

    async def getaddrinfo(self, host, port, **_options):
        ips = ("127.0.0.2", "127.0.0.3", "127.0.0.1")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, port)) for ip in ips]

    monkeypatch.setattr("asyncio.base_events.BaseEventLoop.getaddrinfo", getaddrinfo)
    attempts, told = talk(server.url.replace("127.0.0.1", "three.example"), 2)
    assert {a.outcome for a in attempts} == {"completed"}
    assert told["address"] == "127.0.0.1"


def test_a_refused_place_gets_no_byte(talk):
    with pytest.raises(HostNotAllowed, match="metadata"):
        talk("http://169.254.169.254/v1")
    with pytest.raises(HostNotAllowed, match="loopback"):
        talk("http://127.0.0.1:9/v1", allow_private=False)
    with pytest.raises(HostNotAllowed, match="metadata"):
        talk("http://169.254.169.254/v1", proxy="http://127.0.0.1:9")
    with pytest.raises(HostNotAllowed, match="metadata"):
        talk("http://llm.example/v1", proxy="http://169.254.169.254:80")


def test_a_name_that_we_know_for_a_refused_place_goes_to_no_proxy(talk, serve, monkeypatch):
    """Also where somebody's own name stands for the metadata service of a cloud."""
    known = {"innocent.example": "169.254.169.254", "127.0.0.1": "127.0.0.1"}

    async def stub(host, port, *, allow_private):
        check(host, known[host], allow_private=allow_private)
        return [Address(socket.AF_INET, (known[host], port))]

    monkeypatch.setattr("runners.load.transports.httpx.lines.addresses", stub)
    proxy = serve()
    with pytest.raises(HostNotAllowed, match=r"innocent\.example \(169\.254\.169\.254\)"):
        talk("http://innocent.example/v1", proxy=f"http://127.0.0.1:{proxy.port}")
    with pytest.raises(HostNotAllowed, match="metadata"):
        talk("http://metadata.google.internal/v1", proxy=f"http://127.0.0.1:{proxy.port}")
    assert proxy.seen == []


def test_a_proxy_is_asked_for_the_name(talk, serve):
    proxy = serve()
    url = f"http://u:p@127.0.0.1:{proxy.port}"
    attempts, told = talk("http://llm.internal.example/v1", proxy=url)
    assert attempts[0].outcome == "completed"
    assert proxy.posts[0]["path"] == "http://llm.internal.example/v1/chat/completions"
    assert proxy.posts[0]["headers"]["host"] == "llm.internal.example"
    assert proxy.posts[0]["headers"]["proxy-authorization"].startswith("Basic ")
    assert (told["through_proxy"], told["address"]) == (True, None)


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "127.0.0.1:8080", "http://", "ftp://x"])
def test_a_proxy_that_cannot_be_one_is_refused_without_its_password(talk, proxy):
    with pytest.raises(BadInput, match="proxy: an http"):
        talk("http://127.0.0.1/v1", proxy=proxy)


def test_the_certificate_is_checked_by_name_against_the_given_authority(talk, serve, certificate):
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)
    url = serve(tls=context).url.replace("127.0.0.1", "localhost")
    attempts, _ = talk(url, ca_file=certificate[0])
    assert attempts[0].outcome == "completed"
    with pytest.raises(Broken, match="TLS handshake failed") as refused:
        talk(url)
    assert refused.value.kind == "tls"
    with pytest.raises(Broken, match="TLS handshake failed"):
        # The same address under a name that the certificate does not carry.
        talk(url.replace("localhost", "127.1"), ca_file=certificate[0])


def test_an_authority_file_that_holds_none_is_said(talk, tmp_path):
    empty = tmp_path / "ca.pem"
    empty.write_text("nothing")
    for path in (empty, tmp_path / "missing.pem"):
        with pytest.raises(BadInput, match="CA file"):
            talk("https://127.0.0.1/v1", ca_file=path)


def test_a_key_goes_into_the_header_that_was_named(talk, serve):
    server = serve()
    talk(server.url, api_key=Secret(KEY), api_key_header="api-key")
    headers = server.posts[0]["headers"]
    assert (headers["api-key"], headers.get("authorization")) == (KEY, None)


@pytest.mark.parametrize("bad", [f"{KEY}\n", f"{KEY}é", f"{KEY}\r\nX: y"])
def test_a_key_that_no_header_can_carry_is_refused_unquoted(talk, bad):
    with pytest.raises(BadInput, match="API key") as refused:
        talk("http://127.0.0.1:9/v1", api_key=Secret(bad))
    assert KEY not in str(refused.value)


def test_what_came_after_the_limit_is_dropped(talk, serve):
    """First token at 0 ms, the rest at 400 ms; the limit is at 200 ms, the cut at 500 ms."""
    events = [[0, sse(token("a"), done=False)], [400, sse(token("b", "stop"))]]
    attempts, _ = talk(serve({"events": events}).url, limit_s=0.2)
    assert attempts[0].outcome == "timed_out"
    assert attempts[0].answer.output()["text"] == "a"


def test_an_answer_that_begins_after_the_limit_has_no_status(talk, serve):
    server = serve(lambda r: time.sleep(0.3) or ANSWER)
    attempts, _ = talk(server.url, limit_s=0.1)
    assert (attempts[0].outcome, attempts[0].http_status) == ("timed_out", None)


@pytest.mark.parametrize("stale", [1, 3])
def test_what_meets_closed_connections_is_sent_again_on_a_new_one(talk, serve, stale):
    """Of three idle connections the first one or all are closed as the next request comes."""
    server = serve()
    slow = {"events": [[100, ANSWER["events"][0][1]]]}
    server.script = lambda r: {"raw": True} if len(server.posts) == 4 else slow

    async def both():
        t0 = time.monotonic()
        client = HttpxClient(plan_of(server.url, {}), lambda: time.monotonic() - t0)
        try:
            await client.get_models(10.0)
            first = [Attempt(f"r{i}", 1) for i in range(3)]
            await asyncio.gather(*(_one(client, a, client.now, None) for a in first))
            last = Attempt("last", 1)
            await _one(client, last, client.now, None)
            return last, client.told()
        finally:
            await client.close()

    last, told = asyncio.run(both())
    assert (last.outcome, last.connection) == ("completed", "resent")
    assert told["connections"] == {"new": 2, "reused": 2, "resent": 1}
    # Three connections, and the new one.
    assert server.connections == 4


def test_retry_after_is_handed_on_as_it_came(talk, serve):
    server = serve({"status": 429, "headers": {"Retry-After": "7"}, "events": [[0, "{}"]]})
    attempts, _ = talk(server.url)
    assert (attempts[0].outcome, attempts[0].retry_after) == ("rejected", "7")


def test_a_compressed_answer_is_read_and_an_unknown_coding_refused(talk, serve):
    packed = gzip.compress(ANSWER["events"][0][1].encode()).decode("latin-1")
    known = {"headers": {"Content-Encoding": "gzip"}, "events": [[0, packed]], "latin1": True}
    attempts, _ = talk(serve(known).url)
    assert attempts[0].outcome == "completed"
    attempts, _ = talk(serve({**known, "headers": {"Content-Encoding": "rot13"}}).url)
    assert outcomes(attempts) == [("failed", "bad_response", "reused")]
    assert "rot13" in attempts[0].error_text


def test_garbage_is_a_bad_response_with_its_first_bytes(talk, serve):
    attempts, _ = talk(serve({"events": [[0, "<html>login\x00 here</html>"]]}).url)
    assert outcomes(attempts) == [("failed", "bad_response", "reused")]
    assert r"<html>login\x00 here" in attempts[0].error_text
    attempts, _ = talk(serve({"raw": True, "events": [[0, "SSH-2.0-x\r\n\r\n"]]}).url)
    assert outcomes(attempts) == [("failed", "bad_response", "reused")]
    assert "SSH-2.0-x" in attempts[0].error_text


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        # No line end: httpcore sees a server that went away.
        ("SSH-2.0-OpenSSH", "bad_response"),
        ("\x15\x03\x01\x00\x02\x02\x16", "bad_response"),
        ("HTTP/1.1 200 OK\r\nContent-Length: abc\r\n\r\n", "bad_response"),
        # The beginning of an answer and no more.
        ("HTTP/1.1 20", "connection_reset"),
    ],
)
def test_whatever_came_back_is_told_and_nothing_sent_again(talk, serve, said, kind):
    server = serve({"raw": True, "latin1": True, "events": [[0, said]]})
    attempts, _ = talk(server.url)
    assert outcomes(attempts) == [("failed", kind, "reused")]
    assert (repr(said.encode("latin-1")) in attempts[0].error_text) == (kind == "bad_response")
    assert attempts[0].first_byte_s is not None
    assert len(server.posts) == 1


@pytest.fixture
def h2():
    servers = []

    def start(streams, hold_s=0.2):
        servers.append(H2Server(streams, hold_s))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def test_http2_attempts_share_a_connection(talk, h2):
    server = h2(streams=100)
    attempts, told = talk(server.url, 20, at_once=True, http2=True)
    assert {a.outcome for a in attempts} == {"completed"}
    assert (server.connections, server.most_open) == (1, 20)
    assert told["http_version"] == "HTTP/2"
    assert told["connections"] == {"new": 0, "reused": 20, "resent": 0}
    assert attempts[0].answer.counts()["output_tokens"] == 2


def test_http2_opens_another_connection_where_the_server_allows_few_streams(talk, h2):
    """8 to a connection, 30 at once: 4 connections and nobody waits (each is held 0.2 s)."""
    server = h2(streams=8)
    attempts, _ = talk(server.url, 30, at_once=True, http2=True)
    assert {a.outcome for a in attempts} == {"completed"}
    assert server.most_open == 30
    assert 4 <= server.connections <= 5
    assert {h[":authority"] for h in server.seen} == {server.url.split("/")[2]}
