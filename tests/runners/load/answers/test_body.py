"""However a body is cut and however its events are decoded, the same is read of it."""

from __future__ import annotations

import json
from itertools import pairwise

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runners.load.answers import dialect
from runners.load.answers.answer import Answer, BadEvent
from runners.load.answers.body import BodyReader
from tests.runners.load.answers.test_answer import CHUNKS, delta

PATIENT = settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)


def event(value):
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


def of(choice, finish=None, **fields):
    return {"choices": [{"index": choice, "delta": fields, "finish_reason": finish}]}


def counted(chunk, total):
    return {**chunk, "usage": {"prompt_tokens": 7, "completion_tokens": total}}


def call(index, name="", arguments="", call_id=None):
    function = {"name": name, "arguments": arguments}
    piece = {"id": call_id, "function": function}
    return [piece if index is None else {"index": index, **piece}]


PLAIN = [
    of(0, role="assistant", content=""),
    of(0, content="é"),
    of(0, content="世"),
    of(0, "stop"),
]
WHOLE = {
    "choices": [{"message": {"content": [{"type": "text", "text": "whole"}]}}],
    "usage": {"completion_tokens": 3},
}
TEXTS = {
    "plain": b"".join(map(event, PLAIN)) + b"data: [DONE]\n\n",
    "many usages": b"".join(event(counted(c, i)) for i, c in enumerate(PLAIN)),
    "choices": b"".join(map(event, [
        of(0, content="a"), of(1, content="b"), of(0, "stop", content="c"), of(1, content="d"),
        of(1, "length"), counted({"choices": []}, 4),
    ])),
    "calls": b"".join(map(event, [
        of(0, tool_calls=call(0, "f", "{", "i")), of(1, tool_calls=call(0, "g", "1", "j")),
        of(0, tool_calls=call(0, "", "}")), of(0, tool_calls=call(None, "h", "2", "k")),
        of(0, tool_calls=call(None, "", "3")), of(1, "tool_calls"), of(0, "tool_calls"),
    ])),
    "odd fields": b"id: 7\nretry: 5\ndata\nevent: x\n\n: hi\n\ndata:" + event(PLAIN[1])[5:]
    + b"data: " + event(PLAIN[2])[6:].replace(b": [", b":\ndata: [") + b"data:  [DONE] \n\n",
    "three line ends": event(PLAIN[1]) + event(PLAIN[2])[:-1] + b"\n\n\n" + event(PLAIN[1]),
    "error": event(PLAIN[1]) + b"event: error\ndata: out of\ndata: memory\n\n" + event(PLAIN[2]),
    "after the end": event(PLAIN[1]) + b"data: [DONE]\n\ndata: {nonsense\n\n" + event(PLAIN[2]),
    "garbage": event(PLAIN[1]) + b"data: {nonsense\n\n" + event(PLAIN[2]),
    "no last blank line": event(PLAIN[1]) + event(PLAIN[3])[:-2],
    "a split pair": b'data: {"choices":[{"delta":{"content":"\\ud83d"}}]}\n\n'
    b'data: {"choices":[{"delta":{"content":"\\ude00"}}]}\n\n',
    "whole": b"\n\n  " + json.dumps(WHOLE, indent=2).encode(),
    "an error in a list": b'\n[{"error": {"message": "no"}}]',
    "blanks first": b"\n \n\n\n\n\n\n\n\n\n\n" + event(PLAIN[1]) + event(PLAIN[3]),
}  # fmt: skip
BODIES = {
    f"{name}, {end}": mark + text.replace(b"\n", lf)
    for name, text in TEXTS.items()
    for end, lf in {"LF": b"\n", "CRLF": b"\r\n", "CR": b"\r"}.items()
    for mark in ((b"\xef\xbb\xbf",) if end == "CR" else (b"",))
}


def read(pieces, feed=BodyReader.feed):
    """What is read of the pieces, times left out, and whether it was a bad answer."""
    answer, bad = Answer(), False
    reader = BodyReader(answer)
    try:
        for i, piece in enumerate(pieces):
            feed(reader, piece, float(i))
        reader.end(float(len(pieces)))
    except BadEvent:
        bad = True
    return said(answer, bad)


