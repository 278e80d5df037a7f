"""Traces survive writing and reading in every compression, whole or not at all."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import time

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from records.errors import BadInput, BadTrace
from records.traces import files, reading, schema
from records.traces.files import decompressed
from records.traces.reading import parse_trace, read_trace, trace_bytes, write_trace

LINES = [
    {"at_s": 0.0, "class": "interactive", "prompt": "naïve — text", "max_output_tokens": 4},
    {"at_s": 0.5, "class": "background", "prompt_tokens": 12, "prefix": [{"id": "a", "tokens": 8}]},
    {"at_s": 0.5, "messages": [{"role": "user", "content": "hi"}], "tools": [{"type": "function"}]},
]


def as_file(lines: list[dict], end: str = "\n") -> bytes:
    return "".join(json.dumps(line) + end for line in lines).encode()


TRACE = parse_trace(as_file(LINES), "t")


@pytest.mark.parametrize("name", ["t.jsonl", "t.jsonl.gz", "t.jsonl.zst"])
def test_what_is_written_is_read_again(tmp_path, name: str):
    """Header and requests come back, compressed or not."""
    write_trace(tmp_path / name, {"name": "n"}, TRACE.requests)
    back = read_trace(tmp_path / name)
    assert back.requests == TRACE.requests
    assert back.header == {"schema": "impakt.trace/1", "name": "n"}


@pytest.mark.parametrize("name", ["t.jsonl", "t.jsonl.gz", "t.jsonl.zst"])
def test_the_same_trace_gives_the_same_bytes(tmp_path, name: str):
    """No time and no file name gets into the file."""
    (tmp_path / "other").mkdir()
    write_trace(tmp_path / name, {}, TRACE.requests)
    write_trace(tmp_path / "other" / name, {}, TRACE.requests)
    assert (tmp_path / name).read_bytes() == (tmp_path / "other" / name).read_bytes()


def test_compression_is_told_by_content_not_by_name(tmp_path):
    """A gzip file called .jsonl reads as well as two zstd frames in a row."""
    data = as_file(LINES)
    (tmp_path / "a.jsonl").write_bytes(gzip.compress(data))
    pack = zstandard.ZstdCompressor().compress
    (tmp_path / "b.txt").write_bytes(pack(data[:40]) + pack(data[40:]))
    assert read_trace(tmp_path / "a.jsonl").requests == TRACE.requests
    assert read_trace(tmp_path / "b.txt").requests == TRACE.requests


@pytest.mark.parametrize("name", ["t.gz", "t.zst"])
def test_a_cut_off_archive_is_refused(tmp_path, name: str):
    """Half a compressed file is not half a trace."""
    write_trace(tmp_path / name, {}, TRACE.requests)
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole[:-9])
    with pytest.raises(BadTrace, match="a whole gzip or zstd file"):
        read_trace(tmp_path / name)


def test_bom_carriage_returns_and_blank_lines_do_not_matter():
    """A file that went through an editor is the same trace."""
    data = b"\xef\xbb\xbf\r\n" + as_file(LINES, "\r\n\r\n").rstrip()
    assert parse_trace(data, "t").trace_hash == TRACE.trace_hash


def test_a_line_separator_inside_a_prompt_is_not_a_line_end():
    """U+2028 is text to JSON, whatever str.splitlines thinks."""
    line = '{"at_s":0,"prompt":"a\u2028b"}'.encode()
    assert parse_trace(line, "t").requests[0].prompt == "a\u2028b"


def test_a_missing_file_is_one_sentence(tmp_path):
    """Not a traceback."""
    with pytest.raises(BadTrace, match=r"gone\.jsonl: a readable file"):
        read_trace(tmp_path / "gone.jsonl")
    with pytest.raises(BadTrace, match="a readable file"):
        read_trace(tmp_path)


def test_writing_into_no_folder_is_bad_input(tmp_path):
    """The folder is named; nothing is created."""
    with pytest.raises(BadInput, match="cannot be written"):
        write_trace(tmp_path / "no" / "t.jsonl", {}, TRACE.requests)
    assert not list(tmp_path.iterdir())


def test_a_failed_write_leaves_the_old_file_and_no_debris(tmp_path, monkeypatch):
    """The rename is the last step; without it the old trace stands."""
    write_trace(tmp_path / "t.jsonl", {"name": "old"}, TRACE.requests)

    def refuse(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(Exception, match="No space left on device"):
        write_trace(tmp_path / "t.jsonl", {"name": "new"}, TRACE.requests)
    assert [p.name for p in tmp_path.iterdir()] == ["t.jsonl"]
    assert read_trace(tmp_path / "t.jsonl").header["name"] == "old"


def test_trace_hash_is_the_sha256_of_the_lines_after_the_header(tmp_path):
    """Anyone can check it with sed and sha256sum."""
    write_trace(tmp_path / "t.jsonl", {"name": "n"}, TRACE.requests)
    _, body = (tmp_path / "t.jsonl").read_bytes().split(b"\n", 1)
    assert hashlib.sha256(body).hexdigest() == TRACE.trace_hash


def test_header_key_order_and_number_form_do_not_change_the_hash():
    """A header added, keys turned round, 0.0 as 0, ids spelt out: the same trace."""
    lines = [dict(reversed(line.items())) for line in LINES]
    lines[0]["at_s"] = 0
    lines[2]["id"], lines[2]["class"] = "3", "default"
    other = parse_trace(as_file([{"schema": "impakt.trace/1", "name": "x"}, *lines]), "t")
    assert other.trace_hash == TRACE.trace_hash


@pytest.mark.parametrize(
    ("index", "change", "demand", "prompts"),
    [
        (0, {"prompt": "other"}, True, False),
        (1, {"prompt_tokens": 13}, True, False),
        (1, {"prefix": [{"id": "b", "tokens": 8}]}, True, False),
        (2, {"tools": []}, True, False),
        (2, {"messages": [{"role": "user", "content": "ho"}]}, True, False),
        (2, {"at_s": 0.75}, False, True),
        (0, {"class": "background"}, False, True),
        (0, {"max_output_tokens": 5}, False, True),
        (1, {"case": "c"}, False, True),
        (1, {"cancel_after_s": 1}, False, True),
    ],
)
def test_demand_and_prompts_have_hashes_of_their_own(index, change, demand, prompts):
    """A prompt or a tool moves prompt_hash alone, everything else demand_hash alone."""
    lines = [dict(line) for line in LINES]
    lines[index] |= change
    other = parse_trace(as_file(lines), "t")
    assert other.trace_hash != TRACE.trace_hash
    assert (other.demand_hash == TRACE.demand_hash) is demand
    assert (other.prompt_hash == TRACE.prompt_hash) is prompts


@settings(deadline=None)  # a loaded machine is slow, not wrong
@given(
    st.lists(
        st.tuples(
            st.floats(0, 1e6), st.text(max_size=20), st.none() | st.integers(0, 9), st.booleans()
        ),
        min_size=1,
        max_size=8,
    )
)
def test_any_trace_survives_a_round_trip(rows):
    """Bytes to requests to bytes is the identity, whatever the text and times."""
    rows.sort(key=lambda row: row[0])
    lines = [
        {"at_s": at_s, "prompt": text, "max_output_tokens": limit, "difficult": difficult}
        for at_s, text, limit, difficult in rows
    ]
    trace = parse_trace(as_file(lines), "t")
    written = trace_bytes(trace.header, trace.requests)
    back = parse_trace(written, "t")
    assert back.requests == trace.requests
    assert trace_bytes(back.header, back.requests) == written


@pytest.mark.parametrize(
    "data", [b"\xff\xfe{\x00", b"[" * 100_000, b'{"at_s":0,"prompt":"\\ud800"}']
)
def test_bytes_that_are_no_text_or_too_deep_are_refused(data: bytes):
    """UTF-16, a tower of brackets and half a surrogate are one line of error each."""
    with pytest.raises(BadTrace, match=r"t: line 1: a JSON object"):
        parse_trace(data, "t")


def test_reading_time_grows_with_the_lines_not_their_square():
    """An hour's traffic, 20000 lines, is read and hashed in seconds."""
    line = '{"at_s": %f, "prompt_tokens": 100, "max_output_tokens": 5}\n'
    data = "".join(line % (i * 0.1) for i in range(20_000)).encode()
    start = time.process_time()
    assert len(parse_trace(data, "t").trace_hash) == 64
    # 0.6 s of CPU on the machine this was written on; the bound is for slow and busy ones.
    assert time.process_time() - start < 8


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.ZstdCompressor().compress])
def test_a_small_file_does_not_unpack_without_bound(compress):
    """1 MiB of spaces from about a KB: refused at 1 KiB, given whole at exactly 1 MiB."""
    data = compress(b" " * (1 << 20))
    with pytest.raises(BadTrace, match="at most 1024 bytes unpacked"):
        decompressed(data, "t.jsonl", most=1024)
    assert len(decompressed(data, "t.jsonl", most=1 << 20)) == 1 << 20


