"""Waits for a slot are the client's, lateness does not add up, and hopeless runs end early."""

from __future__ import annotations

import asyncio
import time

import pytest

from records.errors import BadInput, HostNotAllowed, OtherSideFailed
from runners.load import ahead
from runners.load.hiding import Hider
from runners.load.plan import Secret
from runners.load.redaction import Redactor
from runners.load.replay import _take_up
from tests.runners.load.conftest import SLOW_HTTPX, everything_in, plan_of, rows, trace_of
from tests.runners.load.server import ANSWER, sse, token

HALF_A_SECOND = {"events": [[500, sse(token("a"), token("b", "stop"))]]}
# Eight answers one after another add up what a busy machine delays each.
_NEAR_S = 0.1
KEY = "sk-very-secret-0123456789"


@pytest.mark.parametrize("transport", SLOW_HTTPX)
def test_a_queue_at_the_limit_is_the_clients_wait(load, serve, transport):
    """Eight at 10/s, one at a time, 0.5 s each: request i arrives at 0.1 i, starts at 0.5 i.

    E2E_i = 0.5 (i + 1) - 0.1 i, mean 0.5 x 4.5 - 0.1 x 3.5 = 1.9 s; wait_i = 0.5 i - 0.1 i,
    mean 0.4 x 3.5 = 1.4 s.
    """
    server = serve(HALF_A_SECOND)
    lines = [{"id": f"r{i}", "at_s": i / 10} for i in range(8)]
    for _ in range(3):
        _, folder = load(server.url, *lines, max_concurrency=1, transport=transport)
        intended = {r["request_id"]: r["intended_s"] for r in rows(folder, "requests")}
        e2e = [r["end_s"] - r["intended_s"] for r in rows(folder, "requests")]
        wait = [a["sent_s"] - intended[a["request_id"]] for a in rows(folder, "attempts")]
        found = (sum(e2e) / 8, sum(wait) / 8)
        if found == pytest.approx((1.9, 1.4), abs=_NEAR_S):
            break
    assert found == pytest.approx((1.9, 1.4), abs=_NEAR_S)
    assert min(wait) >= 0


def test_requests_that_arrive_together_are_taken_up_one_after_another_before():
    """Four at 1 s, at 0.2 ms each and 20 ms before: 979.4, 979.6, 979.8 and 980 ms."""
    requests = trace_of({}, *({"at_s": 1.0} for _ in range(4)), {"at_s": 2.0}).requests
    assert _take_up(requests) == pytest.approx([-0.02, 0.9794, 0.9796, 0.9798, 0.98, 1.98])


@pytest.mark.parametrize("transport", ["fast", "httpx"])
def test_many_at_once_all_go_out_the_fast_ones_in_order(load, serve, transport):
    lines = [{"id": f"r{i}", "at_s": 0.2} for i in range(100)]
    _, folder = load(serve().url, *lines, transport=transport)
    attempts = {a["request_id"]: a for a in rows(folder, "attempts")}
    sent = [attempts[f"r{i}"]["sent_s"] for i in range(100)]
    assert min(sent) >= 0.2
    if transport == "fast":
        assert sent == sorted(sent)
    assert {a["outcome"] for a in attempts.values()} == {"completed"}


REFUSALS = [
    (404, {"error": {"message": "The model `x` does not exist"}}, "The model `x` does not exist"),
    (400, {"detail": "no such dialect"}, "no such dialect"),
    (405, "Method Not Allowed", "Method Not Allowed"),
    (422, {"object": "error", "message": "bad body"}, "bad body"),
]


@pytest.mark.parametrize("count", [1, 100])
@pytest.mark.parametrize(("status", "body", "said"), REFUSALS)
def test_an_endpoint_that_refuses_everything_ends_the_run(load, serve, count, status, body, said):
    import json

    text = body if isinstance(body, str) else json.dumps(body)
    server = serve({"status": status, "events": [[0, text]]})
    lines = [{"at_s": i * 0.05} for i in range(count)]
    outcome, folder = load(server.url, *lines)
    assert isinstance(outcome.error, OtherSideFailed)
    assert outcome.error.exit_code == 4
    assert f"every answer was HTTP {status}" in str(outcome.error)
    assert str(outcome.error).endswith(said)
    assert server.url in str(outcome.error)
    assert (folder.run["state"], folder.run["end"]["reason"]) == ("failed", "endpoint_refused")
    assert len(server.posts) <= 20
    assert len(rows(folder, "attempts")) >= min(count, 5)


@pytest.mark.parametrize("status", [429, 503])
def test_an_endpoint_that_is_busy_does_not(load, serve, status):
    server = serve({"status": status, "events": [[0, "{}"]]})
    outcome, _ = load(server.url, *({} for _ in range(6)))
    assert outcome.state == "completed"
    assert outcome.outcomes == {"rejected": 6}


