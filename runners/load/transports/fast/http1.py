"""HTTP/1.x responses out of bytes that arrive in any pieces; no input or output here.

Strict where leniency would mean guessing where a body ends. The one case that counts for
speed, a receive that is exactly one chunk, is over after a handful of operations.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from runners.load.attempt import Broken
from runners.load.transports.fast.coding import Decoder, decoder_of
from runners.load.transports.fast.head import BadHead, Framing, Head, read_head

_MAX_HEAD = 64 << 10
_MAX_LINE = 8 << 10
_SHOWN = 120
# Where a reader stands: what the next byte belongs to.
_HEAD, _SIZE, _CHUNK, _CHUNK_END, _TRAILERS, _LENGTH, _CLOSE, _OVER = range(8)
# Where it stands after a head, by how the body ends.
_BODIES = (_OVER, _SIZE, _LENGTH, _CLOSE)
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?")
_STARTS = b"HTTP/1."
# Chunk sizes already met, by the line that named them: a stream repeats a few of them.
_sizes: dict[bytes, int] = {}
_MAX_SIZES = 4096


def unchanged(text: str) -> str:
    """Shows everything; for readers that know of no secret."""
    return text


class ResponseReader:
    """Reads one response: `feed` takes bytes and gives the part of the body that came with them.

    `head` is None until the final head is whole (interim responses are skipped). `over` says
    that there is nothing more to come: the body is whole, or `fault` says what is wrong with
    it. `reusable`: the connection may carry another exchange then. `hide` strikes secrets out
    of texts that quote the server.
    """

    __slots__ = ("_at", "_begun", "_decoder", "_hide", "_left", "_rest", "_size", "fault", "head",
                 "over", "reusable")  # fmt: skip

    def __init__(self, hide: Callable[[str], str] = unchanged) -> None:
        self.head: Head | None = None
        self.over = False
        self.fault: Broken | None = None
        self.reusable = False
        self._hide = hide
        self._at = _HEAD
        self._begun = False
        # Bytes that are no whole line yet.
        self._rest = b""
        self._left = 0
        self._size = 0
        self._decoder: Decoder | None = None

    def feed(self, data: bytes) -> bytes:
        """What `data` adds to the body, transfer and content codings taken off; maybe nothing."""
        if self._at == _SIZE and not self._rest:
            end = data.find(b"\r\n")
            size = _sizes.get(data[:end])
            if size is not None and end + size + 4 == len(data) and data.endswith(b"\r\n"):
                piece = data[end + 2 : -2]
                return piece if self._decoder is None else self._decode(piece)
            return self._chunks(data)
        return self._walk(data)

    @property
    def between_chunks(self) -> bool:
        """Whether the next byte begins a chunk whose data is the body as it is."""
        return self._at == _SIZE and not self._rest and self._decoder is None

    def unframe(self, receives: list[bytes]) -> list[bytes]:
        """The chunks of receives that are one chunk each, of the first ones that are.

        While `between_chunks`. The others are for `feed`, and all that follow them.
        """
        chunks = []
        for data in receives:
            end = data.find(b"\r\n")
            size = _sizes.get(data[:end])
            if size is None or end + size + 4 != len(data):
                break
            chunks.append(data[end + 2 : -2])
        return chunks

    def eof(self) -> None:
        """The server closed: a fault unless that is how this body ends."""
        if self._at == _CLOSE:
            self._finish()
            self._decode(b"")
        elif self.head is not None:
            self._fail(Broken("truncated", "the connection was closed inside the answer's body"))
        elif self._rest and not self._rest.startswith(_STARTS):
            self._fail(self._bad("not HTTP/1", self._rest))
        else:
            where = "inside the answer's head" if self._begun else "without an answer"
            self._fail(Broken("connection_reset", f"the connection was closed {where}"))

    @property
    def begun(self) -> bool:
        """Whether any byte came."""
        return self._begun

    def _chunks(self, data: bytes) -> bytes:
        """A receive that begins with a chunk: the whole chunks of it, then what is left."""
        pieces, pos = [], 0
        while pos < len(data):
            start = data.find(b"\r\n", pos)
            size = _sizes.get(data[pos:start])
            if size is None:
                break
            end = start + 2 + size
            if data[end : end + 2] != b"\r\n":
                break
            pieces.append(data[start + 2 : end])
            pos = end + 2
        body = b"".join(pieces)
        if body and self._decoder is not None:
            body = self._decode(body)
        if pos < len(data) and not self.over:
            body += self._walk(data[pos:])
        return body

    def _walk(self, data: bytes) -> bytes:
        """Any receive: goes from line to chunk to line as far as the bytes reach."""
        self._begun = True
        text, self._rest = self._rest + data, b""
        pieces: list[bytes] = []
        pos: int | None = 0
        try:
            while pos is not None and pos < len(text) and self._at != _OVER:
                at = pos
                pos = self._step(text, at, pieces)
                if pos is None:
                    self._rest = text[at:]
        except Broken as error:
            # What came before it still counts, however the bytes were cut.
            self._fail(error)
        if self.over and pos is not None and pos < len(text):
            # More than was announced: what follows on this connection means nothing.
            self.reusable = False
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        return body if self._decoder is None else self._decode(body)

    def _step(self, text: bytes, at: int, pieces: list[bytes]) -> int | None:
        """Takes one item of the framing; where the next begins, None when it is not whole."""
        if self._at == _HEAD:
            return self._take_head(text, at)
        if self._at in (_CHUNK, _LENGTH, _CLOSE):
            return self._take_data(text, at, pieces)
        return self._take_line(text, at)

    def _decode(self, body: bytes) -> bytes:
        if self._decoder is None:
            return body
        try:
            plain = self._decoder.feed(body)
            if self.over and self.fault is None:
                self._decoder.finish()
        except Broken as error:
            self._fail(error)
            return b""
        return plain

    def _fail(self, fault: Broken) -> None:
        if self.fault is None:
            self.fault = fault
        self.reusable = False
        self._finish()

    def _take_data(self, text: bytes, at: int, pieces: list[bytes]) -> int:
        if self._at == _CLOSE:
            pieces.append(text[at:] if at else text)
            return len(text)
        end = min(at + self._left, len(text))
        pieces.append(text[at:end])
        self._left -= end - at
        if not self._left:
            if self._at == _CHUNK:
                self._at = _CHUNK_END
            else:
                self._finish()
        return end

    def _take_line(self, text: bytes, at: int) -> int | None:
        """A line of the chunked framing; None when it is not whole."""
        end = text.find(b"\n", at)
        if (len(text) if end < 0 else end) - at > _MAX_LINE:
            raise Broken("bad_response", "a line of the chunked framing that does not end")
        if end < 0:
            if self._at == _CHUNK_END and text[at : at + 1] != b"\r":
                raise self._bad("no line end after a chunk", text[at:])
            return None
        if text[end - 1 : end] != b"\r" or end == at:
            raise self._bad("a bare line feed in the chunked framing", text[at : end + 1])
        line = text[at : end - 1]
        if self._at == _SIZE:
            self._take_size(line)
        elif self._at == _CHUNK_END:
            if line:
                raise self._bad("no line end after a chunk", line)
            self._at = _SIZE
        else:
            self._take_trailer(line)
        return end + 1

    def _take_size(self, line: bytes) -> None:
        match = _CHUNK_SIZE.fullmatch(line)
        if match is None:
            raise self._bad("a chunk size that is none", line)
        self._left = int(match[1], 16)
        self._at = _CHUNK if self._left else _TRAILERS
        if self._left and match[1] == line and len(_sizes) < _MAX_SIZES:
            _sizes[line] = self._left

    def _take_trailer(self, line: bytes) -> None:
        self._size += len(line)
        if self._size > _MAX_HEAD:
            raise Broken("bad_response", f"trailers of more than {_MAX_HEAD} bytes")
        if not line:
            self._finish()

    def _take_head(self, text: bytes, at: int) -> int | None:
        start = at
        if not text.startswith(_STARTS, at):
            while text[start : start + 1] in (b"\r", b"\n"):
                # Some servers put an empty line after the last response.
                start += 1
            self._check_start(text[start:])
        match = _HEAD_END.search(text, start)
        if (len(text) if match is None else match.start()) - start > _MAX_HEAD:
            raise Broken("bad_response", f"a head of more than {_MAX_HEAD} bytes")
        if match is None:
            return None
        try:
            head = read_head(text[start : match.start()])
        except BadHead as error:
            raise self._bad(error.what, error.data) from None
        if head.status == 101:
            raise Broken("bad_response", "the server switched protocols")
        if head.status >= 200:
            self.head = head
            self._begin_body(head)
        return match.end()

    def _check_start(self, text: bytes) -> None:
        """Broken as soon as the first bytes cannot be HTTP/1.x."""
        if not _STARTS.startswith(text[: len(_STARTS)]):
            raise self._bad("not HTTP/1", text)

    def _begin_body(self, head: Head) -> None:
        """Where the body ends, and what is to be taken off it."""
        self.reusable, self._left = head.reusable, head.length
        self._at = _BODIES[head.framing]
        if head.framing is Framing.NONE:
            self._finish()
            return
        if coding := head.headers.get("content-encoding"):
            self._decoder = decoder_of(coding)
        if self._at == _LENGTH and not self._left:
            self._finish()

    def _finish(self) -> None:
        self._at = _OVER
        self.over = True

    def _bad(self, what: str, data: bytes) -> Broken:
        """`bad_response` with the first bytes of what was met instead."""
        # Secrets go before the cut, which could leave half of one.
        said = self._hide(data[: 8 * _SHOWN].decode("latin-1"))[:_SHOWN]
        return Broken("bad_response", f"{what}: {said.encode('latin-1')!r}")
