"""BurstGPT files come in by column name, and failed requests stay as arrivals."""

from __future__ import annotations

import pytest

from records.errors import BadTrace
from records.traces.importing.formats import import_trace

V1 = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type"
V3 = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type"


def burstgpt(tmp_path, *rows: str):
    path = tmp_path / "b.csv"
    path.write_text("\n".join(rows) + "\n")
    return import_trace(path)


def test_version_1_counts_from_its_first_stamp(tmp_path):
    """Stamps 5, 45, 118 are arrivals 0, 40, 113; what is left out is listed."""
    trace = burstgpt(
        tmp_path,
        V1,
        "5,ChatGPT,472,18,490,Conversation log",
        "45,ChatGPT,1087,230,1317,Conversation log",
        "118,GPT-4,417,276,693,API log",
    )
    assert [r.at_s for r in trace.requests] == [0.0, 40.0, 113.0]
    assert [(r.prompt_tokens, r.max_output_tokens) for r in trace.requests] == [
        (472, 18),
        (1087, 230),
        (417, 276),
    ]
    assert [r.service_class for r in trace.requests] == ["Conversation log"] * 2 + ["API log"]
    assert trace.header["source"]["format"] == "burstgpt"
    assert trace.header["first_timestamp_s"] == 5.0
    assert trace.header["timestamp_resolution_s"] == 1.0
    assert trace.header["changes"] == [
        "column Model is not carried over",
        "column Total tokens is not carried over",
    ]


def test_version_3_inserts_columns_in_second_place(tmp_path):
    """The lengths are those of their columns; a row without a session has none."""
    trace = burstgpt(
        tmp_path,
        V3,
        "19440110.0,1722ac82,43,GPT-4,906,446,1352,Conversation log",
        "19440161.5,,2,ChatGPT,36,29,65,API log",
    )
    assert [(r.at_s, r.prompt_tokens, r.max_output_tokens) for r in trace.requests] == [
        (0.0, 906, 446),
        (51.5, 36, 29),
    ]
    assert [r.session for r in trace.requests] == ["1722ac82", None]
    assert "timestamp_resolution_s" not in trace.header
    assert "column Elapsed time is not carried over" in trace.header["changes"]


def test_failed_requests_arrive_without_an_output_limit_and_are_named(tmp_path):
    """Rows 2 and 3 have no response tokens; all three arrive."""
    trace = burstgpt(
        tmp_path,
        V1,
        "5,ChatGPT,472,18,490,Conversation log",
        "6,ChatGPT,80,0,80,Conversation log",
        "7,ChatGPT,0,0,0,Conversation log",
    )
    assert [r.max_output_tokens for r in trace.requests] == [18, None, None]
    assert any("failed requests" in c and "2 (row 2, 3)" in c for c in trace.header["changes"])


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ("2023-11-16 00:00:00,GPT-4,1,1,2,API log", "Timestamp"),
        ("nan,GPT-4,1,1,2,API log", "Timestamp"),
        ("1,GPT-4,-1,1,0,API log", "Request tokens"),
        ("1,GPT-4,1,many,2,API log", "Response tokens"),
    ],
)
def test_bad_rows_name_line_and_column(tmp_path, row, field):
    """Line 2 is the first row below the names."""
    with pytest.raises(BadTrace, match=f"b.csv: line 2: {field}: "):
        burstgpt(tmp_path, V1, row)
