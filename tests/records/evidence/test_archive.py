"""An archive unpacks to the folder it was made of, and a hostile one to nothing."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile

import pytest
import zstandard

from records.errors import BadEvidence
from records.evidence.archive import pack, unpack
from records.evidence.folder import EvidenceFolder, write_folder

RUN = {"schema": "impakt.run/1", "window": {"start_s": 0, "end_s": 1}}
LIMIT = 10_000_000


@pytest.fixture
def folder(tmp_path):
    made = write_folder(tmp_path / "f", RUN, {"schema": "w"}, ["{}"], {}, [])
    made.add_record(b"{}")
    return made


def packed(folder):
    out = io.BytesIO()
    pack(folder.path, out)
    return out.getvalue()


def members(folder):
    return sorted(p for p in folder.path.rglob("*") if p.is_file())


def as_tar(folder, mode, prefix=""):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as tar:
        for path in members(folder):
            tar.add(path, prefix + str(path.relative_to(folder.path)))
    return out.getvalue()


def as_zip(folder, prefix=""):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for path in members(folder):
            archive.write(path, prefix + str(path.relative_to(folder.path)))
    return out.getvalue()


def test_packing_twice_gives_the_same_bytes(folder):
    assert packed(folder) == packed(folder)


@pytest.mark.parametrize(
    "make",
    [
        packed,
        lambda f: as_tar(f, "w"),
        lambda f: as_tar(f, "w:gz"),
        lambda f: as_tar(f, "w:gz", "./"),
        lambda f: as_tar(f, "w", "run-7/"),
        as_zip,
        lambda f: as_zip(f, "run-7/"),
    ],
)
def test_every_form_unpacks_to_the_same_folder(folder, tmp_path, make):
    unpack(io.BytesIO(make(folder)), tmp_path / "out", LIMIT)
    out = EvidenceFolder.open(tmp_path / "out")
    assert out.files() == folder.files()
    assert [p.name for p in out.records()] == [p.name for p in folder.records()]


def refused(data, dest, match, **limits):
    with pytest.raises(BadEvidence, match=match):
        unpack(io.BytesIO(data), dest, **{"max_bytes": LIMIT, **limits})
    assert not dest.exists()


def tar_of(*infos):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for info, data in infos:
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def named(name, kind=tarfile.REGTYPE, target=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


@pytest.mark.parametrize("name", ["../evil", "/abs/evil", "a/../../evil"])
def test_names_outside_are_refused(tmp_path, name):
    refused(tar_of((named(name), b"x")), tmp_path / "out", "inside")
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(name, "x")
    refused(out.getvalue(), tmp_path / "out", "inside")
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_are_refused(tmp_path, kind):
    data = tar_of((named("run.json", kind, "/etc/passwd"), b""))
    refused(data, tmp_path / "out", "files only")


def test_a_bomb_stops_at_the_limit(tmp_path):
    bomb = zstandard.ZstdCompressor().compress(tar_of((named("a"), bytes(5_000_000))))
    assert len(bomb) < 10_000
    refused(bomb, tmp_path / "out", "at most 1000000 bytes", max_bytes=1_000_000)


def test_too_many_files_and_a_name_twice_are_refused(tmp_path):
    many = tar_of(*((named(f"f{i}"), b"") for i in range(20)))
    refused(many, tmp_path / "out", "at most 10 files", max_files=10)
    refused(tar_of((named("a"), b"1"), (named("a"), b"2")), tmp_path / "out", "once")
    refused(tar_of((named("a"), b"1"), (named("a/b"), b"2")), tmp_path / "out", "not both")


@pytest.mark.parametrize("name", ["spool/x", ".spool-sealed/x", "records/.tmp-x", "run-7/spool/x"])
def test_files_that_no_check_would_look_at_are_not_taken_in(folder, tmp_path, name):
    data = tar_of((named(name), b"x"), (named("run-7/manifest.json"), b"{}"))
    refused(data, tmp_path / "out", "manifest")


def test_a_changed_file_is_named(folder, tmp_path):
    (folder.path / "run.json").write_text("{}")
    refused(packed(folder), tmp_path / "out", "run.json")


def test_a_truncated_archive_and_plain_junk_are_refused(folder, tmp_path):
    for data in (packed(folder)[:-100], as_zip(folder)[:-50], as_tar(folder, "w:gz")[:-100]):
        refused(data, tmp_path / "out", "archive")
    refused(b"hello", tmp_path / "out", "archive")
    refused(b"", tmp_path / "out", "archive|manifest")


def test_an_archive_without_a_manifest_is_refused(tmp_path):
    refused(tar_of((named("run.json"), b"{}")), tmp_path / "out", "manifest")


def header(name, size, kind):
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    return info.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize("compress", [bytes, zstandard.ZstdCompressor().compress, gzip.compress])
@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
def test_a_header_that_claims_megabytes_is_not_read_into_memory(tmp_path, compress, kind):
    """16 MiB of extended header, a few KB under compression; tarfile would read it whole."""
    size = 16 << 20
    data = compress(header("x", size, kind) + bytes(size))
    with pytest.raises(BadEvidence, match="bytes of headers and folders"):
        unpack(io.BytesIO(data), tmp_path / "out", 1 << 30)
    assert not (tmp_path / "out").exists()


def test_endless_folders_are_not_walked(tmp_path):
    """3 000 folders of 512 bytes each are more than 1 MiB between two files."""
    data = zstandard.ZstdCompressor().compress(header("d/", 0, tarfile.DIRTYPE) * 3000)
    with pytest.raises(BadEvidence, match="bytes of headers and folders"):
        unpack(io.BytesIO(data), tmp_path / "out", 1 << 30)


def zip_end(list_bytes, comment=0):
    """The end record of a zip that says how long its list is."""
    return (
        b"PK\x05\x06"
        + bytes(8)
        + list_bytes.to_bytes(4, "little")
        + bytes(4)
        + comment.to_bytes(2, "little")
    )


@pytest.mark.parametrize(
    ("tail", "said"),
    [
        (zip_end(9 << 20), "at most 10000 files"),
        (zip_end(0, comment=1) + b"x", "without comment or zip64"),
        (b"PK\x06\x07" + bytes(16) + zip_end(0), "without comment or zip64"),
        (b"", "without comment or zip64"),
    ],
)
def test_a_zip_s_list_of_files_is_bounded_before_it_is_read(tmp_path, tail, said):
    """zipfile makes an object of every entry of the list before it gives the first."""
    with pytest.raises(BadEvidence, match=said):
        unpack(io.BytesIO(b"PK\x03\x04" + tail), tmp_path / "out", LIMIT)