def test_a_plain_file_has_the_same_bound(tmp_path):
    (tmp_path / "t.jsonl").write_bytes(b" " * 2000)
    assert len(b"".join(files.read_pieces(tmp_path / "t.jsonl", 2000))) == 2000
    with pytest.raises(BadTrace, match="at most 1999 bytes"):
        list(files.read_pieces(tmp_path / "t.jsonl", 1999))


def test_more_requests_than_memory_holds_are_refused_at_their_line(monkeypatch):
    """Three are allowed: with the header on line 1 the fourth stands on line 5."""
    monkeypatch.setattr(reading, "MOST_REQUESTS", 3)
    lines = [json.dumps({"schema": "impakt.trace/1"})]
    lines += [json.dumps({"at_s": i, "prompt": "a"}) for i in range(4)]
    assert len(parse_trace("\n".join(lines[:4]).encode(), "t").requests) == 3
    with pytest.raises(BadTrace, match="t: line 5: at most 3 requests"):
        parse_trace("\n".join(lines).encode(), "t")


def test_lines_without_end_are_refused(monkeypatch):
    """Empty lines cost time though they hold nothing, and one line may not be the whole memory."""
    with pytest.raises(BadTrace, match="t: at most 2000000 lines"):
        parse_trace(b"\n" * 2_100_000, "t")
    with pytest.raises(BadTrace, match="t: line 2: a line of at most 67108864 bytes"):
        parse_trace((piece for piece in [b"\n", *[b" " * (1 << 20)] * 1000]), "t")


