"""The head of an HTTP/1.x response: status, headers, and where its body ends.

A server sends nearly the same head with every answer, so what was understood of one is kept
by its bytes. Only the line that a clock changes is not looked at: `Date` is in no head here.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import NamedTuple

_STATUS = re.compile(rb"HTTP/1\.([0-9]) ([0-9]{3})(?: [^\r\n]*)?")
_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
# A whole Date line as servers write it, that no folded line goes on with.
_DATE = re.compile(rb"\r\n[Dd]ate: [A-Za-z0-9 ,:]{1,40}(?=\r\n[!-~]|\Z)")
_MAX_KNOWN, _MAX_KNOWN_BYTES = 64, 4096


class Framing(IntEnum):
    """How a response says where its body ends."""

    NONE = 0
    CHUNKED = 1
    LENGTH = 2
    CLOSE = 3


class BadHead(Exception):
    """What is wrong with a head, and the bytes that are."""

    def __init__(self, what: str, data: bytes) -> None:
        super().__init__(what)
        self.what, self.data = what, data


class Head(NamedTuple):
    """The head of a response. Header names in lower case, repeated ones joined; never changed.

    `length` is that of the body where `framing` is LENGTH. `reusable`: the connection may
    carry another exchange after it.
    """

    status: int
    headers: dict[str, str]
    framing: Framing
    length: int
    reusable: bool


_known: dict[bytes, Head] = {}


def read_head(text: bytes) -> Head:
    """What a head says, without the empty line at its end; BadHead where that is not plain."""
    text = _DATE.sub(b"", text, 1)
    head = _known.get(text)
    if head is None:
        head = _parsed(text)
        if len(_known) < _MAX_KNOWN and len(text) <= _MAX_KNOWN_BYTES:
            _known[text] = head
    return head


def _parsed(text: bytes) -> Head:
    lines = [line.removesuffix(b"\r") for line in text.split(b"\n")]
    match = _STATUS.fullmatch(lines[0])
    if match is None:
        raise BadHead("not HTTP: a status line", lines[0])
    headers = _headers(lines[1:])
    words = _words(headers, "connection")
    kept = "close" not in words and (match[1] > b"0" or "keep-alive" in words)
    status = int(match[2])
    framing, length, plain = _framing(status, headers)
    return Head(status, headers, framing, length, kept and plain)


def _headers(lines: list[bytes]) -> dict[str, str]:
    headers: dict[str, str] = {}
    name = None
    for line in lines:
        if line[:1] in (b" ", b"\t") and name is not None:
            # A folded line goes on with the value before it.
            headers[name] += " " + line.strip().decode("latin-1")
            continue
        raw, colon, value = line.partition(b":")
        if not colon or _NAME.fullmatch(raw) is None:
            raise BadHead("not HTTP: a header line", line)
        name, said = raw.decode("ascii").lower(), value.strip().decode("latin-1")
        headers[name] = f"{headers[name]}, {said}" if name in headers else said
    return headers


def _words(headers: dict[str, str], name: str) -> list[str]:
    """A header that is a list of words, in lower case."""
    return [w for part in headers.get(name, "").lower().split(",") if (w := part.strip())]


def _framing(status: int, headers: dict[str, str]) -> tuple[Framing, int, bool]:
    """RFC 9112 section 6.3: how the body ends, its length, whether that leaves the connection."""
    if status in (204, 304) or status < 200:
        return Framing.NONE, 0, True
    coded = _words(headers, "transfer-encoding")
    lengths = set(_words(headers, "content-length"))
    if coded:
        if coded != ["chunked"]:
            raise BadHead("a transfer encoding", ", ".join(coded).encode())
        # Two answers to one question: believed once, then the connection is given up.
        return Framing.CHUNKED, 0, not lengths
    if lengths:
        return Framing.LENGTH, _length(lengths), True
    return Framing.CLOSE, 0, False


def _length(lengths: set[str]) -> int:
    said = ", ".join(sorted(lengths))
    if len(lengths) > 1:
        raise BadHead("a Content-Length that contradicts itself", said.encode())
    if not (said.isascii() and said.isdigit() and len(said) <= 15):
        raise BadHead("a Content-Length", said.encode())
    return int(said)
