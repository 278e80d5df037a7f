"""Connections behave: kept alive, pipelined, refused, and a client that leaves frees its slot."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from runners.endpoint.http import MAX_BODY
from runners.endpoint.testing import Endpoint, serve

BODY = {"model": "reference-1", "prompt": "one two three"}
SLOW = {"prefill_base_s": 0.001, "decode_base_s": 0.05}


def dial(endpoint: Endpoint) -> socket.socket:
    host, port = endpoint.root.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=5)


def raw_request(fields: dict[str, Any]) -> bytes:
    body = json.dumps(BODY | fields).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


def read_until(sock: socket.socket, end: bytes, times: int = 1) -> bytes:
    got = b""
    while got.count(end) < times:
        more = sock.recv(65536)
        assert more, f"closed after {got!r}"
        got += more
    return got


def read_until_closed(sock: socket.socket) -> bytes:
    got = b""
    while more := sock.recv(65536):
        got += more
    return got


def wait_for(check: Callable[[], bool], seconds: float = 5.0) -> None:
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end, "did not come true in time"
        time.sleep(0.01)


def gauge(endpoint: Endpoint, name: str) -> float:
    page = httpx.get(f"{endpoint.root}/metrics").text
    (line,) = [text for text in page.splitlines() if text.startswith(f"vllm:{name}{{")]
    return float(line.rsplit(" ", 1)[1])


def test_a_connection_serves_one_request_after_another(endpoint: Endpoint) -> None:
    with dial(endpoint) as sock:
        for stream in (True, False, True):
            sock.sendall(raw_request({"max_tokens": 2, "stream": stream}))
            got = read_until(sock, b"\r\n0\r\n\r\n" if stream else b'"total_tokens":5}}')
            assert got.startswith(b"HTTP/1.1 200 ")


def test_pipelined_requests_are_answered_in_their_order(endpoint: Endpoint) -> None:
    with dial(endpoint) as sock:
        sock.sendall(b"".join(raw_request({"max_tokens": n, "stream": True}) for n in (5, 1, 3)))
        got = read_until(sock, b"[DONE]", times=3)
    answers = got.split(b"[DONE]")[:3]
    assert [answer.count(b'"finish_reason":null') for answer in answers] == [5, 1, 3]


def test_a_request_that_comes_in_pieces_is_understood(endpoint: Endpoint) -> None:
    with dial(endpoint) as sock:
        for byte in raw_request({"max_tokens": 1}):
            sock.sendall(bytes([byte]))
        assert read_until(sock, b"total_tokens").startswith(b"HTTP/1.1 200 ")


def test_what_is_not_http_is_refused_and_hung_up(endpoint: Endpoint) -> None:
    with dial(endpoint) as sock:
        sock.sendall(b"\x16\x03\x01 hello\r\n\r\n")
        assert read_until_closed(sock).startswith(b"HTTP/1.1 400 ")


def test_a_body_that_is_too_large_is_refused_before_it_is_read(endpoint: Endpoint) -> None:
    with dial(endpoint) as sock:
        head = f"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {MAX_BODY + 1}\r\n\r\n"
        sock.sendall(head.encode())
        assert read_until_closed(sock).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_frees_its_slot(stream: bool) -> None:
    with serve("continuous", slots=1, **SLOW) as running:
        with dial(running) as sock:
            sock.sendall(raw_request({"max_tokens": 1000, "stream": stream}))
            wait_for(lambda: gauge(running, "generation_tokens_total") >= 2)
        started = time.monotonic()
        reply = httpx.post(f"{running.url}/completions", json=BODY | {"max_tokens": 1}, timeout=15)
        # The answer left would have taken 50 s.
        assert time.monotonic() - started < 10
        assert reply.status_code == 200
        left, done = running.truth()
    assert (left["outcome"], left["finish_reason"], done["outcome"]) == (
        "cancelled", None, "completed",
    )  # fmt: skip
    assert left["output_tokens"] < 100
    assert left["status"] == (200 if stream else None)
    assert (left["first_token_s"] is None) == (not stream)


def test_a_client_that_leaves_the_queue_is_never_admitted() -> None:
    with serve("continuous", slots=1, **SLOW) as running, dial(running) as first:
        first.sendall(raw_request({"max_tokens": 20, "stream": True}))
        with dial(running) as second:
            second.sendall(raw_request({"max_tokens": 1, "stream": True}))
            wait_for(lambda: gauge(running, "num_requests_waiting") == 1)
        wait_for(lambda: len(running.truth()) == 1)
        assert gauge(running, "num_requests_waiting") == 0
        (line,) = running.truth()
        assert (line["outcome"], line["admitted_s"], line["output_tokens"]) == (
            "cancelled",
            None,
            0,
        )
        read_until(first, b"[DONE]")


def test_a_full_queue_refuses_with_429_and_a_time_to_come_back() -> None:
    profile = {"slots": 1, "queue_limit": 1, "retry_after_s": 7, **SLOW}
    with serve("continuous", **profile) as running, dial(running) as second:
        with dial(running) as first:
            first.sendall(raw_request({"max_tokens": 1000, "stream": True}))
            wait_for(lambda: gauge(running, "num_requests_running") == 1)
            second.sendall(raw_request({"max_tokens": 2, "stream": True}))
            wait_for(lambda: gauge(running, "num_requests_waiting") == 1)
            refused = httpx.post(f"{running.url}/completions", json=BODY)
        read_until(second, b"[DONE]")
        page = httpx.get(f"{running.root}/metrics").text
        no, left, waited = running.truth()
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "7")
    error = refused.json()["error"]
    assert (error["type"], error["code"]) == ("rate_limit_error", "queue_full")
    assert (no["status"], no["outcome"], no["admitted_s"]) == (429, "rejected", None)
    assert (no["prompt_tokens"], no["output_tokens"]) == (3, 0)
    assert left["outcome"] == "cancelled"
    assert waited["outcome"] == "completed"
    assert waited["admitted_s"] >= left["end_s"] > waited["received_s"]
    rejected = 'vllm:admission_rejections_total{model_name="reference-1",'
    assert f'{rejected}reason="max_num_queued_reqs"}} 1.0' in page
