"""A trace line is either right in every field or refused by file, line and field."""

from __future__ import annotations

import json

import pytest

from records.errors import BadTrace
from records.traces.reading import parse_trace
from records.traces.schema import FIELDS

GOOD = {"at_s": 0, "prompt": "a", "max_output_tokens": 4}


def refusal(*lines: object) -> str:
    """What is said about a file of these lines (JSON values, or text as it is)."""
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    with pytest.raises(BadTrace) as caught:
        parse_trace(text.encode(), "t.jsonl")
    return str(caught.value)


def test_a_line_that_is_not_json_names_its_line():
    """The second line is broken and is called line 2."""
    assert refusal(GOOD, "{oops").startswith("t.jsonl: line 2: a JSON object, not {oops")


def test_a_line_that_is_not_an_object_is_refused():
    """A list is JSON, but not a request."""
    assert refusal([1, 2]) == "t.jsonl: line 1: a JSON object, not [1, 2]"


def test_time_never_goes_back():
    """An arrival before the line above names both moments."""
    assert refusal({**GOOD, "at_s": 5}, {**GOOD, "at_s": 1}) == (
        "t.jsonl: line 2: at_s: a number of seconds, never before the line above (5 s), not 1"
    )


def test_two_requests_may_arrive_at_once():
    """Never descending is not always ascending."""
    twice = "\n".join([json.dumps(GOOD)] * 2)
    assert len(parse_trace(twice.encode(), "t").requests) == 2


def test_the_line_number_counts_header_and_empty_lines():
    """A person finds the line with an editor."""
    message = refusal({"schema": "impakt.trace/1"}, "", {"prompt": "a"})
    assert message.startswith("t.jsonl: line 3: at_s: ")


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_are_not_finite_name_their_field(text: str):
    """NaN is not JSON; the field that holds it is named all the same."""
    message = refusal(f'{{"at_s": {text}, "prompt": "a"}}')
    assert message.startswith("t.jsonl: line 1: at_s: a finite number, not ")


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("at_s", -1, "a number of seconds from 0"),
        ("at_s", True, "a number of seconds from 0"),
        ("at_s", "0", "a number of seconds from 0"),
        ("at_s", 1.7e9, "a number of seconds from 0 to 1e9"),
        ("prompt_tokens", -3, "a whole number from 0"),
        ("max_output_tokens", "many", "a whole number from 0"),
        ("max_output_tokens", 1.5, "a whole number from 0"),
        ("max_output_tokens", False, "a whole number from 0"),
        ("max_output_tokens", 2**31, "a whole number from 0"),
        ("prompt", ["a"], "text"),
        ("messages", [], "a list of messages"),
        ("messages", [{"content": "a"}], "a list of messages"),
        ("class", "", "a name of 1 to 200"),
        ("class", "a\nb", "a name of 1 to 200"),
        ("id", "näme", "ASCII"),
        ("id", "a#2", "does not end in #"),
        ("difficult", 1, "true or false"),
        ("turn", -1, "a whole number from 0"),
        ("think_s", -0.5, "a number of seconds"),
        ("timeout_s", 0, "a number of seconds above 0"),
        ("tools", {}, "a list of JSON objects"),
        ("sampling", [], "a JSON object"),
        ("prefix", [{"id": "a"}], 'a list of {"id", "tokens"} blocks'),
        ("prefix", [{"id": "a", "tokens": -1}], "a whole number from 0"),
    ],
)
def test_a_wrong_value_names_its_field_and_what_was_expected(field, value, expected):
    """Every rule of the table answers with the field's own name."""
    line = {"at_s": 0, "prompt_tokens": 8, field: value}
    if field in ("prompt", "messages"):
        del line["prompt_tokens"]
    message = refusal(line)
    assert message.startswith(f"t.jsonl: line 1: {field}: ")
    assert expected in message
    assert "\n" not in message


@pytest.mark.parametrize(
    "line",
    [
        {"at_s": 0},
        {"at_s": 0, "prompt": "a", "prompt_tokens": 3},
        {"at_s": 0, "prompt": "a", "messages": [{"role": "user", "content": "a"}]},
    ],
)
def test_a_request_has_exactly_one_prompt(line: dict):
    """None and two of prompt, messages, prompt_tokens are both refused."""
    assert "exactly one of prompt, messages, prompt_tokens" in refusal(line)


