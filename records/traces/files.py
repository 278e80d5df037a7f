"""Bytes of trace files: compression told by content, writes that never leave half a file."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import secrets
import zlib
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import zstandard

from records.errors import BadInput, BadTrace, StorageFailed

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
# The levels are part of the bytes written: the same trace must give the same file.
_GZIP_LEVEL, _ZSTD_LEVEL = 6, 3
# A few MB can unpack to any size: more than this is no trace that fits into memory.
MOST_BYTES = 1 << 30
_BLOCK = 1 << 20
# A KiB of zstd holds at most 44 MB: small slices, so that the limit is met in time.
_SLICE = 1 << 10


def read_bytes(path: str | Path) -> bytes:
    """The uncompressed bytes of a file; BadTrace when it cannot be read or unpacked."""
    return b"".join(read_pieces(path))


def read_pieces(path: str | Path, most: int | None = None) -> Iterator[bytes]:
    """The same in pieces, so that a file that is too large is refused before it is held.

    `most` bytes at most, MOST_BYTES when not given.
    """
    most = MOST_BYTES if most is None else most
    try:
        with Path(path).open("rb") as stream:
            start = stream.read(len(_ZSTD))
            if start.startswith((_GZIP, _ZSTD)):
                # What is compressed to more than this unpacks to more, too.
                data = start + stream.read(most)
                yield from _bounded(_unpacked(data, str(path)), str(path), most)
                return
            plain = chain([start], iter(lambda: stream.read(_BLOCK), b""))
            yield from _bounded(plain, str(path), most)
    except OSError as error:
        raise BadTrace(str(path), None, f"a readable file ({error.strerror})") from error


def decompressed(data: bytes, where: str, most: int = MOST_BYTES) -> bytes:
    """The bytes inside gzip or zstd, or the bytes themselves.

    BadTrace when they are damaged or unpack to more than `most` bytes.
    """
    if not data.startswith((_GZIP, _ZSTD)):
        return data
    return b"".join(_bounded(_unpacked(data, where), where, most))


def _unpacked(data: bytes, where: str) -> Iterator[bytes]:
    try:
        yield from _ungzip(data) if data.startswith(_GZIP) else _unzstd(data)
    except (OSError, EOFError, zlib.error, zstandard.ZstdError) as error:
        raise BadTrace(where, None, f"a whole gzip or zstd file ({error})") from error


def _bounded(pieces: Iterable[bytes], where: str, most: int) -> Iterator[bytes]:
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > most:
            raise BadTrace(where, None, f"at most {most} bytes unpacked")
        yield piece


def _ungzip(data: bytes) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
        while piece := stream.read(_BLOCK):
            yield piece


def _unzstd(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        # One object per frame: only it tells whether its frame came to an end.
        frame = zstandard.ZstdDecompressor().decompressobj()
        while not frame.eof:
            if at >= len(data):
                raise EOFError("the last frame is cut off")
            piece = data[at : at + _SLICE]
            at += len(piece)
            yield frame.decompress(piece)
        at -= len(frame.unused_data)


def compressed(data: bytes, name: str) -> bytes:
    """The bytes as a file of this name holds them: .gz and .zst compress, others do not."""
    if name.endswith(".gz"):
        packed = io.BytesIO()
        # No file name and no time in the gzip header, or each write would differ.
        with gzip.GzipFile("", "wb", _GZIP_LEVEL, packed, mtime=0) as stream:
            stream.write(data)
        return packed.getvalue()
    if name.endswith(".zst"):
        return zstandard.ZstdCompressor(level=_ZSTD_LEVEL).compress(data)
    return data


def write_bytes(path: str | Path, data: bytes) -> None:
    """Put a file in place in one step: temporary file, fsync, rename.

    BadInput when the folder does not exist, StorageFailed when the disk refuses.
    """
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        with temporary.open("xb") as stream:
            stream.write(compressed(data, target.name))
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(target)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        reason = f"{target}: cannot be written ({error.strerror})"
        if isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError):
            raise BadInput(reason) from error
        raise StorageFailed(reason) from error
