"""Content codings of a response body, taken off as the bytes come and never without bounds."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Protocol

import zstandard

from runners.load.attempt import Broken

# What one receive (64 KiB) may unpack to; text of a language model comes nowhere near.
_MAX_AT_ONCE = 16 << 20
# The window that RFC 9659 lets a zstd response ask for.
_ZSTD_WINDOW = 8 << 20
# A zstd block of 4 bytes may stand for 128 KiB: so many bytes at a time stay below the limit.
_ZSTD_STEP = 256


class Decoder(Protocol):
    """Takes coded bytes as they come, gives what they stand for."""

    def feed(self, data: bytes) -> bytes:
        """What became readable with `data`; Broken when it is not of this coding."""

    def finish(self) -> None:
        """The body is over: Broken when the coded data is not."""


def decoder_of(encoding: str) -> Decoder | None:
    """What takes off the codings named by Content-Encoding; None when there is none.

    Broken for a coding that was not asked for and is not known here.
    """
    names = [name for part in encoding.lower().split(",") if (name := part.strip())]
    stages = []
    for name in reversed(names):
        if name == "identity":
            continue
        if name not in _CODINGS:
            raise Broken("bad_response", f"an answer in the content encoding {name[:40]!r}")
        stages.append(_CODINGS[name]())
    if not stages:
        return None
    return stages[0] if len(stages) == 1 else _Several(stages)


class _Several:
    """Codings applied one over the other, the last one first."""

    def __init__(self, stages: list[Decoder]) -> None:
        self._stages = stages

    def feed(self, data: bytes) -> bytes:
        for stage in self._stages:
            data = stage.feed(data)
        return data

    def finish(self) -> None:
        for stage in self._stages:
            stage.finish()


class _Zlib:
    """gzip (of several members, too) and deflate, with or without its wrapper."""

    def __init__(self, wbits: int | None) -> None:
        self._wbits = wbits
        self._held = b""
        self._begun = False
        self._unpack = None if wbits is None else zlib.decompressobj(wbits)

    def feed(self, data: bytes) -> bytes:
        if not data:
            return b""
        self._begun = True
        if self._unpack is None:
            self._held += data
            if len(self._held) < 2:
                return b""
            data, self._held = self._held, b""
            self._unpack = zlib.decompressobj(_deflate_bits(data))
        out, size = [], 0
        while data:
            if self._unpack.eof:
                if self._wbits is None:
                    raise Broken("bad_response", "data after the end of a deflated answer")
                self._unpack = zlib.decompressobj(self._wbits)
            try:
                out.append(self._unpack.decompress(data, _MAX_AT_ONCE + 1 - size))
            except zlib.error as error:
                raise Broken("bad_response", f"an answer that does not unpack ({error})") from error
            size += len(out[-1])
            _check(size)
            data = self._unpack.unused_data
        return b"".join(out)

    def finish(self) -> None:
        if self._begun and (self._unpack is None or not self._unpack.eof):
            raise Broken("truncated", "the compressed answer stops before its end")


def _deflate_bits(start: bytes) -> int:
    """Some servers say deflate and leave out the zlib wrapper (RFC 9110, 8.4.1.2)."""
    wrapped = start[0] & 0x0F == 8 and (start[0] << 8 | start[1]) % 31 == 0
    return zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS


class _Zstd:
    """zstd, its frames one after the other."""

    def __init__(self) -> None:
        self._make = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj
        self._unpack = self._make()
        self._begun = False

    def feed(self, data: bytes) -> bytes:
        out, size = [], 0
        for start in range(0, len(data), _ZSTD_STEP):
            step = data[start : start + _ZSTD_STEP]
            while step:
                out.append(self._step(step))
                size += len(out[-1])
                _check(size)
                step = self._unpack.unused_data if self._unpack.eof else b""
        return b"".join(out)

    def _step(self, data: bytes) -> bytes:
        if self._unpack.eof:
            self._unpack = self._make()
        self._begun = True
        try:
            return self._unpack.decompress(data)
        except zstandard.ZstdError as error:
            raise Broken("bad_response", f"an answer that does not unpack ({error})") from error

    def finish(self) -> None:
        if self._begun and not self._unpack.eof:
            raise Broken("truncated", "the compressed answer stops before its end")


def _check(size: int) -> None:
    if size > _MAX_AT_ONCE:
        raise Broken("bad_response", f"an answer that unpacks beyond {_MAX_AT_ONCE} bytes at once")


def _gzip() -> Decoder:
    return _Zlib(16 + zlib.MAX_WBITS)


def _deflate() -> Decoder:
    return _Zlib(None)


_CODINGS: dict[str, Callable[[], Decoder]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "zstd": _Zstd,
}
