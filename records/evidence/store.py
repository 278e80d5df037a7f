"""Where raw evidence lies: bytes under their own SHA-256, never changed, checked when read.

`LocalStore` keeps them on a disk as sha256/ab/cdef…; another store (S3) has the
same few methods. Putting the same bytes twice changes nothing.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Protocol

from records.errors import BadInput, EvidenceDiffers
from records.evidence.files import (
    TEMPORARY,
    blocks_of,
    make_directory,
    storage,
    sync_directory,
)
from records.evidence.manifest import FileEntry, safe_name

_HEX = re.compile(r"[0-9a-f]{64}")


class Store(Protocol):
    """What the registry needs of a place for evidence."""

    def put_file(self, path: Path) -> tuple[str, int]: ...
    def put_bytes(self, data: bytes) -> tuple[str, int]: ...
    def open(self, sha256: str) -> BinaryIO: ...
    def read_bytes(self, sha256: str) -> bytes: ...
    def exists(self, sha256: str) -> bool: ...
    def size(self, sha256: str) -> int: ...
    def checkout(self, entries: Iterable[FileEntry], dest: Path) -> None: ...


class LocalStore:
    """Evidence on a local disk, readable by its owner only."""

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)

    def path_of(self, sha256: str) -> Path:
        """Where the bytes of a hash lie or would lie; BadInput when it is no hash."""
        if not _HEX.fullmatch(sha256):
            raise BadInput(f"{sha256!r}: 64 hex digits of a SHA-256 are needed")
        return self.root / "sha256" / sha256[:2] / sha256[2:]

    def put_file(self, path: Path) -> tuple[str, int]:
        """Takes in a file's bytes; gives hash and size. StorageFailed when the disk refuses."""
        with storage(path), path.open("rb") as handle:
            return self._put(blocks_of(handle))

    def put_bytes(self, data: bytes) -> tuple[str, int]:
        """Takes in bytes; gives hash and size."""
        return self._put([data])

    def _put(self, blocks: Iterable[bytes]) -> tuple[str, int]:
        # Hashed while copied, so a file that changes under us is stored as what we read.
        make_directory(self.root, 0o700)
        temporary = self.root / f"{TEMPORARY}{secrets.token_hex(8)}"
        digest, size = hashlib.sha256(), 0
        try:
            with storage(self.root):
                handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400)
                with os.fdopen(handle, "wb") as out:
                    for block in blocks:
                        digest.update(block)
                        size += out.write(block)
                    out.flush()
                    os.fsync(out.fileno())
            self._settle(temporary, self.path_of(digest.hexdigest()))
        finally:
            with suppress(OSError):
                temporary.unlink()
        return digest.hexdigest(), size

    def _settle(self, temporary: Path, target: Path) -> None:
        if target.exists():
            return
        for folder in (target.parent.parent, target.parent):
            make_directory(folder, 0o700)
        with storage(target):
            temporary.replace(target)
            sync_directory(target.parent)

    def exists(self, sha256: str) -> bool:
        """Whether the store holds these bytes (it does not read them)."""
        return self.path_of(sha256).is_file()

    def size(self, sha256: str) -> int:
        """Size in bytes; StorageFailed when absent."""
        path = self.path_of(sha256)
        with storage(path):
            return path.stat().st_size

    def open(self, sha256: str) -> BinaryIO:
        """The bytes of a hash, read through once and checked before they are handed out.

        EvidenceDiffers when they are no longer what their name says.
        """
        path = self.path_of(sha256)
        with storage(path):
            handle = path.open("rb")
        try:
            with storage(path):
                digest = hashlib.sha256()
                for block in blocks_of(handle):
                    digest.update(block)
                handle.seek(0)
            if digest.hexdigest() != sha256:
                raise EvidenceDiffers(f"{path}: its SHA-256 is not its name any more")
        except BaseException:
            handle.close()
            raise
        return handle

    def read_bytes(self, sha256: str) -> bytes:
        """All bytes of a hash, checked."""
        with self.open(sha256) as handle:
            return handle.read()

    def checkout(self, entries: Iterable[FileEntry], dest: Path) -> None:
        """Writes the entries' files into `dest`, each checked while it is copied."""
        for entry in entries:
            if not safe_name(entry.name):
                raise BadInput(f"{entry.name!r}: a name inside the folder is needed")
            target = dest / entry.name
            make_directory(target.parent)
            with self.open(entry.sha256) as source, storage(target), target.open("wb") as out:
                for block in blocks_of(source):
                    out.write(block)
