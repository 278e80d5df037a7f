"""Connections: how they begin, break, go stale and fill, on both transports."""

from __future__ import annotations

import json
import socket
import ssl
import threading

import numpy as np
import pytest

from tests.runners.load.conftest import rows
from tests.runners.load.server import ANSWER, sse, token, usage


@pytest.fixture
def send(load, transport):
    """Runs a plan on one of the transports: the outcome, the folder, attempts by request."""

    def run(url, *lines, **options):
        outcome, folder = load(url, *lines, transport=transport, **options)
        return outcome, folder, {a["request_id"]: a for a in rows(folder, "attempts")}

    return run


CHUNKED = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def columns(attempt, *names):
    return tuple(attempt[name] for name in names)


def test_a_connection_closed_while_idle_is_replaced_and_the_server_not_blamed(serve, send):
    """The server closes 0.1 s after the first answer; the second request is due at 0.3 s."""
    server = serve()

    def script(request):
        if len(server.posts) == 1:
            threading.Timer(0.1, server.close_idle).start()
        return ANSWER

    server.script = script
    _, folder, found = send(server.url, {"id": "a"}, {"id": "b", "at_s": 0.3})
    assert columns(found["b"], "outcome", "attempt") == ("completed", 1)
    assert found["b"]["connection"] in ("new", "resent")
    assert folder.run["errors"] == {}
    assert [r["headers"]["x-request-id"] for r in server.posts] == ["a", "b"]
    assert server.connections == 2


def test_a_request_that_meets_a_closing_connection_goes_out_again(serve, send):
    """No byte came back on a connection used before: a fresh one, one attempt, recorded."""
    server = serve()
    server.script = lambda r: {"raw": True} if len(server.posts) == 2 else ANSWER
    _, folder, found = send(server.url, {"id": "a"}, {"id": "b", "at_s": 0.2})
    assert columns(found["b"], "outcome", "connection", "attempt") == ("completed", "resent", 1)
    assert [r["headers"]["x-request-id"] for r in server.posts] == ["a", "b", "b"]
    assert server.posts[2]["connection"] != server.posts[1]["connection"]
    assert rows(folder, "requests")[1]["attempts"] == 1
    assert folder.run["errors"] == {}


# What httpx tells of an answer begins with its head; the fast transport sees each byte.
HALF_A_HEAD, HEAD = "HTTP/1.1 200 OK\r\nContent-Le", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"


@pytest.mark.parametrize("begun", [HALF_A_HEAD, HEAD], ids=["half a head", "a head"])
def test_a_request_is_never_sent_again_once_an_answer_began(serve, send, transport, begun):
    if (transport, begun) == ("httpx", HALF_A_HEAD):
        return
    server = serve()
    cut = {"raw": True, "events": [[0, begun]]}
    server.script = lambda r: cut if len(server.posts) == 2 else ANSWER
    _, _, found = send(server.url, {"id": "a"}, {"id": "b", "at_s": 0.2})
    assert columns(found["b"], "outcome", "connection") == ("failed", "reused")
    assert [r["headers"]["x-request-id"] for r in server.posts] == ["a", "b"]


def test_a_server_that_always_closes_is_blamed_after_a_few_resendings(serve, send):
    server = serve({"raw": True})
    _, _, found = send(server.url, {"id": "a"})
    assert columns(found["a"], "outcome", "error_kind") == ("failed", "connection_reset")
    assert len(server.posts) <= 4


