"""The fast transport on sockets: sends, connections, and how each failure is called."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import time
import tracemalloc
from pathlib import Path

import pytest

import runners.load.transports.fast.client
from records.errors import BadInput
from runners.load.attempt import Attempt, Broken
from runners.load.plan import Secret
from runners.load.transports.fast.client import FastClient
from runners.load.transports.fast.exchange import Exchange
from runners.load.transports.fast.http1 import ResponseReader
from tests.runners.load.fast.conftest import DONE, END, HEAD, WHOLE, Bench, request_of, token

ROOM = Path(runners.load.transports.fast.client.__file__).parent
KEY = "sk-very-secret-0123456789"


def answering(answer=WHOLE, seen=None):
    """A handler that answers every request with these bytes."""

    def handle(connection, _):
        while True:
            request = request_of(connection)
            if seen is not None:
                seen.append(request)
            connection.sendall(answer)

    return handle


async def kind_of(bench, **options):
    """The kind and text of the failure of one attempt, and the attempt."""
    attempt = Attempt("r", 1)
    try:
        await bench.post(attempt=attempt, **options)
    except Broken as error:
        return error.kind, str(error), attempt
    return None, None, attempt


def test_a_connection_is_kept_and_a_request_goes_out_whole(listen, run):
    seen = []
    server = listen(answering(seen=seen))

    async def script(bench):
        first, second = await bench.post(b'{"a":1}'), await bench.post(b'{"b":2}')
        return [first, second], bench.client.told()["connections"]

    attempts, counts = run(server.url, script)
    assert [a.connection for a in attempts] == ["new", "reused"]
    assert counts == {"new": 1, "reused": 1, "resent": 0}
    assert [body for _, body in seen] == [b'{"a":1}', b'{"b":2}']
    head = seen[0][0].decode()
    assert head.startswith("POST /v1/chat/completions HTTP/1.1\r\n")
    for line in (f"Host: 127.0.0.1:{server.port}", "X-Request-Id: r", "Accept-Encoding: identity"):
        assert f"\r\n{line}" in head
    for attempt in attempts:
        assert attempt.answer.done
        assert attempt.http_status == 200
        assert attempt.sent_s <= attempt.first_byte_s <= attempt.end_s


def test_four_megabytes_go_to_a_slow_reader_and_others_do_not_wait(listen, run):
    body = b"x" * (4 << 20)
    seen = []

    def slow(connection, number):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        if number == 1:
            time.sleep(0.2)
        answering(seen=seen)(connection, number)

    async def script(bench):
        big = bench.start(body)
        await asyncio.sleep(0.05)
        before = bench.now()
        await bench.post()
        small_s = bench.now() - before
        assert not big.task.done()
        await big.task
        return big.attempt, small_s

    attempt, small_s = run(listen(slow).url, script)
    assert attempt.answer.done
    assert small_s < 0.1
    assert sorted(len(b) for _, b in seen) == [2, 4 << 20]


def test_an_answer_before_the_request_was_read_is_taken_and_ends_the_connection(listen, run):
    """A server refuses 16 MiB after the head; its word counts, not the broken pipe."""

    def refusing(connection, _):
        connection.recv(1000)
        connection.sendall(b"HTTP/1.1 413 Large\r\nContent-Length: 3\r\n\r\nbig")
        time.sleep(0.1)

    async def script(bench):
        attempt = await bench.post(b"x" * (16 << 20))
        return attempt, len(bench.client._idle)

    attempt, idle = run(listen(refusing).url, script)
    assert (attempt.http_status, attempt.error_text, idle) == (413, "big", 0)


def test_a_connection_that_closes_under_a_request_is_made_anew_once(listen, run):
    """The first connection answers once and closes when the next request comes."""

    def handle(connection, number):
        request_of(connection)
        connection.sendall(WHOLE)
        request_of(connection)
        if number != 1:
            connection.sendall(WHOLE)

    server = listen(handle)

    async def script(bench):
        await bench.post()
        return await bench.post()

    attempt = run(server.url, script)
    assert (attempt.connection, attempt.answer.done, server.connections) == ("resent", True, 2)


def test_a_fresh_connection_that_closes_is_a_failure(listen, run):
    kind, text, attempt = run(listen(lambda connection, _: request_of(connection)).url, kind_of)
    assert (kind, attempt.connection) == ("connection_reset", "new")
    assert "without an answer" in text


def test_an_idle_connection_that_ended_is_dropped_at_once(listen, run):
    def handle(connection, _):
        request_of(connection)
        connection.sendall(WHOLE)

    server = listen(handle)

    async def script(bench):
        await bench.post()
        await asyncio.sleep(0.05)
        assert not bench.client._idle
        return await bench.post()

    assert run(server.url, script).connection == "new"


def test_words_on_an_idle_connection_are_not_the_answer_to_the_next_request(listen, run):
    """Some servers say 408 to a connection that was silent for long."""

    def handle(connection, number):
        request_of(connection)
        connection.sendall(WHOLE)
        if number == 1:
            time.sleep(0.03)
            connection.sendall(b"HTTP/1.1 408 Timeout\r\nContent-Length: 0\r\n\r\n")
        request_of(connection)

    async def script(bench):
        await bench.post()
        await asyncio.sleep(0.1)
        return await bench.post()

    attempt = run(listen(handle).url, script)
    assert (attempt.http_status, attempt.connection) == (200, "new")


def test_old_idle_connections_are_closed(listen, run, monkeypatch):
    monkeypatch.setattr("runners.load.transports.fast.client._KEEP_IDLE_S", 0.05)
    monkeypatch.setattr("runners.load.transports.fast.client._SWEEP_S", 0.02)

    async def script(bench):
        await bench.post()
        await asyncio.sleep(0.2)
        return len(bench.client._lines), await bench.post()

    left, attempt = run(listen(answering()).url, script)
    assert (left, attempt.connection) == (0, "new")


def test_an_answer_is_over_at_done_and_its_tail_read_in_the_background(listen, run):
    """[DONE], and 0.1 s later the end of the body: the attempt does not wait for it."""

    def handle(connection, _):
        while True:
            request_of(connection)
            connection.sendall(HEAD + token() + DONE)
            time.sleep(0.1)
            connection.sendall(END)

    async def script(bench):
        first = await bench.post()
        took_s = bench.now() - first.sent_s
        during = await bench.post()
        await asyncio.sleep(0.15)
        after = await bench.post()
        return took_s, [first.connection, during.connection, after.connection]

    took_s, connections = run(listen(handle).url, script)
    assert took_s < 0.09
    assert connections == ["new", "new", "reused"]


def test_a_tail_without_end_costs_its_connection(listen, run, monkeypatch):
    monkeypatch.setattr("runners.load.transports.fast.client._TAIL_S", 0.05)
    monkeypatch.setattr("runners.load.transports.fast.client._SWEEP_S", 0.02)

    async def script(bench):
        await bench.post()
        await asyncio.sleep(0.2)
        return len(bench.client._lines)

    assert run(listen(answering(HEAD + token() + DONE)).url, script) == 0


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n", "bad_response", "SSH-2.0"),
        (HEAD + b"zz\r\n", "bad_response", "zz"),
        (HEAD + token() + b"5\r\nab", "truncated", "inside"),
        (HEAD + b"3\r\n<ht\r\n", "truncated", "inside"),
    ],
)
def test_a_broken_answer_is_named(listen, run, answer, kind, words):
    def handle(connection, _):
        request_of(connection)
        connection.sendall(answer)

    found, text, _ = run(listen(handle).url, kind_of)
    assert found == kind
    assert words in text


def test_a_reset_is_a_reset(listen, run):
    def handle(connection, _):
        request_of(connection)
        connection.sendall(HEAD + token())
        time.sleep(0.05)
        linger = b"\x01\x00\x00\x00\x00\x00\x00\x00"
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)

    kind, text, attempt = run(listen(handle).url, kind_of)
    assert (kind, attempt.http_status) == ("connection_reset", 200)
    assert attempt.answer.has_tokens
    assert "reset" in text


def test_nobody_listening_is_no_connection(run):
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{sock.getsockname()[1]}/v1"
        kind, text, _ = run(url, kind_of)
    assert (kind, text) == ("connect", "no connection (Connection refused)")


def test_the_next_address_of_a_name_is_tried_and_then_kept(listen, run):
    server = listen(answering())

    async def script(bench):
        dead = ("127.0.0.1", 1)
        live = ("127.0.0.1", server.port)
        place = bench.client._places
        for address in (dead, live):
            place.append(type("P", (), {"family": socket.AF_INET, "sockaddr": address})())
        first = await bench.post()
        return first, [p.sockaddr for p in bench.client._places]

    attempt, places = run(server.url, script)
    assert attempt.answer.done
    assert places == [("127.0.0.1", server.port)]


def test_ipv6_is_spoken(listen, run):
    try:
        server = listen(answering(), family=socket.AF_INET6, host="::1")
    except OSError:
        pytest.skip("no IPv6 here")

    async def script(bench):
        return await bench.post()

    assert run(f"http://[::1]:{server.port}/v1", script).answer.done


def cut_late(listen, run, gaps, late_s):
    """A stream with these seconds between its tokens, cut 80 ms after the send, by a loop
    that is held up from 30 ms on for `late_s`."""

    def handle(connection, _):
        request_of(connection)
        connection.sendall(HEAD + token("a"))
        for number, gap_s in enumerate(gaps):
            time.sleep(gap_s)
            connection.sendall(token("bc"[number]))
        with contextlib.suppress(ConnectionError):
            request_of(connection)

    async def script(bench):
        started = bench.start()
        await asyncio.sleep(0.03)
        started.attempt.limit_s = started.attempt.sent_s + 0.08
        time.sleep(late_s)  # noqa: ASYNC251 - the loop is to be late
        started.task.cancel()
        await asyncio.wait([started.task])
        assert len(bench.client._hub) == 0
        return started

    started = run(listen(handle).url, script)
    assert started.task.cancelled()
    assert started.gate.cancelled
    return started.attempt.answer.output()["text"]


def test_what_a_cancelled_request_had_received_in_time_counts(listen, run):
    """Tokens at 0 and 50 ms; cut at 80 ms, noticed at 200 ms."""
    assert cut_late(listen, run, [0.05], 0.17) == "ab"


def test_what_a_cancelled_request_received_too_late_does_not_count(listen, run):
    """Tokens at 0 and 120 ms; cut at 80 ms, noticed at 200 ms."""
    assert cut_late(listen, run, [0.12], 0.17) == "a"


def test_what_came_after_the_limit_ends_nothing(listen, run):
    def handle(connection, _):
        request_of(connection)
        time.sleep(0.05)
        connection.sendall(WHOLE)

    async def script(bench):
        started = bench.start()
        started.attempt.limit_s = 0.01
        await asyncio.sleep(0.15)
        done = started.task.done()
        started.task.cancel()
        await asyncio.wait([started.task])
        return done, started.attempt

    done, attempt = run(listen(handle).url, script)
    assert not done
    assert attempt.first_byte_s is None


def test_cancelling_before_the_gate_opens_sends_nothing(listen, run):
    server = listen(answering())

    async def script(bench):
        class Shut:
            cancelled = False

            def call(self, fire):
                self.fire = fire

            def cancel(self):
                self.cancelled = True

        gate, attempt = Shut(), Attempt("r", 1)
        task = asyncio.ensure_future(bench.client.send(attempt, b"{}", {}, gate))
        await asyncio.sleep(0.02)
        task.cancel()
        await asyncio.wait([task])
        return gate.cancelled, attempt.sent_s

    assert run(server.url, script) == (True, None)
    assert server.connections == 0


def test_a_redirect_tells_only_the_host_it_leads_to(listen, run):
    answer = (
        b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n"
        b"Location: https://u:p@elsewhere.example/x?key=s3cret\r\n\r\n"
    )

    async def script(bench):
        return await bench.post()

    attempt = run(listen(answering(answer)).url, script)
    assert attempt.http_status == 302
    assert attempt.error_text == "a redirect to elsewhere.example, not followed"


def test_a_refusal_keeps_its_words_and_when_to_come_back(listen, run):
    answer = b"HTTP/1.1 429 No\r\nRetry-After: 7\r\nContent-Length: 10\r\n\r\ncome\n back"

    async def script(bench):
        return await bench.post(), await bench.post()

    first, second = run(listen(answering(answer)).url, script)
    assert (first.retry_after, first.error_text) == ("7", "come back")
    assert second.connection == "reused"


@pytest.mark.parametrize("header", [None, "api-key"])
def test_a_key_is_sent_and_never_shown(listen, run, header):
    seen = []
    answer = b"HTTP/1.1 400 No\r\nContent-Length: %d\r\n\r\n" % (490 + len(KEY))
    answer += b"x" * 490 + KEY.encode()

    async def script(bench):
        return await bench.post()

    options = {"api_key": Secret(KEY), "api_key_header": header}
    attempt = run(listen(answering(answer, seen)).url, script, **options)
    sent = f"api-key: {KEY}" if header else f"Authorization: Bearer {KEY}"
    assert sent in seen[0][0].decode()
    assert attempt.error_text == "x" * 490 + "***"


def test_the_credentials_of_a_url_are_sent(listen, run):
    seen = []
    server = listen(answering(seen=seen))

    async def script(bench):
        return await bench.post()

    run(server.url.replace("//", "//us%20er:p%40ss@") + "?v=1", script)
    # base64("us er:p@ss")
    assert "Authorization: Basic dXMgZXI6cEBzcw==" in seen[0][0].decode()
    assert seen[0][0].startswith(b"POST /v1/chat/completions?v=1 HTTP/1.1")


@pytest.mark.parametrize(
    "url", ["ftp://x/", "http://", "http://x:0/", "http://x:99999/", "http://[::1/", "x"]
)
def test_a_url_that_names_no_place_is_bad_input(url):
    async def make():
        with pytest.raises(BadInput, match="url"):
            Bench(url)

    asyncio.run(make())


def test_timers_that_are_due_go_before_answers(listen, run):
    """A timer that is due while an answer is handed out is run first."""
    ran = []

    class Due:
        next_s = 0.0

        def run_due(self):
            ran.append(self.next_s)
            self.next_s = float("inf")

    async def script(bench):
        return await bench.post()

    assert run(listen(answering()).url, script, timers=Due()).answer.done
    assert ran == [0.0]


def test_the_list_of_models_is_fetched_as_it_is(listen, run):
    answer = b'HTTP/1.1 404 No\r\nContent-Length: 13\r\n\r\n{"data": [1]}'

    def handle(connection, _):
        connection.recv(1000)
        connection.sendall(answer)
        connection.recv(1000)

    async def script(bench):
        return await bench.client.get_models(5), isinstance(bench.client, FastClient)

    assert run(listen(handle).url, script) == ((404, b'{"data": [1]}'), True)


def test_models_that_never_come_are_a_timeout(listen, run):
    def handle(connection, _):
        connection.recv(1000)
        connection.recv(1000)

    async def script(bench):
        with pytest.raises(Broken, match=r"no answer within 0.05 s"):
            await bench.client.get_models(0.05)

    run(listen(handle).url, script)


def test_a_finished_request_leaves_nothing_to_the_garbage_collector(listen, run):
    """Runs go on without the collector: what is done must be free at once."""

    async def script(bench):
        await bench.post()
        gc.collect()
        gc.disable()
        try:
            for _ in range(20):
                await bench.post()
            await asyncio.sleep(0)
            # Not isinstance: to ask a lazy object of another room for its class wakes it.
            kept = (Exchange, ResponseReader)
            return sum(issubclass(type(o), kept) for o in gc.get_objects())
        finally:
            gc.enable()

    assert run(listen(answering()).url, script) <= 1


def test_a_fault_of_ours_comes_out_of_the_send(listen, run, monkeypatch):
    def broken(self, data, at_s):
        raise ZeroDivisionError

    monkeypatch.setattr("runners.load.transports.fast.exchange.BodyReader.feed", broken)

    async def script(bench):
        with pytest.raises(ZeroDivisionError):
            await bench.post()
        return len(bench.client._hub)

    assert run(listen(answering()).url, script) == 0


def test_an_open_stream_costs_little_memory(listen, run):
    """100 streams that have begun: what the client holds for each, tokens aside."""

    def handle(connection, number):
        request_of(connection)
        connection.sendall(HEAD + token())
        if number == 1:
            connection.sendall(DONE + END)
        with contextlib.suppress(ConnectionError):
            request_of(connection)

    async def script(bench):
        await bench.post()
        gc.collect()
        tracemalloc.start()
        try:
            started = [bench.start() for _ in range(100)]
            for _ in range(500):
                if all(s.attempt.answer.has_tokens for s in started):
                    break
                await asyncio.sleep(0.02)
            gc.collect()
            taken = tracemalloc.take_snapshot()
        finally:
            tracemalloc.stop()
        for one in started:
            one.task.cancel()
        await asyncio.wait([s.task for s in started])
        ours = taken.filter_traces([tracemalloc.Filter(True, f"{ROOM}/*")])
        return sum(s.size for s in ours.statistics("filename")) / 100

    assert run(listen(handle).url, script) < 10_000