def test_one_answer_among_the_first_is_enough_to_go_on(load, serve):
    refused = {"status": 404, "events": [[0, "{}"]]}
    server = serve(lambda r: ANSWER if r["headers"]["x-request-id"] == "r2" else refused)
    outcome, _ = load(server.url, *({"id": f"r{i}", "at_s": i * 0.03} for i in range(8)))
    assert outcome.state == "completed"
    assert outcome.outcomes == {"failed": 7, "completed": 1}


def test_a_model_that_is_not_listed_is_told_before_the_load(load, serve, tmp_path):
    from runners.load.run import run_load

    server = serve()
    server.models = (200, {"data": [{"id": f"m{i}"} for i in range(7)]})
    told = []
    plan = plan_of(server.url, {})
    run_load(plan, tmp_path / "f", on_note=lambda note: told.append((note, len(server.posts))))
    note = "GET /models does not list m; it lists m0, m1, m2, m3, m4 and 2 more"
    assert told == [(note, 0)]


@pytest.mark.parametrize("capture", ["full", "hashes", "none"])
def test_a_long_answer_is_handed_over_in_parts_and_comes_out_whole(load, serve, capture):
    """600 tokens are more than two parts of 256."""
    chunks = [token(f"w{i} ") for i in range(600)] + [token("", "stop")]
    events = [[i * 2, sse(*chunks[i * 60 : i * 60 + 60], done=i == 10)] for i in range(11)]
    _, folder = load(serve({"events": events}).url, {}, capture=capture)
    (row,) = rows(folder, "chunks")
    assert len(row["gap_us"]) == 599
    if capture == "full":
        (output,) = folder.outputs()
        assert output["text"] == "".join(f"w{i} " for i in range(600))
    if capture != "full":
        assert b"w599" not in everything_in(folder.path)


@pytest.mark.parametrize("at", [250, 255, 256, 257, 511, 590])
def test_a_key_over_the_border_of_two_parts_is_struck_out(load, serve, at):
    """Each token a letter of text, with the key from token `at` on, one character each."""
    text = "x" * at + KEY + "y" * (600 - at)
    chunks = [token(c) for c in text] + [token("", "stop")]
    server = serve({"events": [[0, sse(*chunks)]]})
    _, folder = load(server.url, {}, api_key=Secret(KEY))
    (output,) = folder.outputs()
    assert output["text"] == text.replace(KEY, "***")
    assert KEY.encode() not in everything_in(folder.path)


def test_a_redactor_gives_back_all_but_the_key():
    from array import array

    from runners.load.answers.answer import Part

    text = f"a{KEY}bb{KEY[:-1]}c"
    for size in (1, 3, 7, 100):
        redactor, out = Redactor(Hider([KEY])), ""
        for start in range(0, len(text), size):
            part = Part(array("q"), array("q"), text[start : start + size], "")
            out += redactor.part(part).text
        rest = redactor.rest({"text": None, "reasoning": None})
        assert out + rest["text"] == text.replace(KEY, "***")


@pytest.mark.parametrize("transport", ["fast", "httpx"])
def test_no_load_goes_to_the_metadata_service_of_a_cloud(load, transport):
    outcome, folder = load("http://169.254.169.254/v1", {}, transport=transport)
    assert isinstance(outcome.error, HostNotAllowed)
    assert outcome.error.exit_code == 2
    assert folder.run["end"]["reason"] == "host_not_allowed"
    assert rows(folder, "attempts") == []


def test_what_only_the_transport_refuses_of_a_plan_is_bad_input(load):
    """A key that no header can carry; the command line refuses it before."""
    outcome, folder = load("http://127.0.0.1:9/v1", {}, api_key=Secret("schlüssel"))
    assert isinstance(outcome.error, BadInput)
    assert folder.run["end"]["reason"] == "bad_input"


def test_bodies_that_wait_take_no_more_memory_than_they_may(monkeypatch):
    """Four bodies of some 1,000 bytes where 2,500 may wait: the fourth is built when it goes."""
    plan = plan_of("http://127.0.0.1:9/v1", *({"prompt": "x" * 1000} for _ in range(4)))
    monkeypatch.setattr(ahead, "HELD_BYTES", 2500)
    bodies, requests = ahead.Bodies(plan, plan.requests()), plan.requests()
    early = [bodies.early(r) for r in requests]
    assert [b is not None for b in early] == [True, True, True, False]
    assert bodies.last(requests[3], early[3]) == bodies.last(requests[0], early[0])
    bodies.drop(early[1])
    assert bodies.early(requests[3]) == early[0]


def test_long_synthetic_prompts_are_built_before_their_time():
    """As many as may be held before the run; the rest in a thread while it goes on."""
    lines = [{"prompt": None, "prompt_tokens": 3000} for _ in range(3)]
    plan = plan_of("http://127.0.0.1:9/v1", *lines)
    requests = plan.requests()
    bodies = ahead.Bodies(plan, requests)
    bodies.prepare(until=time.monotonic() - 1)
    assert bodies._ready == {}
    late = bodies.early(requests[0])
    asyncio.run(bodies.work())
    assert set(bodies._ready) == {r.id for r in requests[1:]}
    assert bodies.early(requests[1]) != late
    assert bodies._ready.keys() == {requests[2].id}
