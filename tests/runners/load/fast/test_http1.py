"""A response is the same response however its bytes were cut."""

from __future__ import annotations

import gzip
import zlib

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from runners.load.transports.fast.http1 import ResponseReader

BODY = b'data: {"a": 1}\n\ndata: [DONE]\n\n'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n"
SECRET = "sk-0123456789"


def chunk(data, extension=b""):
    return b"%x%s\r\n%s\r\n" % (len(data), extension, data)


def coded(name, data):
    return CHUNKED + b"Content-Encoding: %s\r\n\r\n" % name + chunk(data) + b"0\r\n\r\n"


def raw_deflate(data):
    squeeze = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return squeeze.compress(data) + squeeze.flush()


TWO_CHUNKS = chunk(BODY[:7]) + chunk(BODY[7:])
# name: (bytes, whether the server closes then, the connection may be used again)
GOOD = {
    "one chunk": (CHUNKED + b"\r\n" + chunk(BODY) + b"0\r\n\r\n", False, True),
    "two chunks": (CHUNKED + b"\r\n" + TWO_CHUNKS + b"0\r\n\r\n", False, True),
    "upper-case sizes": (CHUNKED + b"\r\n1E\r\n" + BODY + b"\r\n0\r\n\r\n", False, True),
    "sizes with zeros": (CHUNKED + b"\r\n0001e\r\n" + BODY + b"\r\n000\r\n\r\n", False, True),
    "extensions": (
        CHUNKED + b"\r\n" + chunk(BODY, b';a="b c";d') + b"0 ;last\r\n\r\n", False, True,
    ),
    "trailers": (
        CHUNKED + b"\r\n" + TWO_CHUNKS + b"0\r\nX-A: b\r\nX-C: d\r\n\r\n", False, True,
    ),
    "a length": (HEAD + b"Content-Length: 30\r\n\r\n" + BODY, False, True),
    "one length twice": (HEAD + b"Content-Length: 30, 30\r\n\r\n" + BODY, False, True),
    "until closed": (HEAD + b"\r\n" + BODY, True, False),
    "asked to close": (
        CHUNKED + b"Connection: Close\r\n\r\n" + chunk(BODY) + b"0\r\n\r\n", False, False,
    ),
    "HTTP/1.0": (b"HTTP/1.0 200 OK\r\n\r\n" + BODY, True, False),
    "HTTP/1.0 kept": (
        b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 30\r\n\r\n" + BODY,
        False, True,
    ),
    "interim": (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
        + CHUNKED + b"\r\n" + chunk(BODY) + b"0\r\n\r\n", False, True,
    ),
    "no reason phrase": (b"HTTP/1.1 200\r\nContent-Length: 30\r\n\r\n" + BODY, False, True),
    "bare line feeds": (b"HTTP/1.1 200 OK\nContent-Length: 30\n\n" + BODY, False, True),
    "a folded header": (HEAD + b"X: a\r\n b\r\nContent-Length: 30\r\n\r\n" + BODY, False, True),
    "length and chunks": (
        CHUNKED + b"Content-Length: 3\r\n\r\n" + chunk(BODY) + b"0\r\n\r\n", False, False,
    ),
    "more than announced": (HEAD + b"Content-Length: 30\r\n\r\n" + BODY + b"x", False, False),
    "gzip": (coded(b"gzip", gzip.compress(BODY)), False, True),
    "gzip of two members": (
        coded(b"gzip", gzip.compress(BODY[:9]) + gzip.compress(BODY[9:])), False, True,
    ),
    "deflate": (coded(b"deflate", zlib.compress(BODY)), False, True),
    "deflate, unwrapped": (coded(b"deflate", raw_deflate(BODY)), False, True),
    "zstd": (coded(b"zstd", zstandard.compress(BODY)), False, True),
    "gzip in gzip": (coded(b"gzip, gzip", gzip.compress(gzip.compress(BODY))), False, True),
    "identity": (coded(b"identity", BODY), False, True),
}  # fmt: skip
# name: (bytes, whether the server closes then, kind, words of the text)
BAD = {
    "nothing": (b"", True, "connection_reset", "without an answer"),
    "half a head": (b"HTTP/1.1 200 OK\r\nConte", True, "connection_reset", "head"),
    "an interim only": (b"HTTP/1.1 100 Go\r\n\r\n", True, "connection_reset", "head"),
    "not HTTP": (b"SSH-2.0-OpenSSH\r\n", False, "bad_response", "SSH-2.0"),
    "HTTP/2": (b"HTTP/2 200\r\n\r\n", False, "bad_response", "HTTP/2"),
    "the start of nothing": (b"HTT", True, "bad_response", "HTT"),
    "a status that is none": (b"HTTP/1.1 garbage\r\n\r\n", False, "bad_response", "garbage"),
    "another protocol": (b"HTTP/1.1 101 Up\r\n\r\n", False, "bad_response", "switched"),
    "a header without colon": (HEAD + b"what\r\n\r\n", False, "bad_response", "what"),
    "a space in a name": (HEAD + b"A B: c\r\n\r\n", False, "bad_response", "A B"),
    "lengths at odds": (
        HEAD + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc", False, "bad_response", "3, 4",
    ),
    "a negative length": (HEAD + b"Content-Length: -1\r\n\r\n", False, "bad_response", "-1"),
    "a size that is none": (CHUNKED + b"\r\nxyz\r\n", False, "bad_response", "xyz"),
    "a negative size": (CHUNKED + b"\r\n-5\r\nabcde\r\n", False, "bad_response", "-5"),
    "a size with an underscore": (CHUNKED + b"\r\n1_0\r\n", False, "bad_response", "1_0"),
    "a bare line feed": (CHUNKED + b"\r\n3\nabc\r\n", False, "bad_response", "line feed"),
    "no end after a chunk": (CHUNKED + b"\r\n3\r\nabcdef\r\n", False, "bad_response", "def"),
    "cut in a chunk": (CHUNKED + b"\r\n9\r\nabc", True, "truncated", "body"),
    "cut between chunks": (CHUNKED + b"\r\n" + chunk(b"abc"), True, "truncated", "body"),
    "cut in the last line": (
        CHUNKED + b"\r\n" + chunk(b"abc") + b"0\r\n", True, "truncated", "body",
    ),
    "cut before its length": (HEAD + b"Content-Length: 9\r\n\r\nabc", True, "truncated", "body"),
    "br": (coded(b"br", b"x"), False, "bad_response", "'br'"),
    "transfer gzip": (
        HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n", False, "bad_response", "gzip",
    ),
    "not gzip": (coded(b"gzip", b"x" * 40), False, "bad_response", "unpack"),
    "gzip cut short": (coded(b"gzip", gzip.compress(BODY)[:-9]), False, "truncated", "compressed"),
    "zstd cut short": (coded(b"zstd", zstandard.compress(BODY)[:-3]), False, "truncated", "compr"),
    "not zstd": (coded(b"zstd", b"x" * 40), False, "bad_response", "unpack"),
}  # fmt: skip


