"""An evidence folder gives back what was written, and tells when it no longer is that."""

from __future__ import annotations

import hashlib
import json
import re
import shutil

import pandas as pd
import pytest

from records.errors import BadEvidence, BadInput, EvidenceDiffers
from records.evidence.columns import LATER, TABLES
from records.evidence.folder import EvidenceFolder, write_folder
from records.evidence.manifest import verify_folder, write_manifest
from records.evidence.tables import table_of, write_table

RUN = {"schema": "impakt.run/1", "run_id": "r", "window": {"start_s": 0.0, "end_s": 1.0}}
REQUESTS = [
    {"request_id": "a", "class": "x", "intended_s": 0.0, "in_window": True, "attempts": 1},
    {"request_id": "b", "class": "y", "intended_s": 0.5, "in_window": False, "attempts": 0},
]
CHUNKS = [
    {"request_id": "a", "attempt": 1, "first_us": 5, "gap_us": [10, 20], "tokens": [1, 2, 3]},
    {"request_id": "b", "attempt": 1, "first_us": 9, "gap_us": [], "tokens": None},
]
OUTPUT = {"request_id": "a", "attempt": 1, "text": "é\u2028", "reasoning": None}


def written(path):
    tables = {"requests": REQUESTS, "chunks": CHUNKS}
    return write_folder(path, RUN, {"schema": "w"}, ['{"at_s":0}'], tables, [OUTPUT])


def test_what_was_written_is_read_back_with_its_dtypes(tmp_path):
    folder = written(tmp_path / "f")
    requests = folder.table("requests")
    assert list(requests.columns) == TABLES["requests"].names
    assert requests["intended_s"].dtype == "float64"
    assert requests["attempts"].dtype == pd.Int64Dtype()
    assert requests["prompt_tokens"].isna().all()
    assert requests["in_window"].tolist() == [True, False]
    chunks = folder.table("chunks")
    assert list(chunks["tokens"][0]) == [1, 2, 3]
    assert chunks["tokens"][1] is None
    assert list(folder.outputs()) == [OUTPUT]
    assert list(folder.trace_lines()) == ['{"at_s":0}']


def test_a_table_whose_file_is_absent_is_empty_with_its_columns(tmp_path):
    folder = written(tmp_path / "f")
    (folder.path / "metrics.parquet").unlink()
    write_manifest(folder.path)
    frame = EvidenceFolder.open(folder.path).table("metrics")
    assert len(frame) == 0
    assert frame["at_s"].dtype == "float64"


def test_columns_that_earlier_evidence_lacks_read_as_null_and_no_others(tmp_path):
    """A folder of before opens; a table that never had one of its columns does not."""
    folder = written(tmp_path / "f")
    path = folder.path / "attempts.parquet"
    later = sorted(LATER["attempts"])
    row = {"request_id": "a", "attempt": 1, "outcome": "completed"}
    write_table(path, table_of("attempts", [row]).drop_columns(later))
    write_manifest(folder.path)
    frame = EvidenceFolder.open(folder.path).table("attempts")
    assert sorted(frame.columns) == sorted(TABLES["attempts"].names)
    assert frame[later].isna().all(axis=None)
    assert frame["receives"].dtype == pd.Int64Dtype()
    write_table(path, table_of("attempts", [row]).drop_columns(["sent_s"]))
    write_manifest(folder.path)
    with pytest.raises(BadEvidence, match="sent_s"):
        EvidenceFolder.open(folder.path).table("attempts")


def test_the_same_rows_give_the_same_bytes_from_rows_or_frames(tmp_path):
    one = written(tmp_path / "one")
    frames = {name: one.table(name) for name in TABLES}
    two = write_folder(tmp_path / "two", RUN, {"schema": "w"}, ['{"at_s":0}'], frames, [OUTPUT])
    assert [e.sha256 for e in one.files()] == [e.sha256 for e in two.files()]


def test_an_untouched_folder_has_no_differences_also_with_judgments_and_records(tmp_path):
    folder = written(tmp_path / "f")
    path = folder.add_record(b"{}")
    assert path.name == hashlib.sha256(b"{}").hexdigest() + ".json"
    assert folder.add_record(b"{}") == path
    folder.add_judgments(b"{}\n")
    assert len(folder.judgment_sets()) == 1
    assert verify_folder(folder.path) == []


