"""An evidence folder as one file, and back, whoever made the file.

Packing is deterministic: the same folder gives the same bytes. Unpacking trusts
nothing: no links, no names outside, no more bytes or files than allowed, headers
and folders included, and the result must be what its own manifest says.
"""

from __future__ import annotations

import gzip
import io
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO, cast

import zstandard

from records.errors import BadEvidence
from records.evidence import spool
from records.evidence.files import TEMPORARY, make_directory, storage
from records.evidence.manifest import NAME, checked_name, safe_name, verify_folder
from records.evidence.parts import claim_empty

_BLOCK = 1 << 20
# Between two files a tar holds their headers and a zip lists them all at its end; tarfile
# and zipfile read those into memory whole, whatever size they claim to have.
_HEADER_BYTES, _LIST_BYTES = 1 << 20, 8 << 20
_ZIP_END = 22
_MAGIC = {b"\x28\xb5\x2f\xfd": "zst", b"\x1f\x8b": "gz", b"PK": "zip"}
_TORN = (
    tarfile.TarError, zipfile.BadZipFile, zstandard.ZstdError, zlib.error, EOFError,
    OSError, NotImplementedError, RuntimeError,
)  # fmt: skip


def pack(folder: Path, out: BinaryIO) -> None:
    """Writes a folder as tar under zstd, sealing it first; names sorted, times and owners 0."""
    spool.seal(folder)
    compressor = zstandard.ZstdCompressor(level=3)
    with (
        compressor.stream_writer(out, closefd=False) as compressed,
        tarfile.open(fileobj=compressed, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name in _packed_names(folder):
            info = tarfile.TarInfo(name)
            info.size, info.mode = (folder / name).stat().st_size, 0o644
            with (folder / name).open("rb") as handle:
                tar.addfile(info, handle)


def _packed_names(folder: Path) -> list[str]:
    names = []
    for path in folder.rglob("*"):
        if path.is_symlink():
            raise BadEvidence(str(path), None, "a file, not a link")
        if path.is_file() and not path.name.startswith(TEMPORARY):
            names.append(path.relative_to(folder).as_posix())
    return sorted(names)


class _Limits:
    """Counts what comes out of an archive; BadEvidence once it is more than allowed."""

    def __init__(self, where: str, max_bytes: int, max_files: int) -> None:
        self.where, self.max_bytes, self.max_files = where, max_bytes, max_files
        self.bytes, self.names, self.folders = 0, set[str](), set[str]()

    def file(self, name: str) -> None:
        if not safe_name(name):
            raise BadEvidence(self.where, repr(name), "a name inside the folder")
        if not checked_name(name):
            raise BadEvidence(self.where, name, "only files that the manifest can cover")
        if name in self.names:
            raise BadEvidence(self.where, name, "each name once")
        parents = {str(p) for p in PurePosixPath(name).parents}
        if name in self.folders or parents & self.names:
            raise BadEvidence(self.where, name, "a name that is a file or a folder, not both")
        self.names.add(name)
        self.folders |= parents
        if len(self.names) > self.max_files:
            raise BadEvidence(self.where, None, f"at most {self.max_files} files")

    def take(self, count: int) -> None:
        self.bytes += count
        if self.bytes > self.max_bytes:
            raise BadEvidence(self.where, None, f"at most {self.max_bytes} bytes unpacked")


def unpack(
    stream: BinaryIO, dest: Path, max_bytes: int, max_files: int = 10_000, where: str = "archive"
) -> None:
    """Unpacks tar, tar.gz, tar.zst or zip (seekable for zip) into the new folder `dest`.

    A single folder around everything is taken off. BadEvidence names the file
    that is not as the manifest says, or what the archive tried; nothing of it
    remains then. StorageFailed when the disk refuses.
    """
    limits = _Limits(where, max_bytes, max_files)
    claim_empty(dest)
    try:
        for name, handle in _members(stream, limits):
            _write(dest / name, handle, limits)
        root = _without_wrapper(dest, limits)
        _check(root, limits)
    except BaseException:
        shutil.rmtree(dest, ignore_errors=True)
        raise


def _write(path: Path, handle: IO[bytes], limits: _Limits) -> None:
    make_directory(path.parent)
    with storage(path):
        out = path.open("xb")
    with out:
        while block := _read(handle, limits):
            limits.take(len(block))
            with storage(path):
                out.write(block)


def _read(handle: IO[bytes], limits: _Limits) -> bytes:
    try:
        return handle.read(_BLOCK)
    except _TORN as error:
        raise BadEvidence(limits.where, None, f"a whole archive ({error})") from error


def _members(stream: BinaryIO, limits: _Limits) -> Iterator[tuple[str, IO[bytes]]]:
    head = stream.read(4)
    rest = io.BufferedReader(_Rejoined(head, stream), _BLOCK)
    kind = next((k for magic, k in _MAGIC.items() if head.startswith(magic)), "tar")
    if kind == "zip":
        stream.seek(0)
        yield from _zip_members(stream, limits)
        return
    with _tar(rest, kind, limits) as (tar, bounded):
        yield from _tar_members(tar, bounded, limits)


@contextmanager
def _tar(rest: IO[bytes], kind: str, limits: _Limits) -> Iterator[tuple[tarfile.TarFile, _Bounded]]:
    try:
        bounded = _Bounded(_plain(rest, kind), limits)
        with tarfile.open(fileobj=bounded, mode="r|") as tar:
            yield tar, bounded
    except _TORN as error:
        raise BadEvidence(limits.where, None, f"a tar or zip archive ({error})") from error


def _plain(packed: IO[bytes], kind: str) -> IO[bytes]:
    if kind == "zst":
        return zstandard.ZstdDecompressor().stream_reader(packed)
    return cast(IO[bytes], gzip.GzipFile(fileobj=packed)) if kind == "gz" else packed


def _tar_members(
    tar: tarfile.TarFile, bounded: _Bounded, limits: _Limits
) -> Iterator[tuple[str, IO[bytes]]]:
    for member in tar:
        name = member.name.removeprefix("./")
        if member.isdir():
            continue
        if not member.isfile():
            raise BadEvidence(limits.where, repr(name), "files only, no links or devices")
        limits.file(name)
        handle = tar.extractfile(member)
        if handle is not None:
            bounded.allow(member.size)
            yield name, handle
            bounded.allow(0)


def _zip_members(stream: BinaryIO, limits: _Limits) -> Iterator[tuple[str, IO[bytes]]]:
    _check_list(stream, limits)
    try:
        with zipfile.ZipFile(stream) as archive:
            for info in archive.infolist():
                if info.is_dir():
                    continue
                kind = info.external_attr >> 28
                if kind not in (0, 0o10):
                    raise BadEvidence(limits.where, repr(info.filename), "files only, no links")
                limits.file(info.filename)
                with archive.open(info) as handle:
                    yield info.filename, handle
    except _TORN as error:
        raise BadEvidence(limits.where, None, f"a whole zip archive ({error})") from error


def _check_list(stream: BinaryIO, limits: _Limits) -> None:
    """Refuses a zip whose list of files is longer than that of any evidence folder.

    Plain zips only, whose last bytes say how long the list is: a comment or zip64
    would let two readers find different ends.
    """
    stream.seek(0, io.SEEK_END)
    stream.seek(max(0, stream.tell() - _ZIP_END - 20))
    tail = stream.read()
    stream.seek(0)
    end = tail[-_ZIP_END:]
    plain = end.startswith(b"PK\x05\x06") and end.endswith(b"\0\0")
    if not plain or tail.startswith(b"PK\x06\x07"):
        raise BadEvidence(limits.where, None, "a whole zip archive, without comment or zip64")
    if int.from_bytes(end[12:16], "little") > _LIST_BYTES:
        raise BadEvidence(limits.where, None, f"at most {limits.max_files} files")


def _without_wrapper(dest: Path, limits: _Limits) -> Path:
    """Moves everything up when it all lies in one folder that holds the manifest."""
    inside = list(dest.iterdir())
    if len(inside) == 1 and inside[0].is_dir() and (inside[0] / NAME).is_file():
        with storage(dest):
            wrapper = inside[0].rename(dest / f"{TEMPORARY}wrapper")
            for path in wrapper.iterdir():
                path.rename(dest / path.name)
            wrapper.rmdir()
    if not (dest / NAME).is_file():
        raise BadEvidence(limits.where, NAME, "an evidence folder with its manifest")
    return dest


def _check(root: Path, limits: _Limits) -> None:
    for difference in verify_folder(root):
        raise BadEvidence(limits.where, difference.name, f"{difference.kind}: {difference.detail}")


class _Rejoined(io.RawIOBase):
    """A stream whose first bytes were read already, put back in front."""

    def __init__(self, head: bytes, stream: BinaryIO) -> None:
        self._head, self._stream = head, stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]  # RawIOBase hands in any buffer
        data = self._head or self._stream.read(len(view))
        self._head = data[len(view) :] if self._head else b""
        taken = data[: len(view)]
        view[: len(taken)] = taken
        return len(taken)


class _Bounded(io.RawIOBase):
    """An unpacked tar stream that gives only what the next file and some headers need."""

    def __init__(self, stream: IO[bytes], limits: _Limits) -> None:
        self._stream, self._limits = stream, limits
        self.allow(0)

    def allow(self, size: int) -> None:
        """From here on, a file of this size and the headers after it."""
        self._left = size + _HEADER_BYTES

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            expected = f"at most {_HEADER_BYTES} bytes of headers and folders between two files"
            raise BadEvidence(self._limits.where, None, expected)
        return data