def said(answer, bad=False):
    output, part = answer.output(), answer.take_part(text=False)
    totals = part and list(part.totals)
    ends = (answer.finish_reason, answer.error, answer.ended, answer.done, bad)
    return answer.counts(), output, totals, ends, answer.has_tokens


@pytest.mark.parametrize("name", BODIES)
def test_byte_by_byte_is_read_as_in_one_piece(name):
    body = BODIES[name]
    assert read([bytes([b]) for b in body]) == read([body])


@PATIENT
@given(st.sampled_from(sorted(BODIES)), st.data())
def test_any_cut_is_read_as_one_piece(name, data):
    body = BODIES[name]
    cuts = data.draw(st.lists(st.integers(0, len(body)), max_size=8))
    edges = [0, *sorted(cuts), len(body)]
    assert read([body[a:b] for a, b in pairwise(edges)]) == read([body])


@PATIENT
@given(st.lists(st.sampled_from([
    b"data: ", b"\n", b"\n\n", b"\r", b"{}", b'{"choices":[{"text":"a"}]}', b"[DONE]", b": c",
    b"event: error", b"x", b" ",
]), max_size=12), st.integers(1, 9))  # fmt: skip
def test_any_bytes_are_read_the_same_in_any_pieces(tokens, size):
    body = b"data: {}\n\n" + b"".join(tokens)
    pieces = [body[i : i + size] for i in range(0, len(body), size)]
    assert read(pieces) == read([body])


@PATIENT
@given(CHUNKS, st.data())
def test_the_typed_decoder_and_the_general_one_read_the_same(chunk, data):
    """Also of what is no JSON any more: bytes changed, put in or left out anywhere."""
    body = json.dumps(chunk, ensure_ascii=data.draw(st.booleans())).encode("utf-8", "replace")
    for at in data.draw(st.lists(st.integers(0, len(body)), max_size=2)):
        new = data.draw(st.sampled_from([b"", b"\xff", b"\\ud800", b'"', b"1e400", b"\x00", b"}"]))
        body = body[:at] + new + body[at + data.draw(st.integers(0, 1)) :]
    assert decoded(body, dialect.typed) == decoded(body, None)


def decoded(body, decoder):
    """What an answer says after this event, by the typed decoder first or without it."""
    from runners.load.answers import answer as answers

    answer, bad, before = Answer(), False, (answers.typed, dialect.typed)
    try:
        answers.typed = dialect.typed = decoder or refuse
        answer.event(body, 1.0)
    except BadEvent:
        bad = True
    finally:
        answers.typed, dialect.typed = before
    return said(answer, bad)


def refuse(data):
    raise UnicodeDecodeError("utf-8", data, 0, 0, "not by this decoder")


def test_a_huge_event_in_many_pieces_takes_time_as_its_length():
    """8 MB in pieces of 512 bytes: joined at each piece it would move 64 GB."""
    body = event(delta(content="x" * (8 << 20)))
    answer = Answer()
    reader = BodyReader(answer)
    for i in range(0, len(body), 512):
        reader.feed(body[i : i + 512], 1.0)
    assert answer.chunk_count == 1
    assert len(answer.output()["text"]) == 8 << 20


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (b"<html><title>Sign in</title>", "Sign in"),
        (b"\x00\x01garbage", "garbage"),
        (b"[1, 2, 3]", r"b'\[1, 2, 3\]'"),
        (b"data: {nonsense\n\n", "{nonsense"),
        (b"data: [1]\n\n", r"b'\[1\]'"),
        (b'{"detail": "not here"}', "not here"),
        (b'{"choices": []}\n{"choices": []}', "choices"),
    ],
)
def test_what_is_no_answer_is_refused_and_shown(body, shown):
    with pytest.raises(BadEvent, match=shown):
        feed_all(body)


def feed_all(body):
    answer = Answer()
    reader = BodyReader(answer)
    reader.feed(body, 1.0)
    reader.end(2.0)
    return answer


