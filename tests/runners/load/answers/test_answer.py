"""An answer is read the same whatever a server puts into it, and never breaks the reader."""

from __future__ import annotations

import contextlib
import json

import orjson
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from records.evidence.tables import table_of
from runners.load.answers.answer import Answer, BadEvent
from runners.load.answers.body import BodyReader
from runners.load.attempt import Attempt

# The names that the reader looks at, so that random values land where they matter.
KEYS = st.sampled_from([
    "choices", "delta", "message", "content", "text", "reasoning", "reasoning_content", "refusal",
    "tool_calls", "function_call", "function", "name", "arguments", "index", "id", "usage",
    "completion_tokens", "prompt_tokens", "completion_tokens_details", "reasoning_tokens",
    "prompt_tokens_details", "cached_tokens", "finish_reason", "error", "object",
])  # fmt: skip
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
CHOICES = st.lists(st.dictionaries(KEYS, VALUES, max_size=4), max_size=2)
CHUNKS = st.dictionaries(KEYS, VALUES, max_size=4) | st.fixed_dictionaries(
    {"choices": CHOICES, "usage": st.dictionaries(KEYS, VALUES, max_size=4)}
)


# A busy machine, not a bad strategy, makes the drawing of values slow.
PATIENT = settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)


@PATIENT
@given(st.lists(CHUNKS, max_size=5))
def test_no_chunk_breaks_the_reader_or_the_tables(chunks):
    attempt = Attempt("r", 1)
    attempt.sent_s = 0.0
    for i, chunk in enumerate(chunks):
        with contextlib.suppress(BadEvent):
            attempt.answer.event(json.dumps(chunk).encode(), float(i))
    with contextlib.suppress(BadEvent):
        attempt.answer.whole(json.dumps(chunks[:1]).encode())
    attempt.settle(None, None, 9.0)
    lines = [attempt.row(), attempt.output("full") or {}]
    again = [orjson.loads(orjson.dumps(line)) for line in lines]
    table = table_of("attempts", [again[0]])
    assert isinstance(table, pa.Table)


@given(st.binary(max_size=200), st.integers(1, 50))
def test_no_bytes_break_the_reader(data, size):
    answer = Answer()
    reader = BodyReader(answer)
    with contextlib.suppress(BadEvent):
        for i in range(0, len(data), size):
            reader.feed(data[i : i + size], float(i))
        reader.end(1.0)
    assert answer.first_token_s is None


def read(*events):
    answer = Answer()
    for i, event in enumerate(events):
        answer.event(json.dumps(event).encode(), float(i))
    return answer


def delta(**values):
    return {"choices": [{"index": 0, "delta": values}]}


def test_running_usage_is_handed_out_as_totals_and_an_empty_delta_has_none_of_its_own():
    """Totals 2, 5, usage alone 6, 9: the chunks' are 2, 5, 9, so the third counts 4."""
    only = {"choices": [], "usage": {"completion_tokens": 6}}
    answer = read(
        {**delta(content="a"), "usage": {"completion_tokens": 2}},
        {**delta(content="b"), "usage": {"completion_tokens": 5}},
        only,
        {**delta(content="c"), "usage": {"completion_tokens": 9}},
    )
    part = answer.take_part()
    assert (list(part.times_us), list(part.totals)) == ([0, 1_000_000, 3_000_000], [2, 5, 9])
    assert answer.take_part() is None


def test_a_chunk_without_a_running_total_has_minus_one():
    chunks = [delta(content="a"), {**delta(content="b"), "usage": {"completion_tokens": 2}}]
    assert list(read(*chunks, delta(content="c")).take_part().totals) == [-1, 2, -1]


def test_a_tool_calls_pieces_are_one_call_and_two_calls_are_two():
    def piece(index, **function):
        return delta(tool_calls=[{"index": index, "id": f"t{index}", "function": function}])

    answer = read(
        piece(0, name="look", arguments=""), piece(0, arguments='{"a":'), piece(0, arguments="1}"),
        piece(1, name="send", arguments="{}"),
    )  # fmt: skip
    assert answer.counts()["tool_calls"] == 2
    assert answer.output()["tool_calls"] == [
        {"id": "t0", "name": "look", "arguments": '{"a":1}'},
        {"id": "t1", "name": "send", "arguments": "{}"},
    ]
    assert answer.first_token_s == 0.0
    assert answer.first_visible_token_s is None


def test_without_any_count_the_chunks_are_counted_and_reasoning_with_them():
    answer = read(delta(reasoning="x"), delta(reasoning_content="y"), delta(content="z"))
    counts = answer.counts()
    assert (counts["output_tokens"], counts["token_count_source"]) == (3, "chunks")
    assert counts["reasoning_tokens"] == 2
    assert answer.output()["reasoning"] == "xy"


STOP = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
A, B = delta(content="a"), delta(content="b")


def counted(chunk, total, prompt=None):
    return {**chunk, "usage": {"completion_tokens": total, "prompt_tokens": prompt}}