def test_connections_are_used_again_and_only_as_many_as_are_needed(serve, send):
    """Twenty requests of 20 ms, two at a time every 100 ms, need two connections."""
    server = serve({"events": [[20, sse(token("a", "stop"))]]})
    _, _, found = send(server.url, *({"id": f"r{i}", "at_s": i // 2 * 0.1} for i in range(20)))
    assert [a["connection"] for a in found.values()].count("new") == server.connections - 1
    assert server.connections <= 4


def test_no_hidden_limit_keeps_streams_from_being_open_at_once(serve, send, transport):
    """All arrive at once and are answered after 2 s: a limit would hold some of them back."""
    many = {"fast": 300, "httpx": 60}[transport]
    server = serve({"events": [[2000, sse(token("a", "stop"))]]})
    _, _, found = send(server.url, *({"id": f"r{i}"} for i in range(many)))
    assert {a["outcome"] for a in found.values()} == {"completed"}
    assert max(a["sent_s"] for a in found.values()) < min(a["end_s"] for a in found.values())


def test_an_unknown_host_is_said_to_be_unknown(send):
    outcome, folder, _ = send("http://no-such-host.invalid/v1", {})
    assert "host name is not known" in str(outcome.error)
    assert folder.run["end"]["reason"] == "endpoint_unreachable"


def test_tls_to_a_plain_server_is_said_to_fail_in_the_handshake(serve, send):
    outcome, _, _ = send(serve().url.replace("http:", "https:"), {})
    assert "TLS handshake failed" in str(outcome.error)


@pytest.fixture
def serve_tls(serve, certificate):
    """A scripted server that speaks TLS with the self-signed certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    return lambda script=ANSWER, **options: serve(script, tls=context, **options)


def test_a_certificate_that_nobody_vouches_for_is_refused(serve_tls, send):
    server = serve_tls()
    outcome, _, _ = send(server.url, {})
    assert "certificate" in str(outcome.error)
    assert server.seen == []


def test_a_certificate_of_a_given_authority_is_trusted(serve_tls, send, certificate):
    """The same certificate, given as the authority to trust."""
    events = [[20, sse(token("a"))[:30]], [40, sse(token("a"))[30:]]]
    server = serve_tls({"events": events})
    lines = ({"id": f"r{i}", "at_s": i * 0.03} for i in range(10))
    outcome, _, found = send(server.url, *lines, ca_file=certificate[0])
    assert outcome.outcomes == {"completed": 10}
    assert all(0.039 <= a["first_token_s"] - a["sent_s"] < 0.5 for a in found.values())


def test_a_certificate_for_another_name_is_refused(serve_tls, send, certificate):
    """127.0.0.2 is the same machine, but the certificate is for localhost and 127.0.0.1."""
    server = serve_tls(host="0.0.0.0")
    url = server.url.replace("0.0.0.0", "127.0.0.2")
    outcome, _, _ = send(url, {}, ca_file=certificate[0])
    assert "127.0.0.2" in str(outcome.error)
    assert "certificate" in str(outcome.error)
    assert server.seen == []


def test_an_ipv6_address_is_reached(serve, send):
    try:
        with socket.socket(socket.AF_INET6) as sock:
            sock.bind(("::1", 0))
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    server = serve(host="::1")
    outcome, _, _ = send(server.url, {})
    assert outcome.outcomes == {"completed": 1}
    assert server.posts[0]["headers"]["host"] == f"[::1]:{server.port}"


def test_redirects_are_refused(serve, send):
    elsewhere = serve()
    server = serve()
    server.script = lambda r: {
        "status": int(r["headers"]["x-request-id"]), "headers": {"Location": elsewhere.url},
    }  # fmt: skip
    _, _, found = send(server.url, *({"id": str(s)} for s in (301, 302, 303, 307, 308)))
    for status, attempt in found.items():
        assert columns(attempt, "outcome", "error_kind") == ("failed", "bad_response")
        assert attempt["http_status"] == int(status)
    assert elsewhere.seen == []
    assert len(server.posts) == 5


def test_events_that_a_gateway_held_back_show_as_events_per_receive(serve, send):
    """Thirty tokens in three writes of ten, 100 ms apart, beside three tokens in three writes."""
    ten = sse(*[token("a")] * 10, done=False)
    end = sse(token("", "stop"), usage(1, 30))
    held = {"events": [[50, ten], [150, ten], [250, ten + end]]}
    one = sse(token("a"), done=False)
    single = {"events": [[50, one], [150, one], [250, one + sse(token("", "stop"), usage(1, 3))]]}
    server = serve(lambda r: held if r["headers"]["x-request-id"] == "held" else single)
    _, folder, found = send(server.url, {"id": "held"}, {"id": "single"})
    chunks = {c["request_id"]: c for c in rows(folder, "chunks")}
    assert columns(found["held"], "output_tokens", "receives") == (30, 3)
    assert sum(gap == 0 for gap in chunks["held"]["gap_us"]) == 27
    # The first token shared its receive with nine others: it came after the head.
    after = found["held"]["first_token_after_s"]
    assert found["held"]["sent_s"] < after < found["held"]["first_token_s"] - 0.02
    assert columns(found["single"], "receives", "first_token_after_s") == (3, None)


def test_a_server_that_does_not_read_ends_in_the_timeout(serve, send):
    """12 MB do not fit in the buffers between: the request is never sent whole."""
    server = serve()
    server.reads_after_s = {"deaf": 30}
    _, _, found = send(server.url, {"id": "deaf", "prompt": "x" * (12 << 20), "timeout_s": 0.5})
    assert columns(found["deaf"], "outcome", "error_kind") == ("timed_out", "timeout")
    assert 0.49 <= found["deaf"]["end_s"] - found["deaf"]["sent_s"] < 5


def test_a_long_prompt_that_goes_out_slowly_disturbs_nobody(serve, send):
    """12 MB wait at a slow reader while twenty short answers come, each on its time."""
    server = serve(lambda r: SHORT)
    server.reads_after_s = {"big": 0.4}
    short = [{"id": f"r{i}", "at_s": 0.05 + i * 0.01} for i in range(20)]
    for _ in range(3):
        server.seen.clear()
        outcome, _, found = send(server.url, {"id": "big", "prompt": "x" * (12 << 20)}, *short)
        assert outcome.outcomes == {"completed": 21}
        big = next(r for r in server.posts if r["headers"]["x-request-id"] == "big")
        assert json.loads(big["body"])["messages"][0]["content"] == "x" * (12 << 20)
        assert found["big"]["first_token_s"] > 0.4
        waits = [found[r["id"]]["first_token_s"] - found[r["id"]]["sent_s"] for r in short]
        assert min(waits) >= 0.019
        if np.quantile(waits, 0.9) < 0.1:
            return
    pytest.fail(f"first tokens after {sorted(waits)} s instead of 0.02 s")


SHORT = {"events": [[20, sse(token("a", "stop"))]]}


def test_the_first_byte_is_that_of_a_head_that_comes_slowly(serve, send):
    """Interim responses and a head in pieces: the time is that of the first of it."""
    whole = "HTTP/1.1 200 OK\r\n\r\n" + sse(token("a", "stop"), usage(1, 1))
    server = serve({
        "raw": True, "framing": "none",
        "events": [[10, "HTTP/1.1 103 Early"], [20, " Hints\r\n\r\n"], [400, whole]],
    })  # fmt: skip
    attempt = send(server.url, {"id": "a"})[2]["a"]
    assert attempt["outcome"] == "completed"
    # 0.4 s after the request, 0.39 s after the first byte.
    assert attempt["first_token_s"] - attempt["first_byte_s"] > 0.2
    assert attempt["first_token_s"] - attempt["sent_s"] > 0.39


def test_a_head_that_never_ends_has_its_first_byte(serve, send):
    """What came of it before the attempt's own limit of 0.5 s is known, whatever it would say."""
    server = serve({"raw": True, "events": [[20, "HTTP/1.1 200 OK\r\nContent-"]], "end": "hang"})
    attempt = send(server.url, {"id": "a", "timeout_s": 0.5})[2]["a"]
    assert columns(attempt, "outcome", "http_status") == ("timed_out", None)
    assert 0 < attempt["first_byte_s"] - attempt["sent_s"] < 0.5


def test_a_refusal_that_our_timeout_cuts_keeps_its_words(load, serve, transport):
    head = "HTTP/1.1 429 X\r\nContent-Length: 100\r\n\r\nslow"
    server = serve({"raw": True, "events": [[0, head]], "end": "hang"})
    _, folder = load(server.url, {"timeout_s": 0.3}, transport=transport)
    (attempt,) = rows(folder, "attempts")
    assert (attempt["outcome"], attempt["error_kind"]) == ("rejected", "http_4xx")
    assert folder.run["errors"]["http_4xx"]["example"] == "slow"


def test_what_follows_an_answer_holds_no_slot(serve, send):
    """Three at once, one slot, 50 ms each; the body ends 0.6 s later: 0.1 s wait, not 1.2."""
    answer = sse(token("a", "stop"), usage(1, 1))
    raw = [[0, CHUNKED], [50, f"{len(answer):x}\r\n{answer}\r\n"], [650, "0\r\n\r\n"]]
    server = serve({"raw": True, "keep": True, "events": raw})
    found = send(server.url, *({"id": name} for name in "abc"), max_concurrency=1)[2]
    assert {a["outcome"] for a in found.values()} == {"completed"}
    assert 0.1 <= max(a["sent_s"] for a in found.values()) < 0.6


def test_an_end_that_comes_with_the_answer_leaves_its_connection_to_the_next(serve, send):
    server = serve()
    lines = [{"id": str(i), "at_s": 0.05 * i} for i in range(6)]
    found = send(server.url, *lines, max_concurrency=1)[2]
    assert {a["connection"] for a in found.values()} == {"reused"}
    assert server.connections == 1