def test_a_long_garbage_is_shown_by_its_first_bytes():
    with pytest.raises(BadEvent) as caught:
        BodyReader(Answer()).feed(b"data: {" + b"z" * 5000 + b"\n\n", 1.0)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "body",
    [
        b'data: {"error": {"message": "no memory"}}\n\n',
        b'data: {"error": "no memory"}\n\n',
        b'data: {"object": "error", "message": "no memory", "code": 500}\n\n',
        b'data: {"error": {"code": 500}, "message": "no memory"}\n\n',
        b"event: error\ndata: no memory\n\n",
        b'event: error\ndata: {"message": "no memory"}\n\n',
        b'event: error\ndata: {"error": {"message": "no memory"}}\n\n',
        b'{"error": {"message": "no memory"}}',
        b'{"object": "error", "message": "no memory"}',
        b'[{"error": {"message": "no memory"}}]',
        b'data: {"error": {"message": "no memory"}, "choices": [{"delta": {"content": "a"}}]}\n\n',
    ],
)
def test_an_error_in_any_form_is_its_text(body):
    answer = feed_all(body)
    assert answer.error == "no memory"
    assert not answer.has_tokens


def test_a_receive_is_what_shares_a_time():
    """Role at 1; a and b at 2 in one piece; c at 3 in two pieces of one time: 2 receives."""
    answer = Answer()
    reader = BodyReader(answer)
    reader.feed(event(of(0, role="assistant")), 1.0)
    reader.feed(event(of(0, content="a")) + event(of(0, content="b")), 2.0)
    c = event(of(0, content="c"))
    reader.feed(c[:20], 3.0)
    reader.feed(c[20:], 3.0)
    assert (answer.receives, answer.chunk_count, answer.first_token_after_s) == (2, 3, 1.0)


def test_a_first_token_that_came_alone_is_not_bounded():
    answer = Answer()
    reader = BodyReader(answer)
    reader.feed(event(of(0, role="assistant")) + event(of(0, content="a")), 1.0)
    reader.feed(event(of(0, content="b")) + event(of(0, content="c")), 2.0)
    assert (answer.receives, answer.first_token_after_s) == (2, None)


def test_an_event_that_began_in_an_earlier_receive_is_bounded_by_it():
    """The first half at 1, the rest with a second token at 2: the first came after 1."""
    answer = Answer()
    reader = BodyReader(answer)
    both = event(of(0, content="a")) + event(of(0, content="b"))
    reader.feed(both[:30], 1.0)
    reader.feed(both[30:], 2.0)
    assert (answer.first_token_s, answer.first_token_after_s) == (2.0, 1.0)


def test_parts_are_handed_out_as_they_fill_and_make_up_the_answer():
    """600 tokens: parts of 257, 257 and the rest of 86."""
    answer, parts = Answer(), []
    answer.on_part = lambda: parts.append(answer.take_part())
    reader = BodyReader(answer)
    for i in range(600):
        reader.feed(event(of(0, content=f"{i} ", reasoning="r")), i / 1000)
    rest = answer.take_part(text=False)
    assert [len(p.times_us) for p in (*parts, rest)] == [257, 257, 86]
    times = [t for p in (*parts, rest) for t in p.times_us]
    assert times == [1000 * i for i in range(600)]
    text = "".join(p.text for p in parts) + answer.output()["text"]
    assert text == "".join(f"{i} " for i in range(600))
    assert "".join(p.reasoning for p in parts) + answer.output()["reasoning"] == "r" * 600
    assert answer.counts()["output_tokens"] == 600


def test_half_a_pair_waits_for_the_other_half_over_a_part():
    answer = Answer()
    for piece, at_s in (("x\\ud83d", 1.0), ("\\ude00y", 2.0)):
        answer.event(b'{"choices":[{"delta":{"content":"%s"}}]}' % piece.encode(), at_s)
        if at_s == 1.0:
            assert answer.take_part().text == "x"
    assert answer.take_part().text == "\U0001f600y"


@pytest.mark.parametrize("capture", ["hashes", "none"])
def test_text_that_is_not_captured_is_in_no_part(capture):
    answer = Answer(capture)
    answer.event(orjson.dumps(of(0, content="a")), 1.0)
    assert answer.take_part()[2:] == ("", "")
    assert answer.output()["text"] == ("a" if capture == "hashes" else None)
