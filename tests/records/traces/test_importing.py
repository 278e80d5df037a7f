"""Foreign traces come in unchanged, or the header lists what was changed."""

from __future__ import annotations

import csv
import json
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from records.errors import BadInput, BadTrace
from records.traces.describe import describe
from records.traces.importing.formats import IMPORTS, import_trace
from records.traces.reading import read_trace, write_trace

CUT = Path(__file__).parents[2] / "samples" / "azure2023" / "conv_first_600s.csv"
HEAD = "TIMESTAMP,ContextTokens,GeneratedTokens"


def azure(tmp_path, *rows: str, head: str = HEAD, end: str = "\r\n"):
    """The import of a file of these rows, without a line end after the last."""
    path = tmp_path / "a.csv"
    path.write_bytes(end.join([head, *rows]).encode())
    return import_trace(path)


def refusal(tmp_path, *rows: str, **kwargs) -> str:
    with pytest.raises(BadTrace) as caught:
        azure(tmp_path, *rows, **kwargs)
    return str(caught.value).removeprefix(f"{tmp_path}/")


def test_the_cut_describes_as_computed_without_our_code():
    """Rows, span, rate, CV, dispersion and quantiles equal NumPy's own of the same file."""
    with CUT.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    at = np.array([datetime.fromisoformat(row["TIMESTAMP"][:26]).timestamp() for row in rows])
    at -= at[0]
    gaps = np.diff(at)
    figures = describe(import_trace(CUT))
    assert figures["requests"] == len(rows) == 2867
    assert figures["span_s"] == pytest.approx(at[-1], abs=1e-6)
    assert figures["rate_per_s"] == pytest.approx(2866 / at[-1], rel=1e-7)
    assert figures["cv"] == pytest.approx(np.std(gaps) / np.mean(gaps), rel=1e-5)
    for width in (1, 10, 60):
        full = int(at[-1] // width)
        counts, _ = np.histogram(at, np.arange(full + 1) * width)
        # np.histogram closes its last bin on the right; no stamp stands there.
        assert full * width not in at
        expected = counts.var() / counts.mean()
        assert figures["dispersion"][f"{width}s"] == pytest.approx(expected, rel=1e-9)
    for key, column in (("prompt_tokens", "ContextTokens"), ("output_tokens", "GeneratedTokens")):
        values = np.array([int(row[column]) for row in rows])
        for name, percent in (("p50", 50), ("p95", 95), ("p99", 99)):
            assert figures[key][name] == pytest.approx(np.percentile(values, percent))
        assert figures[key]["mean"] == pytest.approx(values.mean())
        assert (figures[key]["min"], figures[key]["max"]) == (values.min(), values.max())


def test_the_header_names_the_source():
    """Format, file, bytes and first stamp are kept, and nothing was changed."""
    header = import_trace(CUT).header
    assert header["source"]["format"] == "azure"
    assert header["source"]["sha256"].startswith("f1f033ff820b")
    assert header["source"]["bytes"] == CUT.stat().st_size
    assert header["first_timestamp"] == "2023-11-16 18:15:46.6805900"
    assert header["changes"] == []


def test_seven_decimals_carriage_returns_and_no_last_line_end(tmp_path):
    """All rows count and a tenth of a microsecond is kept."""
    rows = ("2023-11-16 18:15:46.6805900,374,44", "2023-11-16 18:15:46.6805901,396,109")
    trace = azure(tmp_path, *rows)
    assert [r.at_s for r in trace.requests] == [0.0, 1e-7]
    assert [(r.prompt_tokens, r.max_output_tokens) for r in trace.requests] == [
        (374, 44),
        (396, 109),
    ]


def test_whole_seconds_lose_their_fraction_in_2024_files(tmp_path):
    """Two forms of one stamp in one column, with a zone."""
    trace = azure(
        tmp_path,
        "2024-05-12 00:00:00+00:00,1,2",
        "2024-05-12 00:00:00.500000+00:00,1,2",
        "2024-05-12 02:00:01+02:00,1,2",
    )
    assert [r.at_s for r in trace.requests] == [0.0, 0.5, 1.0]


def test_columns_are_found_by_name(tmp_path):
    """The 2025 files put NumImages second; it is dropped, and that is said."""
    head = "TIMESTAMP,NumImages,ContextTokens,GeneratedTokens"
    trace = azure(tmp_path, "2025-01-01 00:00:00,3,10,20", head=head)
    assert (trace.requests[0].prompt_tokens, trace.requests[0].max_output_tokens) == (10, 20)
    assert trace.header["changes"] == ["column NumImages is not carried over"]


def test_rows_out_of_order_are_sorted_and_named(tmp_path):
    """Arrival counts from the earliest stamp; ids stay those of the file."""
    trace = azure(
        tmp_path,
        "2023-11-16 00:00:05,1,1",
        "2023-11-16 00:00:03,2,1",
        "2023-11-16 00:00:09,3,1",
    )
    assert [(r.id, r.at_s) for r in trace.requests] == [("2", 0.0), ("1", 2.0), ("3", 6.0)]
    assert trace.header["first_timestamp"] == "2023-11-16 00:00:03"
    (change,) = trace.header["changes"]
    assert change.startswith("rows earlier than the row above them: 1 (row 2)")


@pytest.mark.parametrize(
    ("row", "start"),
    [
        ("yesterday,1,1", "a.csv: line 3: TIMESTAMP: a time such as"),
        ("2023-13-16 00:00:00,1,1", "a.csv: line 3: TIMESTAMP: a time such as"),
        ("2023-11-16 00:00:01,x,1", "a.csv: line 3: ContextTokens: a whole number"),
        ("2023-11-16 00:00:01,1,-5", "a.csv: line 3: GeneratedTokens: a whole number"),
        ("2023-11-16 00:00:01,1,1.5", "a.csv: line 3: GeneratedTokens: a whole number"),
        ("2023-11-16 00:00:01,1,", "a.csv: line 3: GeneratedTokens: a whole number"),
        ("2023-11-16 00:00:01,1", "a.csv: line 3: 3 columns, not 2"),
        ("2023-11-16 00:00:01Z,1,1", "a.csv: line 3: TIMESTAMP: a time zone on every row"),
    ],
)
def test_a_bad_row_names_file_line_and_column(tmp_path, row: str, start: str):
    """No stamp becomes 0 and no row is left out in silence."""
    assert refusal(tmp_path, "2023-11-16 00:00:00,1,1", row).startswith(start)


def test_a_table_that_csv_cannot_read_is_refused(tmp_path):
    """A field beyond the reader's limit and bytes that are no text are one line each."""
    assert "a.csv: line 2: a CSV row" in refusal(tmp_path, "x" * 200_000)
    (tmp_path / "b.csv").write_bytes(HEAD.encode() + b"\n\xff,1,1")
    with pytest.raises(BadTrace, match="UTF-8 text"):
        import_trace(tmp_path / "b.csv")


def test_an_empty_table_is_refused(tmp_path):
    """A header alone has no requests."""
    assert "no requests" in refusal(tmp_path)


def test_our_own_format_passes_through(tmp_path):
    """Importing an imported trace changes no request and keeps where it came from."""
    first = import_trace(CUT, service_class="interactive")
    write_trace(tmp_path / "t.jsonl.zst", first.header, first.requests)
    again = import_trace(tmp_path / "t.jsonl.zst")
    assert again.trace_hash == first.trace_hash == read_trace(tmp_path / "t.jsonl.zst").trace_hash
    assert again.header["parents"] == [first.header["source"]]
    assert first.requests[0].service_class == "interactive"


def mooncake(tmp_path, *rows: dict):
    path = tmp_path / "m.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return import_trace(path)


def test_mooncake_blocks_are_512_tokens_and_the_last_what_is_left(tmp_path):
    """1100 tokens are blocks of 512, 512 and 76; milliseconds become seconds."""
    trace = mooncake(
        tmp_path,
        {"timestamp": 3000, "input_length": 1100, "output_length": 5, "hash_ids": [0, 1, 2]},
        {"timestamp": 4500, "input_length": 600, "output_length": 6, "hash_ids": [0, 3]},
    )
    assert [b["tokens"] for b in trace.requests[0].prefix] == [512, 512, 76]
    assert [r.at_s for r in trace.requests] == [0.0, 1.5]
    # 5 blocks, of which the second request's first is known: 512 of 1700 tokens
    reuse = describe(trace)["prefix_reuse"]
    assert (reuse["hit_blocks"], reuse["block_hit_ratio"]) == (1, 0.2)
    assert reuse["token_hit_ratio"] == pytest.approx(512 / 1700)


def test_mooncake_rows_with_a_wrong_number_of_blocks_are_refused(tmp_path):
    """One hash per 512 tokens, or the prefix would be another."""
    row = {"timestamp": 0, "input_length": 600, "output_length": 6, "hash_ids": [1]}
    with pytest.raises(BadTrace, match=r"line 1: hash_ids: one hash per 512 tokens"):
        mooncake(tmp_path, row)
    with pytest.raises(BadTrace, match=r"line 1: output_length: a whole number"):
        mooncake(tmp_path, row | {"hash_ids": [1, 2], "output_length": None})


def test_an_unknown_format_lists_the_known_ones(tmp_path):
    """A person sees at once what could be read."""
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(BadInput, match=", ".join(IMPORTS)):
        import_trace(tmp_path / "x.csv")
    with pytest.raises(BadInput, match="--format: one of"):
        import_trace(CUT, "burst")


def test_formats_do_not_claim_each_others_files():
    """Each file is recognised by exactly one module."""
    heads = {
        "azure": CUT.read_bytes()[:400],
        "plain": b'{"at_s": 0, "prompt": "a"}',
        "burstgpt": b"Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n",
        "mooncake": b'{"timestamp":0,"input_length":1,"output_length":1,"hash_ids":[1]}',
    }
    assert set(heads) == set(IMPORTS)
    for name, head in heads.items():
        assert [other for other, module in IMPORTS.items() if module.sniff(head)] == [name]
