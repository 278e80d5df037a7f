"""Events come out of a byte stream the same however its bytes are cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.load.answers.sse import MAX_LINE, EventParser, LineTooLong

STREAM = (
    b"\xef\xbb\xbf: ping\r\n\r\n"
    b'event: message\r\nid: 7\r\ndata:{"a":\r\ndata: "\xc3\xa9\xe4\xb8\x96"}\r\n\r\n'
    b"data: two\n\ndata:three\r\rretry: 5\n\ndata\n\n\n\ndata:  x\n\ndata: last"
)
EVENTS = [b'{"a":\n"\xc3\xa9\xe4\xb8\x96"}', b"two", b"three", b"", b" x", b"last"]


def events_of(*pieces):
    parser = EventParser()
    out = [event for piece in pieces for event in parser.feed(piece)]
    return out + parser.end()


def test_every_line_end_comment_and_field_of_the_grammar():
    events = events_of(STREAM)
    assert [e.data for e in events] == EVENTS
    assert [e.name for e in events] == [b"message", None, None, None, None, None]


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_any_cut_gives_the_same_events(cuts):
    edges = [0, *sorted(cuts), len(STREAM)]
    pieces = [STREAM[a:b] for a, b in pairwise(edges)]
    assert [e.data for e in events_of(*pieces)] == EVENTS


def test_byte_by_byte_gives_the_same_events():
    assert [e.data for e in events_of(*(bytes([b]) for b in STREAM))] == EVENTS


def test_an_event_is_given_with_the_bytes_that_complete_it():
    parser = EventParser()
    assert parser.feed(b"data: a\n") == []
    assert [e.data for e in parser.feed(b"\ndata: b")] == [b"a"]
    assert [e.data for e in parser.feed(b"\r\n\r")] == [b"b"]
    assert parser.feed(b"\n") == []
    assert parser.end() == []


def test_a_line_without_end_is_refused_before_it_fills_the_memory():
    parser = EventParser()
    parser.feed(b"x" * MAX_LINE)
    with pytest.raises(LineTooLong):
        parser.feed(b"x")
