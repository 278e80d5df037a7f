"""What is understood many receives at a time is what it would be one by one."""

from __future__ import annotations

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runners.load.attempt import Attempt, Broken
from runners.load.transports.fast import exchange
from runners.load.transports.fast.exchange import Exchange
from tests.runners.load.fast.conftest import END, HEAD, chunked

USAGE = {"prompt_tokens": 3, "completion_tokens": 2}


def said(index=0, finish=None, usage=None, **delta):
    body = {"choices": [{"index": index, "delta": delta, "finish_reason": finish}]}
    return b"data: " + json.dumps(body | ({"usage": usage} if usage else {})).encode() + b"\n\n"


ORDINARY = [said(content=text) for text in ("a", " token", "ü世", '"\\n}', "")]
ODD = [
    said(reasoning_content="hm"), said(content="x", reasoning_content="y"), said(refusal="no"),
    said(tool_calls=[{"index": 0, "function": {"name": "f", "arguments": "{}"}}]),
    said(index=1, content="other"), said(content="z", usage=USAGE),
    said(content="q", finish="stop"), said(finish="length"),
    said(role="assistant", content=""), b": ping\n\n",
    b'data: {"choices": [], "usage": {"completion_tokens": 4}}\n\n', b"data: {}\n\n",
    b'event: message\ndata: {"choices": [{"index": 0, "delta": {"content": "e"}}]}\n\n',
    b'data: {"choices": [{"index": 0, "delta": {"content": 5}}]}\n\n',
    b'data: {"choices": [{"index": 0, "delta": {"content": "\\ud83d"}}]}\n\n',
    b'data: {"choices": [{"index": 0, "text": "plain"}]}\n\n',
]  # fmt: skip
ENDS = [
    b"data: [DONE]\n\n", b'data: {"error": {"message": "engine died"}}\n\n',
    b"data: {nonsense}\n\n", b'event: error\ndata: {"message": "no"}\n\n', b"data: \xff}\n\n",
    said(finish="abort"),
]  # fmt: skip

events = st.lists(
    st.one_of(*[st.sampled_from(ORDINARY)] * 6, st.sampled_from(ODD), st.sampled_from(ENDS)),
    min_size=3,
    max_size=80,
)


class Line:
    """Remembers what its tail gets; open until closed."""

    def __init__(self):
        self.rest, self.closed = [], False

    def take(self, data, at_s):
        self.rest.append((data, at_s))

    def close(self):
        self.closed = True


class Lines:
    def __init__(self):
        self.reader = None

    def hold(self, waiting):
        return None

    def give_back(self, line, reader):
        self.reader = reader


class Future:
    def __init__(self):
        self.ended = None

    def done(self):
        return self.ended is not None

    def set_result(self, value):
        self.ended = "answer"

    def set_exception(self, error):
        assert isinstance(error, Broken), error
        self.ended = f"{error.kind}: {error}"


def read(receives, settled):
    """All that one attempt knows after these receives, a hundredth of a second apart."""
    attempt, lines, future, line = Attempt("r", 1), Lines(), Future(), Line()
    under = Exchange(attempt, (), lines, future, lambda: 0.0, lambda text: text)
    under.line, attempt.sent_s = line, 0.0
    parts = []
    attempt.on_part = lambda: parts.append(attempt.answer.take_part())
    for number, data in enumerate(receives):
        at_s = (number + 1) / 100
        # As the connection has it: after the end, the tail's.
        (under.take if under.line is line else line.take)(data, at_s)
        if number in settled:
            under.settle()
    under.settle()
    attempt.settle(None, None, 9.0)
    last, row = attempt.answer.take_part(text=False), attempt.row()
    return row, attempt.output("full"), parts, last, future.ended, line.rest, line.closed


def test_many_at_once_are_what_they_are_one_by_one(monkeypatch):
    @settings(
        max_examples=300, deadline=None, derandomize=True,
        # Only slow where the machine is busy.
        suppress_health_check=[HealthCheck.too_slow],
    )  # fmt: skip
    @given(
        events=events,
        together=st.sets(st.integers(0, 80), max_size=12),
        settled=st.sets(st.integers(0, 80), max_size=12),
    )
    def same(events, together, settled):
        receives = [HEAD + chunked(said(role="assistant"))]
        for number, event in enumerate(events):
            if number in together:
                receives[-1] += chunked(event)
            else:
                receives.append(chunked(event))
        receives[-1] += END
        many = read(receives, settled)
        with monkeypatch.context() as patch:
            patch.setattr(exchange, "_MIDDLE", b"no receive ends like this")
            assert many == read(receives, set())

    same()


def test_the_middle_of_a_stream_is_held_until_it_is_settled():
    attempt, line = Attempt("r", 1), Line()
    under = Exchange(attempt, (), Lines(), Future(), lambda: 0.0, str)
    under.line = line
    for number, data in enumerate([HEAD, *[chunked(said(content="a"))] * 12]):
        under.take(data, float(number))
    # Two receives with tokens come first; ten wait.
    assert attempt.answer.chunk_count == 2
    under.settle()
    assert attempt.answer.chunk_count == 12
    assert attempt.answer.receives == 12
    assert attempt.answer.last_token_s == 12.0
    assert attempt.answer.output()["text"] == "a" * 12