@pytest.mark.parametrize("name", ["requests.parquet", "run.json", "trace.jsonl.zst"])
def test_one_flipped_bit_is_found_and_its_file_named(tmp_path, name):
    folder = written(tmp_path / "f")
    data = bytearray((folder.path / name).read_bytes())
    data[len(data) // 2] ^= 1
    (folder.path / name).write_bytes(data)
    assert [(d.name, d.kind) for d in verify_folder(folder.path)] == [(name, "changed")]


def test_missing_extra_linked_and_renamed_files_are_each_named(tmp_path):
    folder = written(tmp_path / "f")
    record = folder.add_record(b"{}")
    record.write_bytes(b"{ }")
    (folder.path / "tools.parquet").unlink()
    (folder.path / "note.txt").write_text("x")
    shutil.copy(folder.path / "run.json", tmp_path / "run.json")
    (folder.path / "run.json").unlink()
    (folder.path / "run.json").symlink_to(tmp_path / "run.json")
    found = {d.name: d.kind for d in verify_folder(folder.path)}
    assert found == {
        f"records/{record.name}": "changed",
        "tools.parquet": "missing",
        "note.txt": "extra",
        "run.json": "unreadable",
    }


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../b", "./a", "", "a\\b"])
def test_a_manifest_that_names_a_file_outside_is_refused(tmp_path, name):
    folder = written(tmp_path / "f")
    entry = {"name": name, "sha256": "0" * 64, "bytes": 1}
    body = {"schema": "impakt.manifest/1", "files": [entry]}
    (folder.path / "manifest.json").write_text(json.dumps(body))
    with pytest.raises(BadEvidence, match=r"files\[0\].name"):
        verify_folder(folder.path)


def test_a_folder_that_is_not_evidence_is_refused(tmp_path):
    with pytest.raises(BadEvidence, match=r"run\.json"):
        EvidenceFolder.open(tmp_path)
    with pytest.raises(BadEvidence):
        EvidenceFolder.open(tmp_path / "nothing")


def test_a_folder_that_holds_something_is_never_written_over(tmp_path):
    (tmp_path / "x").write_text("mine")
    with pytest.raises(BadInput, match="empty"):
        written(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


def test_a_damaged_table_names_its_file(tmp_path):
    folder = written(tmp_path / "f")
    (folder.path / "requests.parquet").write_bytes(b"PAR1 no footer")
    write_manifest(folder.path)
    with pytest.raises(BadEvidence, match=r"requests\.parquet"):
        EvidenceFolder.open(folder.path).table("requests")


@pytest.mark.parametrize("damage", ["flip", "delete", "link"])
@pytest.mark.parametrize(
    "name", ["run.json", "workload.json", "requests.parquet", "outputs.jsonl.zst",
             "trace.jsonl.zst"]
)  # fmt: skip
def test_nothing_is_read_from_bytes_that_the_manifest_does_not_name(tmp_path, name, damage):
    """A record names the hashes of its inputs, so a swapped file may not give one figure."""
    path = written(tmp_path / "f").path / name
    data = path.read_bytes()
    path.unlink()
    if damage == "flip":
        at = data.index(b":") + 1 if name.endswith(".json") else len(data) // 2
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    elif damage == "link":
        (tmp_path / "elsewhere").write_bytes(data)
        path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises((EvidenceDiffers, BadEvidence), match=re.escape(name)):
        read_all(tmp_path / "f")


def test_a_file_that_the_manifest_does_not_name_is_not_read(tmp_path):
    """Answers put into a folder that kept none are nobody's answers."""
    path = written(tmp_path / "f").path
    outputs = (path / "outputs.jsonl.zst").read_bytes()
    (path / "outputs.jsonl.zst").unlink()
    write_manifest(path)
    (path / "outputs.jsonl.zst").write_bytes(outputs)
    with pytest.raises(EvidenceDiffers, match="not named in the manifest"):
        read_all(path)


def read_all(path):
    folder = EvidenceFolder.open(path)
    return folder.table("requests"), list(folder.outputs()), list(folder.trace_lines())


def test_an_unknown_column_is_refused_rather_than_dropped(tmp_path):
    with pytest.raises(BadEvidence, match="latency"):
        write_folder(tmp_path / "f", RUN, {}, None, {"requests": [{"latency": 1}]})