def read(pieces, closes=True):
    """The reader and the body that came out of it."""
    reader, body = ResponseReader(), b""
    for piece in pieces:
        if not reader.over:
            body += reader.feed(piece)
        elif piece:
            reader.reusable = False
    if closes and not reader.over:
        reader.eof()
    return reader, body


@pytest.mark.parametrize("name", GOOD)
def test_a_good_response_is_the_same_cut_anywhere(name):
    data, closes, reusable = GOOD[name]
    cuts = [[data[:i], data[i:]] for i in range(len(data) + 1)]
    cuts.append([data[i : i + 1] for i in range(len(data))])
    for pieces in cuts:
        reader, body = read(pieces, closes)
        found = (body, reader.over, reader.fault, reader.reusable, reader.head.status)
        assert found == (BODY, True, None, reusable, 200)


@pytest.mark.parametrize("name", BAD)
def test_a_bad_response_is_named_for_what_it_is_cut_anywhere(name):
    data, closes, kind, words = BAD[name]
    cuts = [[data[:i], data[i:]] for i in range(len(data) + 1)]
    cuts.append([data[i : i + 1] for i in range(len(data))])
    for pieces in cuts:
        reader, _ = read([p for p in pieces if p], closes)
        assert reader.over
        assert reader.fault.kind == kind
        if len(pieces) == 2:
            assert words in str(reader.fault) or len(pieces[0]) < len(data)
    assert words in str(read([data] if data else [], closes)[0].fault)


@given(st.lists(st.binary(min_size=1, max_size=80), min_size=1, max_size=12), st.data())
@settings(deadline=None, max_examples=200)
def test_chunks_come_out_as_they_went_in_however_cut(parts, data):
    whole = CHUNKED + b"\r\n" + b"".join(chunk(p) for p in parts) + b"0\r\n\r\n"
    spots = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=12)))
    pieces = [whole[a:b] for a, b in zip([0, *spots], [*spots, len(whole)], strict=True)]
    reader, body = read([p for p in pieces if p])
    assert (body, reader.fault, reader.reusable) == (b"".join(parts), None, True)


@given(st.binary(max_size=300))
@settings(deadline=None, max_examples=200)
def test_no_bytes_make_the_reader_fail(data):
    for start in (b"", b"HTTP/1.1 ", CHUNKED + b"\r\n", HEAD):
        reader, _ = read([start + data] if start + data else [])
        assert reader.over


def test_what_came_before_a_fault_still_counts():
    reader, body = read([CHUNKED + b"\r\n" + chunk(BODY) + b"nonsense\r\n"])
    assert body == BODY
    assert reader.fault.kind == "bad_response"


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\r\n" + b"X: " + b"y" * 70_000,
        CHUNKED + b"\r\n" + b"0" * 9000,
        CHUNKED + b"\r\n0\r\n" + b"X: 3456789012345\r\n" * 6000,
    ],
    ids=["head", "size line", "trailers"],
)
def test_what_does_not_end_is_refused(data):
    reader, _ = read([data[i : i + 4096] for i in range(0, len(data), 4096)], closes=False)
    assert reader.fault.kind == "bad_response"


@pytest.mark.parametrize(
    ("name", "pack"), [(b"gzip", gzip.compress), (b"zstd", zstandard.compress)]
)
def test_a_body_that_unpacks_to_gigabytes_is_refused(name, pack):
    """20 MiB of zeros are under 64 KiB packed, so they come in one receive."""
    reader, body = read([coded(name, pack(bytes(20 << 20)))])
    assert "unpacks beyond" in str(reader.fault)
    assert len(body) == 0


@pytest.mark.parametrize("status", [204, 304])
def test_a_status_without_a_body_is_over_with_its_head(status):
    reader, body = read([b"HTTP/1.1 %d X\r\nContent-Length: 5\r\n\r\n" % status], closes=False)
    assert (body, reader.over, reader.fault) == (b"", True, None)


def test_a_secret_is_struck_out_before_a_text_is_cut():
    reader = ResponseReader(lambda text: text.replace(SECRET, "***"))
    reader.feed(b"x" * 113 + SECRET.encode())
    assert "***" in str(reader.fault)
    assert "sk-" not in str(reader.fault)
