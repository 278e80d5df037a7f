"""TLS by memory buffers behaves as a bare connection does, and its failures have names."""

from __future__ import annotations

import contextlib
import socket
import ssl
import time

import pytest

from runners.load.attempt import Attempt, Broken
from tests.runners.load.fast.conftest import DONE, END, HEAD, WHOLE, request_of, token


@pytest.fixture
def listen_tls(listen, certificate):
    """Starts raw servers whose handlers get connections that speak TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)

    def start(handler, version=None):
        if version is not None:
            context.maximum_version = version

        def handle(connection, number):
            quiet = contextlib.suppress(ssl.SSLError, ConnectionError)
            with quiet, context.wrap_socket(connection, server_side=True) as secure:
                handler(secure, number)

        server = listen(handle)
        server.url = server.url.replace("http:", "https:")
        return server

    return start


def twice(gap_s=0.0):
    """A handler that answers requests, `gap_s` between two tokens."""

    def handle(connection, _):
        while True:
            request_of(connection)
            connection.sendall(HEAD + token("a"))
            time.sleep(gap_s)
            connection.sendall(token("b") + DONE + END)

    return handle


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_connection_is_kept_past_session_tickets(listen_tls, run, certificate, version):
    async def script(bench):
        first = await bench.post()
        return [first, await bench.post()], bench.client.stamp_source

    server = listen_tls(twice(0.05), version)
    attempts, source = run(server.url, script, ca_file=certificate[0])
    assert [a.connection for a in attempts] == ["new", "reused"]
    for attempt in attempts:
        assert attempt.stamp_source == source
        assert attempt.answer.output()["text"] == "ab"
        assert attempt.answer.last_token_s - attempt.answer.first_token_s > 0.04


def test_four_megabytes_are_encrypted_as_the_reader_takes_them(listen_tls, run, certificate):
    sizes = []

    def slow(connection, _):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        time.sleep(0.1)
        sizes.append(len(request_of(connection)[1]))
        connection.sendall(WHOLE)
        with contextlib.suppress(ConnectionError):
            request_of(connection)

    async def script(bench):
        return await bench.post(b"x" * (4 << 20))

    attempt = run(listen_tls(slow).url, script, ca_file=certificate[0])
    assert attempt.answer.done
    assert sizes == [4 << 20]


def failure(run, url, **options):
    async def script(bench):
        with pytest.raises(Broken) as caught:
            await bench.post(attempt=Attempt("r", 1))
        return caught.value.kind, str(caught.value)

    return run(url, script, **options)


def test_a_certificate_nobody_vouches_for(listen_tls, run):
    kind, text = failure(run, listen_tls(twice()).url)
    assert kind == "tls"
    assert "self-signed certificate" in text


def test_a_certificate_for_another_name(listen_tls, run, certificate):
    """The certificate is for localhost and 127.0.0.1; 127.0.0.2 is the same machine."""
    server = listen_tls(twice())
    # The raw server listens on 127.0.0.1 only: the name is exchanged after the connection.
    url = server.url.replace("127.0.0.1", "127.0.0.1.nip.invalid")

    async def script(bench):
        place = type("P", (), {"family": socket.AF_INET, "sockaddr": ("127.0.0.1", server.port)})
        bench.client._places.append(place())
        with pytest.raises(Broken) as caught:
            await bench.post()
        return caught.value.kind, str(caught.value)

    kind, text = run(url, script, ca_file=certificate[0])
    assert kind == "tls"
    assert "127.0.0.1.nip.invalid" in text


@pytest.mark.parametrize("words", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n"])
def test_a_server_that_speaks_no_tls(listen, run, words):
    def handle(connection, _):
        connection.recv(1000)
        connection.sendall(words)

    kind, text = failure(run, listen(handle).url.replace("http:", "https:"))
    assert kind == "tls"
    assert "TLS handshake failed" in text


def test_a_stream_that_ends_with_its_session_is_truncated(listen_tls, run, certificate):
    def handle(connection, _):
        request_of(connection)
        connection.sendall(HEAD + token())
        time.sleep(0.02)
        connection.unwrap()

    kind, _ = failure(run, listen_tls(handle).url, ca_file=certificate[0])
    assert kind == "truncated"
