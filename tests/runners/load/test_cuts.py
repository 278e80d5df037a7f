"""However a network cuts the bytes, the same answer is read, its tokens at the same places."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.runners.load.conftest import rows
from tests.runners.load.cutting import bodies, byte_by_byte, framed, later, read_wire

FRAMINGS = ("chunked", "length", "close")


@st.composite
def cut(draw):
    """A body, a framing of it, and where its receives end."""
    name = draw(st.sampled_from(sorted(bodies())))
    body = bodies()[name]
    places = st.sets(st.integers(1, len(body)), max_size=12)
    wire = framed(body, sorted(draw(places)), draw(st.sampled_from(FRAMINGS)))
    ends = draw(st.sets(st.integers(1, len(wire.data)), max_size=30))
    return name, wire, sorted({*ends, len(wire.data)})


def holds(name, wire, ends):
    """The same as byte by byte: each token at the first receive that brings all its bytes."""
    truth, found = byte_by_byte(name), read_wire(wire, ends)
    assert found.said == truth.said
    assert found.times == {key: later(at, wire, ends) for key, at in truth.times.items()}
    assert found.chunks == [later(at, wire, ends) for at in truth.chunks]
    # What is told of receives is true: how many brought tokens, and after which the first came.
    assert found.receives == len(set(found.chunks))
    after, first = found.first_token_after_s, found.times["first_token_s"]
    assert (after is not None) == (found.chunks.count(first) > 1)
    if after is not None:
        assert after < wire.needs[int(truth.chunks[0])] <= first


@given(cut())
@settings(max_examples=400, derandomize=True, deadline=None, database=None)
def test_random_cuts_change_no_token(cutting):
    holds(*cutting)


@pytest.mark.slow
@given(cut())
@settings(max_examples=5_000, deadline=None, suppress_health_check=list(HealthCheck))
def test_many_random_cuts_change_no_token(cutting):
    holds(*cutting)


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 1 << 20])
def test_receives_of_one_size_change_no_token(framing, size):
    """Every body, in chunks of 5 bytes and receives of `size`."""
    for name, body in bodies().items():
        wire = framed(body, range(5, len(body), 5), framing)
        holds(name, wire, [*range(size, len(wire.data), size), len(wire.data)])


def test_every_body_is_there_and_most_have_tokens():
    found = [byte_by_byte(name).times["first_token_s"] is not None for name in bodies()]
    assert len(found) > 60
    assert sum(found) > 45


# Bodies of the case file with one answer each to their end, for the network itself.
SENT = ("role-first", "split-in-a-character", "sse-dialect", "tool-call", "coalesced", "CRLF")


def test_cut_bytes_on_a_real_connection_change_no_token(serve, load, transport):
    """Each body in writes of its own, 10 ms apart, cut and chunked at random (seeds 0 to 3)."""
    plays = {f"{name}/{seed}": played(name, seed) for name in SENT for seed in range(4)}
    server = serve(lambda r: response(*plays[r["headers"]["x-request-id"]]))
    lines = [{"id": name, "at_s": i * 0.01} for i, name in enumerate(plays)]
    _, folder = load(server.url, *lines, transport=transport)
    t0 = folder.run["clock"]["monotonic_s"]
    written = {(w.request_id, w.event): w.at_s - t0 for w in server.log}
    outputs = {o["request_id"]: o for o in folder.outputs()}
    for attempt in rows(folder, "attempts"):
        play = attempt["request_id"]
        truth, (wire, ends) = byte_by_byte(play.split("/")[0]), plays[play]
        assert attempt["outcome"] == "completed", play
        assert attempt["output_tokens"] == truth.said["counts"]["output_tokens"], play
        assert outputs[play]["text"] == truth.said["output"]["text"], play
        for key in ("first_token_s", "last_token_s"):
            place = ends.index(int(later(truth.times[key], wire, ends)))
            # With the write that brought it whole, not with one before.
            assert -0.001 <= attempt[key] - written[play, place] < 0.5, (play, key)


def played(name, seed):
    """A body's bytes on the wire, and where its writes end."""
    chance = random.Random(f"{name}/{seed}")
    body = bodies()[name]
    wire = framed(body, sorted(chance.sample(range(1, len(body)), 6)), "chunked")
    return wire, [*sorted(chance.sample(range(1, len(wire.data)), 8)), len(wire.data)]


def response(wire, ends):
    """The scripted response that writes these bytes so."""
    begins = [0, *ends[:-1]]
    events = [[10 * i, wire.data[a:b]] for i, (a, b) in enumerate(zip(begins, ends, strict=True))]
    return {"raw": True, "keep": True, "events": events}
