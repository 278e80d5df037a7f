"""What becomes of an attempt, when it ended, and what its rows say."""

from __future__ import annotations

import hashlib

import orjson
import pytest

from runners.load.attempt import Attempt, Broken
from tests.runners.load.answers.test_answer import delta


def attempt_of(*chunks, status=200, capture="full"):
    """An attempt sent at 0.1 s, head at 0.2 s, one chunk a second from 1 s."""
    attempt = Attempt("r", 1, capture)
    attempt.sent_s, attempt.first_byte_s, attempt.http_status = 0.1, 0.2, status
    for i, chunk in enumerate(chunks):
        attempt.answer.event(orjson.dumps(chunk), 1.0 + i)
    return attempt


TOKEN = delta(content="a")
STOP = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
ABORT = {"choices": [{"index": 0, "delta": {}, "finish_reason": "abort"}]}
OTHER = {"choices": [{"index": 1, "delta": {"content": "b"}, "finish_reason": None}]}
RESET = Broken("connection_reset", "reset")


@pytest.mark.parametrize(
    ("chunks", "status", "cut", "broken", "outcome"),
    [
        ([], 429, None, None, ("rejected", "http_4xx")),
        ([], 503, "timed_out", None, ("rejected", "http_5xx")),
        ([], 404, None, None, ("failed", "http_4xx")),
        ([], 307, None, None, ("failed", "bad_response")),
        ([TOKEN, {"error": "no"}], 200, "timed_out", None, ("failed", "stream_error")),
        ([TOKEN, ABORT], 200, None, None, ("failed", "stream_error")),
        ([TOKEN, STOP], 200, "timed_out", None, ("completed", None)),
        ([TOKEN, STOP], 200, None, RESET, ("completed", None)),
        ([TOKEN], 200, "cancelled", RESET, ("cancelled", None)),
        ([TOKEN], 200, "timed_out", None, ("timed_out", "timeout")),
        ([TOKEN], 200, "censored", None, ("censored", None)),
        ([TOKEN], 200, None, RESET, ("failed", "connection_reset")),
        ([TOKEN], 200, None, None, ("failed", "truncated")),
        ([TOKEN, OTHER, STOP], 200, None, None, ("failed", "truncated")),
        ([STOP], 200, None, None, ("failed", "empty_response")),
        ([], 200, None, None, ("failed", "empty_response")),
    ],
)
def test_the_first_that_holds_decides(chunks, status, cut, broken, outcome):
    attempt = attempt_of(*chunks, status=status)
    attempt.settle(cut, broken, 9.0)
    assert (attempt.outcome, attempt.error_kind) == outcome


@pytest.mark.parametrize(
    ("cut", "limit_s", "end_s"),
    [("timed_out", 5.0, 5.0), (None, 5.0, 5.4), ("censored", None, 5.4)],
)
def test_what_our_side_ended_ends_at_its_limit_however_late_we_were(cut, limit_s, end_s):
    attempt = attempt_of(TOKEN)
    attempt.limit_s = limit_s
    attempt.settle(cut, None, 5.4)
    assert attempt.row()["end_s"] == end_s


def test_a_first_token_that_shared_its_receive_came_after_the_stamp_before():
    """Two tokens at 1.0 and nothing of the body before: after the head, 0.2."""
    attempt = attempt_of(TOKEN)
    attempt.answer.event(orjson.dumps(TOKEN), 1.0)
    attempt.stamp_source = "kernel"
    attempt.settle(None, None, 9.0)
    row = attempt.row()
    assert (row["receives"], row["first_token_after_s"]) == (1, 0.2)
    assert row["stamp_source"] == "kernel"
    # The head in the same receive: after the sending.
    attempt.first_byte_s = 1.0
    assert attempt.row()["first_token_after_s"] == 0.1


def test_a_first_token_alone_in_its_receive_has_no_bound():
    row = attempt_of(TOKEN, TOKEN).row()
    assert (row["receives"], row["first_token_after_s"]) == (2, None)


def test_the_hash_is_over_text_reasoning_and_tool_calls_and_needs_no_text_kept():
    kept = {"reasoning": None, "text": "a", "tool_calls": None}
    digest = hashlib.sha256(orjson.dumps(kept)).hexdigest()
    full = attempt_of(TOKEN).output("full")
    assert full == {"request_id": "r", "attempt": 1, **kept, "sha256": digest}
    hashed = attempt_of(TOKEN, capture="hashes").output("hashes")
    assert hashed == {"request_id": "r", "attempt": 1, **dict.fromkeys(kept), "sha256": digest}
    assert attempt_of(TOKEN, capture="none").output("none") is None


def test_a_line_after_parts_has_the_rest_and_their_number():
    attempt = attempt_of(TOKEN)
    attempt.answer.take_part()
    attempt.answer.event(orjson.dumps(delta(content="b")), 2.0)
    line = attempt.output("full")
    assert (line["text"], line["parts"], "sha256" in line) == ("b", 1, False)


def test_hashes_are_whole_however_many_parts_of_times_went_ahead():
    attempt = attempt_of(TOKEN, capture="hashes")
    assert len(attempt.answer.take_part().times_us) == 1
    attempt.answer.event(orjson.dumps(delta(content="b")), 2.0)
    assert (
        attempt.output("hashes")["sha256"]
        == attempt_of(delta(content="ab"), capture="hashes").output("hashes")["sha256"]
    )


def test_an_open_attempt_of_256_tokens_takes_less_than_8_kb():
    """Times 8 bytes each, text 5 and what the objects themselves take."""
    import tracemalloc

    from runners.load.answers.body import BodyReader

    event = b"data: " + orjson.dumps(delta(content=" word")) + b"\n\n"
    kept = []
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(20):
            attempt = Attempt("r", 1)
            reader = BodyReader(attempt.answer)
            for i in range(256):
                reader.feed(event, i / 1000)
            kept.append((attempt, reader))
        each = (tracemalloc.get_traced_memory()[0] - before) / 20
    finally:
        tracemalloc.stop()
    assert each < 8192
