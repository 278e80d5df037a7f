"""A reader is told when tokens came together, how closely times are known, who counted."""

from __future__ import annotations

import pytest

near = pytest.approx


def notes_of(record, word):
    return [note for note in record["notes"] if word in note]


def test_chunks_of_one_receive_show_the_buffer(made):
    """Six chunks in two receives, 40 ms apart: 3 to a receive.

    Gaps 0, 0, 40, 0, 0 ms: between receives 40 ms.
    """
    times = [0.5, 0.5, 0.5, 0.54, 0.54, 0.54]
    record = made.record(made.row("a", 0, times, attempt={"receives": 2}))
    per_receive = record["latency"]["chunks_per_receive"]
    assert (per_receive["n"], per_receive["p50"]["value"]) == (1, near(3.0))
    (note,) = notes_of(record, "to a receive")
    assert note.startswith("answers came 3 chunks to a receive at the median")
    assert note.endswith("within 40 ms")


def test_tokens_that_came_alone_need_no_word(made):
    """One chunk a receive; a chunk of two tokens is still one chunk."""
    row = made.row("a", 0, [0.5, 0.6], per_chunk=[2, 2], attempt={"receives": 2})
    record = made.record(row)
    assert record["latency"]["chunks_per_receive"]["p50"]["value"] == near(1.0)
    assert not notes_of(record, "receive")


def test_an_answer_of_one_chunk_counts_and_one_without_receives_does_not(made):
    """1 / 1 = 1; no token-bearing receive: no ratio."""
    rows = [
        made.row("a", 0, [0.5], attempt={"receives": 1}),
        made.row("b", 0, [], end=0.5, attempt={"receives": 0}),
    ]
    assert made.record(*rows)["latency"]["chunks_per_receive"]["n"] == 1


def test_only_the_attempt_that_counted_is_looked_at(made):
    """The first try's chunks are another answer's."""
    row = made.row("a", 0, [0.8, 0.9], attempts=2, sent=0.5,
                   attempt={"attempt": 2, "receives": 2})  # fmt: skip
    row[2]["attempt"] = 2
    first = {"request_id": "a", "attempt": 1, "sent_s": 0.0, "end_s": 0.2, "receives": 1,
             "outcome": "failed"}  # fmt: skip
    record = made.record(row, more_attempts=[first])
    assert record["latency"]["chunks_per_receive"]["p50"]["value"] == near(1.0)


def test_how_closely_the_first_token_is_known(made):
    """It came by 0.5 s and after 0.47 s in one of two answers: 30 ms."""
    rows = [
        made.row("a", 0, [0.5, 0.5], attempt={"receives": 1, "first_token_after_s": 0.47}),
        made.row("b", 0, [0.5, 0.6], attempt={"receives": 2}),
    ]
    record = made.record(*rows)
    bound = record["latency"]["first_token_bound_s"]
    assert (bound["n"], bound["max"]) == (1, near(0.03))
    (note,) = notes_of(record, "first token")
    assert note.startswith("in 1 of 2 answers")
    assert "within 30 ms (p50), 30 ms (p99)" in note


def test_who_counted_is_said_where_it_was_not_the_server(made):
    """Two of three answers: one by its chunks, one by our tokenizer; usage needs no word."""
    rows = [
        made.row(s, 0, [0.5], attempt={"token_count_source": s})
        for s in ("usage", "chunks", "tokenizer")
    ]
    record = made.record(*rows)
    assert [n[:32] for n in notes_of(record, "output tokens")] == [
        "in 1 of 3 answers output tokens ", "in 1 of 3 answers output tokens ",
    ]  # fmt: skip
    assert notes_of(record, "chunks that bore tokens")


def test_retries_count_attempts_and_backoff_by_hand(made):
    """Try 1 sent at 0, refused at 0.2; try 2 sent at 0.5, tokens at 0.8 and 1.0; b needs one.

    attempts 3, requests sent 2: retries 1, amplification 1.5. Of a's 1.0 s: wait 0,
    backoff 0.3, queue and prefill 0.3, decode 0.2, the failed try's 0.2 is residual.
    """
    row = made.row("a", 0, [0.8, 1.0], attempts=2, attempt={"attempt": 2, "sent_s": 0.5})
    row[2]["attempt"] = 2
    first = {"request_id": "a", "attempt": 1, "sent_s": 0.0, "end_s": 0.2, "outcome": "rejected"}
    record = made.record(row, made.row("b", 5, [5.5], **{"class": "other"}), more_attempts=[first])
    counts, phases = record["counts"], record["classes"]["default"]["phases"]
    assert (counts["attempts"], counts["retries"], counts["attempted"]) == (3, 1, 2)
    assert record["goodput"]["amplification"] == near(1.5)
    assert record["latency"]["client_wait_s"]["max"] == 0
    assert record["classes"]["default"]["latency"]["ttft_from_send_s"]["max"] == near(0.3)
    seconds = {name: phases[name]["total_s"] for name in ("client", "backoff", "queue_prefill",
                                                         "decode", "residual")}  # fmt: skip
    assert seconds == {"client": 0, "backoff": near(0.3), "queue_prefill": near(0.3),
                       "decode": near(0.2), "residual": near(0.2)}  # fmt: skip
