"""What an evidence folder consists of, and whether it still does.

`manifest.json` lists the raw files with SHA-256 and size. It is written last
when a folder is sealed, and once as a checkpoint when a run starts. Judgments
and records stand beside the raw files: their names are their hashes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from records.errors import BadEvidence
from records.evidence.columns import TABLES
from records.evidence.files import TEMPORARY, sha256_file, write_atomic

SCHEMA = "impakt.manifest/1"
NAME = "manifest.json"
SPOOL = "spool"
# A sealed folder's spool between its rename and its removal; no evidence any more.
SPENT_SPOOL = ".spool-sealed"
# Content-addressed files that come after sealing: folder -> suffix.
BESIDE = {"judgments": ".jsonl", "records": ".json"}
_HEX = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class FileEntry:
    """One raw file: its name in the folder (posix, relative), hash and size."""

    name: str
    sha256: str
    bytes: int


@dataclass(frozen=True)
class Difference:
    """One way in which a folder is not what its manifest says."""

    name: str
    kind: Literal["missing", "changed", "extra", "unreadable"]
    detail: str


def safe_name(name: str) -> bool:
    """Whether `name` stays inside the folder: relative, no `..`, no odd characters."""
    path = PurePosixPath(name)
    if not name or name != str(path) or path.is_absolute() or "\\" in name:
        return False
    return all(p not in ("..", ".") and p.isprintable() for p in path.parts)


def checked_name(name: str) -> bool:
    """Whether checks look at this name: not what runs and killed writes leave for a while."""
    parts = PurePosixPath(name).parts
    return parts[0] not in (SPOOL, SPENT_SPOOL) and not parts[-1].startswith(TEMPORARY)


def raw_names(folder: Path) -> list[str]:
    """Names of every file that a manifest must cover, sorted."""
    return sorted(n for n in _names(folder) if n != NAME and n.split("/")[0] not in BESIDE)


def _names(folder: Path) -> Iterator[str]:
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if checked_name(name) and (path.is_symlink() or not path.is_dir()):
            yield name


def write_manifest(folder: Path) -> list[FileEntry]:
    """Hashes every raw file in `folder` and writes manifest.json; gives the entries."""
    entries = []
    for name in raw_names(folder):
        if (folder / name).is_symlink():
            raise BadEvidence(str(folder / name), None, "a file, not a link")
        entries.append(FileEntry(name, *sha256_file(folder / name)))
    body = {"schema": SCHEMA, "files": [asdict(e) for e in entries]}
    write_atomic(folder / NAME, (json.dumps(body, indent=1, ensure_ascii=False) + "\n").encode())
    return entries


def read_manifest(folder: Path) -> list[FileEntry]:
    """The entries of manifest.json; BadEvidence names what is wrong with it."""
    where = folder / NAME
    try:
        body = json.loads(where.read_bytes())
    except OSError as error:
        raise BadEvidence(str(folder), NAME, f"a readable manifest ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise BadEvidence(str(where), None, f"JSON ({error})") from error
    if not isinstance(body, dict) or body.get("schema") != SCHEMA:
        raise BadEvidence(str(where), "schema", SCHEMA)
    if not isinstance(body.get("files"), list):
        raise BadEvidence(str(where), "files", "a list")
    return [_entry(item, f"files[{i}]", where) for i, item in enumerate(body["files"])]


def is_whole(folder: Path) -> bool:
    """Whether the manifest is a sealed folder's: a run's first one names no table yet."""
    try:
        names = {entry.name for entry in read_manifest(folder)}
    except BadEvidence:
        return False
    return all(f"{name}.parquet" in names for name in TABLES)


def _entry(item: Any, field: str, where: Path) -> FileEntry:
    if not isinstance(item, dict):
        raise BadEvidence(str(where), field, "an object")
    name, sha256, size = item.get("name"), item.get("sha256"), item.get("bytes")
    if not isinstance(name, str) or not safe_name(name):
        raise BadEvidence(str(where), f"{field}.name", "a name inside the folder")
    if not isinstance(sha256, str) or not _HEX.fullmatch(sha256):
        raise BadEvidence(str(where), f"{field}.sha256", "64 hex digits")
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        raise BadEvidence(str(where), f"{field}.bytes", "a size in bytes")
    return FileEntry(name, sha256, size)


def verify_folder(path: Path) -> list[Difference]:
    """What differs between a sealed folder and its manifest; empty when nothing does.

    Raw files are held against the manifest, judgments and records against their
    own names. BadEvidence when the manifest itself cannot be read.
    """
    entries = {e.name: e for e in read_manifest(path)}
    present = list(_names(path))
    found = _not_ours(path)
    found += [d for e in entries.values() if (d := check_entry(path, e)) is not None]
    for name in present:
        if name in entries or name == NAME:
            continue
        difference = _check_beside(path, name)
        if difference is not None:
            found.append(difference)
    return sorted(found, key=lambda d: d.name)


def _not_ours(folder: Path) -> list[Difference]:
    found = []
    if (folder / NAME).is_symlink():
        found.append(Difference(NAME, "unreadable", "is a link, not a file"))
    if (folder / SPOOL).exists() or (folder / SPOOL).is_symlink():
        found.append(Difference(SPOOL, "extra", "no run is being written here"))
    return found


def check_entry(folder: Path, entry: FileEntry) -> Difference | None:
    """How one raw file differs from its entry; None when it does not."""
    path = folder / entry.name
    if _through_link(folder, entry.name):
        return Difference(entry.name, "unreadable", "is a link, not a file")
    if not path.exists():
        return Difference(entry.name, "missing", "named in the manifest, not in the folder")
    try:
        sha256, size = sha256_file(path)
    except OSError as error:
        return Difference(entry.name, "unreadable", str(error.strerror or error))
    if size != entry.bytes:
        return Difference(entry.name, "changed", f"{size} bytes, the manifest says {entry.bytes}")
    if sha256 != entry.sha256:
        return Difference(entry.name, "changed", "its SHA-256 is not the manifest's")
    return None


def _check_beside(folder: Path, name: str) -> Difference | None:
    place, _, file = name.partition("/")
    stem, dot, suffix = file.partition(".")
    if place not in BESIDE or dot + suffix != BESIDE[place] or not _HEX.fullmatch(stem):
        return Difference(name, "extra", "not named in the manifest")
    if _through_link(folder, name):
        return Difference(name, "unreadable", "is a link, not a file")
    try:
        sha256, _size = sha256_file(folder / name)
    except OSError as error:
        return Difference(name, "unreadable", str(error.strerror or error))
    if sha256 != stem:
        return Difference(name, "changed", "its SHA-256 is not its name")
    return None


def _through_link(folder: Path, name: str) -> bool:
    path = folder
    for part in PurePosixPath(name).parts:
        path = path / part
        if path.is_symlink():
            return True
    return False
