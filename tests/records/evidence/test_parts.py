"""What came of an answer in parts is sealed whole, and up to where a kill tore it."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from array import array
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq
import pytest

from records.errors import StorageFailed
from records.evidence import append_files, spool, tables, writer
from records.evidence.answer_parts import pack_part, part_heads, unpack_part
from records.evidence.chunks import tokens_of_chunks
from records.evidence.folder import EvidenceFolder, write_folder
from records.evidence.manifest import verify_folder
from records.evidence.writer import SpoolWriter
from tests.records.evidence.test_spool import RUN, attempt, plan, started


class Part(NamedTuple):
    times_us: array[int]
    totals: array[int]
    text: str
    reasoning: str


def part(times, totals=None, text="", reasoning=""):
    totals = [-1] * len(times) if totals is None else totals
    return Part(array("q", times), array("q", totals), text, reasoning)


def sealed(path):
    return EvidenceFolder.open(path)


def chunk_rows(folder):
    frame = folder.table("chunks")
    lists = [
        (list(gap), None if tokens is None else list(tokens))
        for gap, tokens in zip(frame["gap_us"], frame["tokens"], strict=True)
    ]
    return [
        (row.request_id, row.attempt, row.first_us, *both)
        for row, both in zip(frame.itertuples(), lists, strict=True)
    ]


def reference_tokens(totals, final):
    """The rule for one attempt, in plain Python."""
    steps = [total - before for before, total in zip([0, *totals], totals, strict=False)]
    if all(t >= 0 for t in totals) and all(1 <= step <= 32767 for step in steps):
        return steps
    return [1] * len(totals) if final == len(totals) else None


@pytest.mark.parametrize(
    ("totals", "final", "wanted"),
    [
        ([2, 3, 7], 7, [2, 1, 4]),
        ([2, 3, 7], -1, [2, 1, 4]),
        ([-1, -1, -1], 3, [1, 1, 1]),
        ([-1, -1, 4], 4, None),
        ([-1, 1, 2], 3, [1, 1, 1]),
        ([0, 0, 3], 3, [1, 1, 1]),
        ([2, 2, 3], 4, None),
        ([32767], 32767, [32767]),
        ([32768], 32768, None),
        ([5, 4], 4, None),
    ],
)
def test_tokens_of_chunks_are_steps_else_one_each_else_unknown(totals, final, wanted):
    """Running totals step by what each chunk held; without them only an equal count tells."""
    tokens, known = tokens_of_chunks(np.array([len(totals)]), np.array(totals), np.array([final]))
    assert (tokens.tolist() if known[0] else None) == wanted == reference_tokens(totals, final)


def test_columns_at_once_say_what_plain_python_says_row_by_row(tmp_path):
    """Many attempts of random parts seal into what a loop over single chunks gives."""
    draw = random.Random(7)
    ids = [f"q{i}" for i in range(200)]
    out = started(tmp_path / "f", *range(200))
    wanted, waiting, rows = [], [], {}
    for name in ids:
        count = draw.randrange(0, 12)
        times = sorted(draw.randrange(0, 10**10) for _ in range(count))
        totals = [-1] * count
        if draw.random() < 0.6:
            steps = [draw.choice([0, 1, 1, 1, 2, 40_000]) for _ in times]
            totals = [sum(steps[: i + 1]) for i in range(count)]
        if draw.random() < 0.2 and count:
            totals[draw.randrange(count)] = -1
        final, source = draw.choice([(count, "usage"), (count, "chunks"), (count + 1, "usage")])
        rows[name] = attempt(name, output_tokens=final, token_count_source=source)
        out.sent(name, 1, 0.0)
        cut = draw.randrange(count + 1)
        waiting.append([(name, times[:cut], totals[:cut]), (name, times[cut:], totals[cut:])])
        if count:
            gaps = [min(b - a, 2**31 - 1) for a, b in pairwise(times)]
            tokens = reference_tokens(totals, -1 if source == "chunks" else final)
            wanted.append((name, 1, times[0], gaps, tokens))
    # Parts of different attempts come interleaved; those of one attempt in their order.
    while waiting:
        parts = draw.choice(waiting)
        name, times, totals = parts.pop(0)
        out.part(name, 1, part(times, totals), keep_text=True)
        if not parts:
            waiting.remove(parts)
            out.attempt(rows[name])
    out.close("completed", "end", None, 1e4)
    assert chunk_rows(sealed(tmp_path / "f")) == wanted


def test_gaps_beyond_int32_are_clamped(tmp_path):
    """A gap of more than 35 minutes is the longest that the column holds, both ways."""
    out = started(tmp_path / "f", 0.0)
    out.sent("q0", 1, 0.0)
    out.part("q0", 1, part([0, 2**40, 5]), keep_text=True)
    out.attempt(attempt("q0"))
    out.close("completed", "end", None, 1.0)
    assert chunk_rows(sealed(tmp_path / "f")) == [("q0", 1, 0, [2**31 - 1, -(2**31)], None)]


def test_a_part_torn_at_any_byte_is_left_out_and_counted_once(tmp_path):
    """Of three records, cut anywhere, those before the cut are whole and the rest is torn."""
    parts = [part([1, 2], [1, 2], "añ", "b"), part([3], None, "c"), part([], None, "", "d")]
    records = [pack_part("é1", 3, p, keep_text=True) for p in parts]
    data, ends = b"".join(records), [0]
    for record in records:
        ends.append(ends[-1] + len(record))
    path = tmp_path / "parts-00000.bin"
    for cut in range(len(data) + 1):
        path.write_bytes(data[:cut])
        heads = list(part_heads(path))
        whole = sum(end <= cut for end in ends[1:])
        assert [h is None for h in heads] == [False] * whole + [True] * (cut not in ends)
        for head, kept in zip(heads[:whole], parts, strict=False):
            payload = data[head.offset : head.offset + head.length]
            assert unpack_part(payload).times_us == kept.times_us.tobytes()
            assert (head.request_id, head.attempt, head.chunks) == ("é1", 3, len(kept.times_us))


def test_a_part_whose_bytes_changed_is_not_read(tmp_path):
    """Each single byte flipped is noticed by the length or the check."""
    record = pack_part("q0", 1, part([1, 2], None, "ab"), keep_text=True)
    path = tmp_path / "parts-00000.bin"
    for at in range(len(record)):
        path.write_bytes(record[:at] + bytes([record[at] ^ 255]) + record[at + 1 :])
        assert list(part_heads(path)) == [None]


def test_a_killed_run_keeps_what_was_seen_of_open_answers(tmp_path):
    """Times of the chunks are known, counts are not; the torn record is counted."""
    out = started(tmp_path / "f", 0.0, 1.0, 2.0)
    for i in range(3):
        out.sent(f"q{i}", 1, float(i))
    out.part("q0", 1, part([500_000, 700_000], [2, 3], "seen"), keep_text=True)
    out.part("q1", 1, part([1_500_000, 2_750_000], None, "al", "why"), keep_text=True)
    out.abandon()
    with (tmp_path / "f/spool/parts-00000.bin").open("ab") as handle:
        handle.write(pack_part("q2", 1, part([9_000_000]), keep_text=True)[:-1])
    folder = sealed(tmp_path / "f")
    attempts = folder.table("attempts")
    assert attempts["outcome"].tolist() == ["interrupted"] * 3
    assert attempts["first_token_s"].tolist()[:2] == [0.5, 1.5]
    assert attempts["last_token_s"].tolist()[:2] == [0.7, 2.75]
    assert attempts[["output_tokens", "first_visible_token_s"]].isna().all(axis=None)
    assert attempts.loc[2, ["first_token_s", "last_token_s"]].isna().all()
    # the last sign of life is the last chunk, 2.75 s
    assert attempts["end_s"].tolist() == [2.75] * 3
    assert folder.table("requests")["first_token_s"].tolist()[:2] == [0.5, 1.5]
    assert chunk_rows(folder) == [
        ("q0", 1, 500_000, [200_000], [2, 1]),
        ("q1", 1, 1_500_000, [1_250_000], None),
    ]
    assert [(o["request_id"], o["text"], o["reasoning"]) for o in folder.outputs()] == [
        ("q0", "seen", None), ("q1", "al", "why"),
    ]  # fmt: skip
    assert folder.run["end"]["torn_lines"] == 1
    assert verify_folder(folder.path) == []


def test_answers_in_parts_are_joined_and_hashed_when_sealed(tmp_path):
    """Text of parts goes before the rest in the line, and half characters find each other."""
    out = started(tmp_path / "f", 0.0, 1.0)
    out.sent("q0", 1, 0.0)
    out.sent("q1", 1, 1.0)
    out.part("q0", 1, part([1, 2], None, "Hel\ud83d", "be"), keep_text=True)
    out.part("q0", 1, part([3], None, "\ude00 lo", "cause"), keep_text=True)
    line = {"request_id": "q1", "attempt": 1, "text": None, "reasoning": None, "tool_calls": []}
    out.attempt(attempt("q1"), output={**line, "sha256": "given"})
    line = {"request_id": "q0", "attempt": 1, "text": "!", "reasoning": None, "tool_calls": [1]}
    out.attempt(attempt("q0"), output={**line, "parts": 2, "error": "late"})
    out.close("completed", "end", None, 2.0)
    first, second = sealed(tmp_path / "f").outputs()
    assert first["sha256"] == "given"
    said = {"reasoning": "because", "text": "Hel😀 lo!", "tool_calls": [1]}
    raw = json.dumps(said, separators=(",", ":"), ensure_ascii=False).encode()
    assert second == {
        "request_id": "q0", "attempt": 1, **said, "error": "late",
        "sha256": hashlib.sha256(raw).hexdigest(),
    }  # fmt: skip


@pytest.mark.parametrize("capture", ["hashes", "none"])
def test_text_that_is_not_to_be_kept_reaches_no_file(tmp_path, capture):
    """Neither the spool nor the sealed folder has a byte of it."""
    run = {**RUN, "capture": capture}
    out = SpoolWriter.create(tmp_path / "f", run, {"schema": "w"}, [], plan(0.0))
    out.sent("q0", 1, 0.0)
    out.part("q0", 1, part([1, 2], None, "SECRET", "SECRET"), keep_text=False)
    out.abandon()

    def holding():
        files = [p for p in (tmp_path / "f").rglob("*") if p.is_file()]
        return [p.name for p in files if b"SECRET" in p.read_bytes()]

    assert holding() == []
    folder = sealed(tmp_path / "f")
    assert chunk_rows(folder)[0][:4] == ("q0", 1, 1, [1])
    assert list(folder.outputs()) == []
    assert folder.has_outputs is (capture == "hashes")
    assert holding() == []


def test_rows_of_any_number_of_groups_have_the_bytes_of_a_folder_written_at_once(
    tmp_path, monkeypatch
):
    """Sealing in row groups and writing whole tables agree byte by byte, and twice."""
    monkeypatch.setattr(tables, "GROUP_CHUNKS", 5)
    hashes = []
    for name in ("a", "b"):
        out = started(tmp_path / name, *range(6))
        for i in range(6):
            out.sent(f"q{i}", 1, float(i))
            out.part(f"q{i}", 1, part([10 * i, 10 * i + 3, 10 * i + 4]), keep_text=True)
            out.attempt(attempt(f"q{i}", output_tokens=3, token_count_source="usage"))
        out.close("completed", "end", None, 9.0)
        hashes.append([(e.name, e.sha256) for e in sealed(tmp_path / name).files()])
    assert hashes[0] == hashes[1]
    folder = sealed(tmp_path / "a")
    assert pq.ParquetFile(folder.path / "chunks.parquet").num_row_groups == 3
    frames = {name: folder.table(name) for name in ("chunks", "attempts", "requests")}
    again = write_folder(tmp_path / "c", RUN, {"schema": "w"}, None, frames)
    for name in frames:
        whole = (again.path / f"{name}.parquet").read_bytes()
        assert (folder.path / f"{name}.parquet").read_bytes() == whole


def test_kill_nine_keeps_the_parts_that_were_handed_over(tmp_path):
    """What was handed over some moments before the kill is there, in the order it came."""
    script = (
        "import os, signal, time\n"
        "from pathlib import Path\n"
        "from records.evidence.writer import SpoolWriter\n"
        "from tests.records.evidence.test_parts import part\n"
        f"at = Path({str(tmp_path / 'f')!r})\n"
        f"out = SpoolWriter.create(at, {RUN!r}, {{}}, [], {plan(0.0)!r})\n"
        "out.sent('q0', 1, 0.25)\n"
        "for i in range(5): out.part('q0', 1, part([300_000 + i], None, str(i)), True)\n"
        "part = at / 'spool/events-00000.jsonl'\n"
        "while not part.exists() or not part.stat().st_size: time.sleep(0.001)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], check=False, cwd=os.getcwd())
    assert done.returncode == -signal.SIGKILL
    folder = sealed(tmp_path / "f")
    assert chunk_rows(folder) == [("q0", 1, 300_000, [1, 1, 1, 1], None)]
    assert [o["text"] for o in folder.outputs()] == ["01234"]


def test_a_disk_that_cannot_keep_up_ends_the_run_instead_of_eating_memory(tmp_path, monkeypatch):
    """More evidence waiting than the bound is a failure; what waited is written all the same."""
    monkeypatch.setattr(writer, "MOST_WAITING_BYTES", 2000)
    monkeypatch.setattr(writer, "GATHER_S", 0.2)
    out = started(tmp_path / "f", 0.0)
    out.sent("q0", 1, 0.25)
    for i in range(100):
        out.part("q0", 1, part([300_000 + i]), keep_text=True)
    assert isinstance(out.failed, StorageFailed)
    with pytest.raises(StorageFailed, match="the disk cannot keep up"):
        out.close("completed", "end", None, 1.0)
    folder = sealed(tmp_path / "f")
    assert folder.run["end"]["reason"] == "storage_failed"
    # frame 8, head 24, id 2 and a time of 8 bytes are 42 a part: some 47 of them fit
    assert 40 < len(chunk_rows(folder)[0][3]) < 55


def test_items_that_come_together_are_written_together(tmp_path, monkeypatch):
    """The thread that writes gathers for a moment, so that it wakes seldom under load."""
    monkeypatch.setattr(writer, "GATHER_S", 0.1)
    written, real = [], writer.os.write
    monkeypatch.setattr(writer.os, "write", lambda h, data: written.append(1) or real(h, data))
    out = started(tmp_path / "f", 0.0)
    for i in range(50):
        out.sent("q0", 1, i / 100)
    out.abandon()
    assert len(written) <= 2


def test_what_comes_while_the_disk_syncs_is_written_all_the_same(tmp_path, monkeypatch):
    """A killed process loses what it handed over in some milliseconds, however slow a sync is."""
    syncing, go_on = threading.Event(), threading.Event()

    def slow(handle):
        syncing.set()
        assert go_on.wait(10)

    monkeypatch.setattr(writer, "SYNC_S", 0.01)
    out = started(tmp_path / "f", 0.0)
    monkeypatch.setattr(writer.os, "fsync", slow)
    out.sent("q0", 1, 0.25)
    assert syncing.wait(10)
    out.part("q0", 1, part([300_000]), keep_text=True)
    deadline = time.monotonic() + 10
    path = tmp_path / "f/spool/parts-00000.bin"
    while not path.exists() or not path.stat().st_size:
        assert time.monotonic() < deadline
        time.sleep(0.002)
    go_on.set()
    out.abandon()


def test_full_files_are_followed_by_new_ones_in_order(tmp_path, monkeypatch):
    """Parts of one attempt over many files are read in the order in which they came."""
    monkeypatch.setattr(append_files, "FULL_BYTES", 30)
    monkeypatch.setattr(writer, "GATHER_S", 0.0)
    monkeypatch.setattr(writer, "SYNC_S", 0.01)
    out = started(tmp_path / "f", 0.0)
    out.sent("q0", 1, 0.25)
    for i in range(12):
        out.part("q0", 1, part([300_000 + i * i]), keep_text=True)
        time.sleep(0.005)
    out.abandon()
    assert len(list((tmp_path / "f/spool").glob("parts-*.bin"))) > 1
    [(_, _, first, gaps, _)] = chunk_rows(sealed(tmp_path / "f"))
    assert (first, gaps) == (300_000, [1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21])


def test_a_spool_of_an_earlier_writer_keeps_its_chunks(tmp_path):
    """Chunks that stand in the line of their attempt are sealed as they stand."""
    out = started(tmp_path / "f", 0.0)
    out.sent("q0", 1, 0.0)
    out.attempt(attempt("q0"), {"first_us": 7, "gap_us": [2, 3], "tokens": [4, 1, 2]})
    out.abandon()
    spool.seal(tmp_path / "f")
    assert chunk_rows(sealed(tmp_path / "f")) == [("q0", 1, 7, [2, 3], [4, 1, 2])]


def test_a_long_request_id_is_kept(tmp_path):
    """Traces name their requests; no length of a name breaks the run."""
    path = tmp_path / "parts-00000.bin"
    path.write_bytes(pack_part("é" * 70_000, 1, part([1]), keep_text=True))
    [head] = part_heads(path)
    assert head is not None
    assert head.request_id == "é" * 70_000
