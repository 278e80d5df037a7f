"""Whatever clients do, the server lives and its accounts add up."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections import Counter

import httpx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from runners.endpoint.http import Connection, Exchange
from runners.endpoint.testing import Endpoint, serve


class Wire(asyncio.Transport):
    """A transport that keeps what was written."""

    def __init__(self) -> None:
        super().__init__()
        self.sent, self.closed = b"", False

    def get_extra_info(self, name: str, default: object = None) -> object:
        return self

    def setsockopt(self, *option: int) -> None:
        """TCP_NODELAY of a socket that is not there."""

    def write(self, data: bytes) -> None:
        assert not self.closed
        self.sent += data

    def close(self) -> None:
        self.closed = True

    abort = close


PIECES = st.lists(
    st.one_of(
        st.binary(max_size=40),
        st.sampled_from([
            b"GET /x HTTP/1.1\r\n", b"POST /x HTTP/1.1\r\n", b"HEAD / HTTP/1.0\r\n", b"host: x\r\n",
            b"content-length: 3\r\n", b"content-length: 99999999\r\n", b"content-length: -1\r\n",
            b"transfer-encoding: chunked\r\n", b"expect: 100-continue\r\n", b"\r\n", b"abc",
            b"3\r\nabc\r\n", b"0\r\n\r\n", b"connection: close\r\n", b"PRI * HTTP/2.0\r\n\r\n",
        ]),
    ),
    max_size=12,
)  # fmt: skip


@given(PIECES)
@example([b"GET /x HTTP/1.1\r\n", b"host: x\r\n", b"\r\n"])
@example([b"HEAD / HTTP/1.0\r\n", b"\r\n"])
@example([b"GET /x HTTP/1.1\r\nhost: x\r\n\r\nGET /x HTTP/1.1\r\nhost: x\r\n\r\n"])
@settings(max_examples=400, deadline=None)
def test_no_bytes_bring_a_connection_down(pieces: list[bytes]) -> None:
    async def feed() -> tuple[int, Wire]:
        answered = []

        def answer(exchange: Exchange) -> None:
            answered.append(exchange.path)
            exchange.reply(200, b"ok", "text/plain", [])

        wire, opened = Wire(), set()
        connection = Connection(answer, opened, asyncio.Event())
        connection.connection_made(wire)
        for piece in pieces:
            if piece and not wire.closed:
                connection.data_received(piece)
        await asyncio.sleep(0)
        connection.connection_lost(None)
        assert opened == set()
        return len(answered), wire

    answered, wire = asyncio.run(feed())
    assert wire.sent.count(b"HTTP/1.1 200 ") == answered


async def visitor(endpoint: Endpoint, i: int, rng: random.Random) -> str:
    """Asks for up to 40 tokens; one in three leaves before the end."""
    host, port = endpoint.root.removeprefix("http://").split(":")
    await asyncio.sleep(rng.random())
    reader, writer = await asyncio.open_connection(host, int(port))
    stream = "true" if rng.random() < 0.7 else "false"
    body = f'{{"model": "reference-1", "prompt": "a b", "max_tokens": {rng.randint(1, 40)}, '
    body += f'"stream": {stream}}}'
    head = (
        f"POST /v1/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-request-id: r{i}\r\n"
    )
    writer.write(f"{head}content-length: {len(body)}\r\n\r\n{body}".encode())
    if rng.random() < 1 / 3:
        await asyncio.sleep(rng.random() / 3)
        writer.transport.abort()
        return "left"
    got = await asyncio.wait_for(reader.read(-1), 30)
    writer.close()
    return got[9:12].decode()


async def crowd(endpoint: Endpoint) -> Counter[str]:
    rng = random.Random(5)
    visits = (visitor(endpoint, i, random.Random(rng.random())) for i in range(150))
    return Counter(await asyncio.gather(*visits))


def settled_page(endpoint: Endpoint) -> str:
    """The metrics page once the last who left has been noticed."""
    for _ in range(100):
        time.sleep(0.05)
        page = httpx.get(f"{endpoint.root}/metrics").text
        gauges = re.findall(r"^vllm:num_requests_\w+{.*} (.*)$", page, re.MULTILINE)
        if gauges == ["0.0", "0.0"]:
            break
    return page


@pytest.mark.parametrize("profile", ["continuous", "static"])
def test_accounts_add_up_when_clients_come_and_leave_at_random(profile: str) -> None:
    with serve(profile, queue_limit=20, decode_base_s=0.003, jitter=0.3) as running:
        seen = asyncio.run(crowd(running))
        page = settled_page(running)
        truth = running.truth()
    outcomes = Counter(line["outcome"] for line in truth)
    # Someone who left may have been answered or refused before; those who stayed have not left.
    assert outcomes["completed"] + outcomes["rejected"] >= seen["200"] + seen["429"]
    assert outcomes["cancelled"] <= seen["left"]
    # On a slow machine the crowd is spread out, and the queue may never fill.
    assert {"200", "left"} <= set(seen) <= {"200", "429", "left"}
    ids = [line["request_id"] for line in truth]
    assert len(set(ids)) == len(ids) == sum(outcomes.values())
    samples = {
        (s.name, s.labels.get("finished_reason")): s.value
        for family in text_string_to_metric_families(page)
        for s in family.samples
        if "le" not in s.labels
    }
    assert samples["vllm:num_requests_running", None] == 0
    assert samples["vllm:num_requests_waiting", None] == 0
    assert samples["vllm:request_success_total", "length"] == outcomes["completed"]
    assert samples["vllm:request_success_total", "abort"] == outcomes["cancelled"]
    assert samples["vllm:admission_rejections_total", None] == outcomes["rejected"]
    made = sum(line["output_tokens"] for line in truth)
    assert samples["vllm:generation_tokens_total", None] == made
