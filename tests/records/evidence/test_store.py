"""The store gives back exactly the bytes it was given, or says that it cannot."""

from __future__ import annotations

import hashlib
import os
import stat

import pytest

from records.errors import BadInput, EvidenceDiffers, StorageFailed
from records.evidence.manifest import FileEntry
from records.evidence.store import LocalStore


@pytest.fixture
def store(tmp_path):
    return LocalStore(tmp_path / "store")


def test_bytes_and_files_lie_under_their_hash_once(store, tmp_path):
    (tmp_path / "x").write_bytes(b"abc")
    sha, size = store.put_file(tmp_path / "x")
    assert (sha, size) == (hashlib.sha256(b"abc").hexdigest(), 3)
    assert store.put_bytes(b"abc") == (sha, 3)
    assert store.exists(sha)
    assert store.size(sha) == 3
    assert store.read_bytes(sha) == b"abc"
    files = [p for p in store.root.rglob("*") if p.is_file()]
    assert files == [store.root / "sha256" / sha[:2] / sha[2:]]


def test_folders_are_for_their_owner_only(store):
    sha, _ = store.put_bytes(b"abc")
    for folder in (store.root, store.path_of(sha).parent, store.path_of(sha).parent.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_altered_bytes_are_never_handed_out(store):
    sha, _ = store.put_bytes(b"abc")
    path = store.path_of(sha)
    os.chmod(path, 0o600)
    path.write_bytes(b"abd")
    with pytest.raises(EvidenceDiffers, match=sha[2:]):
        store.open(sha)


@pytest.mark.parametrize("sha", ["", "../../etc/passwd", "A" * 64, "0" * 63])
def test_what_is_no_hash_is_no_path(store, sha):
    with pytest.raises(BadInput):
        store.open(sha)


def test_absent_bytes_are_said_with_their_path(store):
    assert not store.exists("0" * 64)
    with pytest.raises(StorageFailed, match="0" * 62):
        store.open("0" * 64)


def test_a_checkout_writes_the_named_files_and_no_others(store, tmp_path):
    sha, size = store.put_bytes(b"abc")
    store.checkout([FileEntry("source/a.json", sha, size)], tmp_path / "out")
    assert (tmp_path / "out/source/a.json").read_bytes() == b"abc"
    with pytest.raises(BadInput):
        store.checkout([FileEntry("../a", sha, size)], tmp_path / "out")


def test_a_store_that_may_not_be_written_says_so(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageFailed, match="file"):
        LocalStore(tmp_path / "file" / "store").put_bytes(b"abc")