@pytest.mark.parametrize(
    ("chunks", "tokens", "source"),
    [
        ([A, B, STOP, counted({"choices": []}, 7)], 7, "usage"),
        ([A, B, counted(STOP, 7)], 7, "usage"),
        ([counted(A, 3), counted(B, 7), STOP], 7, "usage"),
        # Counts so far, of a stream that broke.
        ([counted(A, 3), counted(B, 7)], 7, "stream"),
        ([counted(A, 3), counted(delta(content=""), 5)], 5, "stream"),
        # Null leaves the count as it was; the last one covers every token.
        ([counted(A, 3), counted(B, 7), {**STOP, "usage": None}], 7, "usage"),
        ([A, B, STOP], 2, "chunks"),
        ([A, B], 2, "chunks"),
        # Not one of these can be the number of what was seen.
        ([A, B, STOP, counted({"choices": []}, 0)], 2, "chunks"),
        ([counted(delta(role="assistant"), 0), A, B, STOP], 2, "chunks"),
        ([counted(A, 1), B, B, STOP], 3, "chunks"),
        # A count of the first chunks only, yet more than there are chunks: so many at least.
        ([counted(A, 8), B, STOP], 8, "stream"),
        # Each choice has its own running count; the one that stands alone is of all.
        ([counted(A, 2), counted(B, 1)], 2, "chunks"),
        ([counted(A, 2), counted(B, 1), STOP], 2, "chunks"),
        ([counted(A, 2), counted(B, 1), STOP, counted({"choices": []}, 5)], 5, "usage"),
        ([counted({"choices": []}, None, 9), A, STOP], 1, "chunks"),
        ([], None, None),
    ],
)
def test_who_counted_the_tokens(chunks, tokens, source):
    counts = read(*chunks).counts()
    assert (counts["output_tokens"], counts["token_count_source"]) == (tokens, source)


def test_prompt_tokens_alone_are_kept():
    assert read(counted({"choices": []}, None, 9), A).counts()["prompt_tokens"] == 9


def test_an_answer_of_several_choices_ends_with_the_last_of_them():
    def part(index, finish=None, **fields):
        return {"choices": [{"index": index, "delta": fields, "finish_reason": finish}]}

    both = [part(0, content="a"), part(1, content="c"), part(0, "stop", content="b")]
    assert not read(*both).ended
    answer = read(*both, part(1, "length", content="d"))
    assert answer.ended
    assert answer.finish_reason == "stop"
    assert answer.output()["text"] == "ab\ncd"
    assert answer.chunk_count == 4


def test_calls_of_several_choices_and_without_index_are_told_apart():
    def piece(choice, **call):
        return {"choices": [{"index": choice, "delta": {"tool_calls": [call]}}]}

    answer = read(
        piece(0, index=0, id="x", function={"name": "f"}),
        piece(1, index=0, id="y", function={"name": "g"}),
        piece(0, index=0, function={"arguments": "1"}),
        piece(1, id="z", function={"name": "h"}),
        piece(1, function={"arguments": "2"}),
    )
    assert answer.output()["tool_calls"] == [
        {"id": "x", "name": "f", "arguments": "1"},
        {"id": "y", "name": "g", "arguments": ""},
        {"id": "z", "name": "h", "arguments": "2"},
    ]
    assert answer.counts()["tool_calls"] == 3


@pytest.mark.parametrize(
    ("fields", "text", "reasoning"),
    [
        ({"content": [{"type": "text", "text": "a"}, {"text": "b"}]}, "ab", None),
        ({"content": [{"thinking": [{"text": "t"}]}, {"text": "b"}]}, "b", "t"),
        ({"refusal": "no"}, "no", None),
        ({"content": "a", "refusal": "no"}, "ano", None),
        ({"reasoning_details": [{"text": "t"}, {"summary": "s"}]}, None, "ts"),
        ({"reasoning": "t", "reasoning_details": [{"text": "t"}]}, None, "t"),
        ({"reasoning_content": "t", "reasoning": "t"}, None, "t"),
    ],
)
def test_every_channel_is_heard_once(fields, text, reasoning):
    output = read(delta(**fields)).output()
    assert (output["text"], output["reasoning"]) == (text, reasoning)


@pytest.mark.parametrize(
    "chunk",
    [
        delta(role="assistant", content=""),
        {"choices": []},
        {"choices": [{"index": 0, "delta": {"content": ""}, "logprobs": {"content": []}}]},
        {"choices": [{"index": 0, "content_filter_results": {}}]},
        {"choices": [{"index": 0, "text": ""}]},
        delta(tool_calls=[]),
        delta(tool_calls=[{"index": 0, "id": "x", "function": {"name": ""}}]),
    ],
)
def test_what_generates_nothing_bears_no_token(chunk):
    answer = read(chunk)
    assert not answer.has_tokens
    assert answer.first_token_s is None


def test_a_legacy_function_call_is_a_tool_call():
    pieces = [{"name": "f", "arguments": ""}, {"arguments": "1"}]
    answer = read(*(delta(function_call=p) for p in pieces))
    assert answer.output()["tool_calls"] == [{"id": "", "name": "f", "arguments": "1"}]