def test_prefix_belongs_to_a_length_and_fits_in_it():
    """Shared blocks are part of prompt_tokens, not beside them."""
    block = [{"id": "a", "tokens": 9}]
    assert ": prefix: " in refusal({"at_s": 0, "prompt": "a", "prefix": block})
    assert "not 9" in refusal({"at_s": 0, "prompt_tokens": 8, "prefix": block})


def test_an_unknown_key_is_refused_by_name():
    """A misspelt field would silently change the demand."""
    message = refusal({**GOOD, "max_tokens": 4})
    assert message.startswith("t.jsonl: line 1: max_tokens: not a field")
    assert all(name in message for name in FIELDS)


def test_an_id_stands_once():
    """The second line with an id names the first."""
    message = refusal({**GOOD, "id": "a"}, {**GOOD, "id": "a"})
    assert message == "t.jsonl: line 2: id: a new id; 'a' already stands on line 1"


def test_a_default_id_can_collide_and_is_then_refused():
    """Line 2 is called 2, which line 1 already took."""
    assert "line 2: id: " in refusal({**GOOD, "id": "2"}, GOOD)


@pytest.mark.parametrize("data", [b"", b"\n\n", b'{"schema": "impakt.trace/1"}\n'])
def test_a_file_without_requests_is_refused(data: bytes):
    """Empty, blank and header-only files have nothing to replay."""
    with pytest.raises(BadTrace, match="no requests"):
        parse_trace(data, "t.jsonl")


def test_another_schema_is_refused():
    """A header of a later version is not read as if it were ours."""
    assert "line 1: schema: 'impakt.trace/1'" in refusal({"schema": "impakt.trace/9"}, GOOD)


def test_null_means_absent():
    """A null field is the same as a field left out."""
    data = json.dumps({**GOOD, "case": None, "messages": None}).encode()
    assert (
        parse_trace(data, "t").trace_hash == parse_trace(json.dumps(GOOD).encode(), "t").trace_hash
    )


def test_every_field_is_read():
    """A line with every field comes back as it was."""
    line = {
        "id": "r1", "at_s": 1.5, "class": "interactive", "prompt_tokens": 8,
        "prefix": [{"id": "p", "tokens": 4}], "max_output_tokens": 3, "case": "c",
        "difficult": True, "workflow": "w", "session": "s", "turn": 2, "think_s": 0.5,
        "tool_s": 0.25, "cancel_after_s": 4.0, "deadline_s": 5.0, "timeout_s": 6.0,
        "tools": [{"type": "function"}],        "sampling": {"temperature": 0},
    }  # fmt: skip
    (request,) = parse_trace(json.dumps(line).encode(), "t").requests
    assert request.line() == line
    assert set(FIELDS) - set(line) == {"prompt", "messages"}
    assert (request.service_class, request.workflow_id) == ("interactive", "w")


def test_defaults():
    """Without an id a request is called by its number, without a class `default`."""
    (request,) = parse_trace(json.dumps(GOOD).encode(), "t").requests
    assert (request.id, request.service_class, request.workflow_id) == ("1", "default", "1")


def test_whole_numbers_serve_as_names():
    """Session 7 and session "7" are one session."""
    (request,) = parse_trace(json.dumps({**GOOD, "session": 7}).encode(), "t").requests
    assert request.session == "7"


def test_messages_stay_one_short_line_whatever_the_input():
    """A giant key, control characters and towers of brackets do not flood a terminal."""
    deep: object = 1
    for _ in range(500):
        deep = {"a": deep}
    for line in ({**GOOD, "k" * 10_000: 1}, {**GOOD, "\x1b[31m": 1}, {**GOOD, "sampling": deep}):
        message = refusal(line)
        assert message.isprintable()
        assert len(message) < 400
    assert "sampling: at most 64 levels of nesting" in refusal({**GOOD, "sampling": deep})


@pytest.mark.parametrize("key", ["changes", "parents", "cuts"])
def test_the_lists_of_a_header_are_lists(key: str):
    """What happened to a trace is appended to; a number cannot be."""
    header = {"schema": "impakt.trace/1", key: 1}
    assert refusal(header, GOOD) == f"t.jsonl: line 1: {key}: a list, not 1"
