"""Bytes to disk and back: atomic writes, hashes, and our own disk's refusals.

A file written here is either whole or absent, also after a power cut: a
temporary file beside it, fsync, rename, fsync of the directory.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from records.errors import StorageFailed

# What a killed write may leave behind; never evidence, so checks pass over it.
TEMPORARY = ".tmp-"
_BLOCK = 1 << 20


@contextmanager
def storage(path: Path) -> Iterator[None]:
    """Turns an OSError inside the block into StorageFailed naming `path`."""
    try:
        yield
    except OSError as error:
        raise StorageFailed(f"{path}: {error.strerror or error}") from error


def sync_directory(path: Path) -> None:
    """Makes renames and new names in `path` durable."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write into that takes the name `path` only once whole and on disk.

    Nothing of it remains when the block raises. StorageFailed when the disk refuses.
    """
    temporary = path.parent / f"{TEMPORARY}{path.name}-{secrets.token_hex(4)}"
    with storage(path):
        try:
            with temporary.open("xb") as handle:
                yield handle
                handle.flush()
                os.fsync(handle.fileno())
            temporary.replace(path)
            sync_directory(path.parent)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise


def write_atomic(path: Path, data: bytes) -> None:
    """Writes `data` to `path`, whole or not at all."""
    with atomic_file(path) as handle:
        handle.write(data)


def make_directory(path: Path, mode: int = 0o777) -> None:
    """Makes `path` and its parents; StorageFailed when the disk refuses."""
    with storage(path):
        path.mkdir(parents=True, exist_ok=True, mode=mode)


def blocks_of(handle: BinaryIO) -> Iterator[bytes]:
    """The rest of a file in blocks of 1 MiB."""
    while block := handle.read(_BLOCK):
        yield block


def sha256_file(path: Path) -> tuple[str, int]:
    """Hex SHA-256 and size in bytes of a file. OSError is left to the caller."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as handle:
        for block in blocks_of(handle):
            digest.update(block)
            size += len(block)
    return digest.hexdigest(), size


def remove_temporaries(folder: Path) -> None:
    """Clears what killed writes left in `folder` itself."""
    for path in folder.glob(f"{TEMPORARY}*"):
        with suppress(OSError):
            path.unlink()