def test_a_prompt_of_2_mb_is_read():
    prompt = "word " * 400_000
    line = json.dumps({"at_s": 0, "prompt": prompt}).encode()
    assert parse_trace(line, "t").requests[0].prompt == prompt


def test_lines_are_the_same_however_the_file_is_cut():
    """Pieces of every size from 1 byte to all of it."""
    data = b"\xef\xbb\xbf" + as_file(LINES, "\r\n")
    whole = list(reading.numbered_lines(data))
    for size in (1, 2, 3, 7, 64, len(data)):
        pieces = [data[at : at + size] for at in range(0, len(data), size)]
        assert list(reading.numbered_lines(pieces)) == whole


def test_zstd_frames_one_after_another_are_one_file():
    frames = b"".join(zstandard.ZstdCompressor().compress(c * 3000) for c in (b"a", b"b"))
    assert decompressed(frames, "t") == b"a" * 3000 + b"b" * 3000
    with pytest.raises(BadTrace, match="cut off"):
        decompressed(frames[:-1], "t")


def test_hashes_are_of_canonical_lines_with_some_members_left_out():
    """Each hash is that of whole lines, however oddly their values are written."""
    request = schema.TraceRequest(
        id="\u00e4\u2028\"", at_s=2.0, prompt_tokens=3, prefix=[{"id": "1", "tokens": 1}],
        difficult=True, tools=[{"x": [1.0, 1e-07, 1e22, None, {"b": 2, "a": "\x1f"}]}],
        sampling={"z": 0.1, "a": True},
    )  # fmt: skip
    trace = reading.Trace({}, [request])
    whole = request.line()
    prompts = {k: v for k, v in whole.items() if k in schema.PROMPT_FIELDS}
    demand = {k: v for k, v in whole.items() if k not in prompts}
    lines = [reading.canonical_line(members) for members in (whole, demand, prompts)]
    hashes = [trace.trace_hash, trace.demand_hash, trace.prompt_hash]
    assert hashes == [hashlib.sha256(line).hexdigest() for line in lines]
