"""The truth server of the benchmarks: what it sends, and when it says that it sent it."""

from __future__ import annotations

import json
import socket
import time
from urllib.parse import urlsplit

import httpx
import pytest

from benchmarks.load.floor import drain
from benchmarks.load.measure import truth_server
from benchmarks.truth_bytes import TOKEN, asked

BODY = {"model": "truth", "stream": True, "messages": []}


def test_a_stream_has_the_tokens_the_pace_and_the_end_that_its_body_asks_for():
    """Four tokens 20 ms apart: the last is due 60 ms after the first."""
    with truth_server() as server, httpx.Client() as client:
        wanted = {**BODY, "max_tokens": 4, "itl_ms": 20, "ttft_ms": 1}
        answer = client.post(
            server.url + "/chat/completions", json=wanted, headers={"X-Request-Id": "mine"}
        )
        ended_ns = time.monotonic_ns()
    events = [line.removeprefix("data: ") for line in answer.text.split("\n\n") if line]
    assert events[-1] == "[DONE]"
    *tokens, finish, usage = map(json.loads, events[:-1])
    assert [t["choices"][0]["delta"]["content"] for t in tokens] == [" token"] * 4
    assert finish["choices"][0]["finish_reason"] == "length"
    assert usage["usage"]["completion_tokens"] == 4
    sent = server.truth.sent_ns["mine"]
    assert len(sent) == 4
    assert server.truth.arrived_ns["mine"] < sent[0] < sent[-1] < ended_ns
    # Never before its time; later on a busy machine.
    assert sent[-1] - sent[0] >= 59e6


def test_a_connection_is_used_again_and_a_prompt_of_a_megabyte_is_taken():
    """Both answers have their own tokens in the log, the second by the option."""
    with truth_server() as server, httpx.Client() as client:
        assert client.get(server.url + "/models").json()["data"][0]["id"] == "truth"
        for number, text in enumerate(("short", "w " * 500_000)):
            body = {**BODY, "max_tokens": 2 + number, "itl_ms": 1, "messages": [text]}
            answer = client.post(server.url + "/chat/completions", json=body)
            assert answer.text.endswith("data: [DONE]\n\n")
    assert [len(sent) for sent in server.truth.sent_ns.values()] == [2, 3]


def test_a_client_that_reads_late_gets_every_byte():
    """The socket holds less than 40,000 tokens, so that sends are cut short and go on."""
    tokens = 40_000
    with truth_server(tokens=tokens) as server:
        parts = urlsplit(server.url)
        with socket.create_connection((parts.hostname, parts.port)) as sock:
            body = b'{"itl_ms": 0.001, "ttft_ms": 0}'
            head = b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n"
            sock.sendall(head % len(body) + body)
            time.sleep(0.5)
            received = b""
            while not received.endswith(b"0\r\n\r\n"):
                received += sock.recv(1 << 20)
    assert received.count(TOKEN) == tokens - 1
    assert server.truth.tokens == tokens


def test_streams_over_tls_are_the_same():
    """The floor client reads two streams to their end with the server's certificate."""
    with truth_server(tls=True, tokens=3) as server:
        told = drain(server.url, 2, BODY, server.ca_file)
    assert len(told["first_s"]) == 2
    assert server.truth.tokens == 6


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b'{"max_tokens": 12}', 12),
        (b'{"max_tokens":7,"prompt":"say \\"max_tokens\\": 9"}', 7),
        (b'{"prompt":"max_tokens"}', None),
        (b"{}", None),
    ],
)
def test_a_number_is_found_in_a_body_without_parsing_it(body, found):
    """Only a key counts: quotes inside a text are escaped."""
    assert asked(body, b"max_tokens") == found
