"""A request is tried again for what may pass, no sooner than it should be, and all of it shows."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from email.utils import format_datetime

import pytest

from impakt_web.cli.main import run
from runners.load.attempt import Attempt
from runners.load.retry import RetryPolicy, may_retry, retry_after_s
from tests.runners.load.conftest import SLOW_HTTPX, rows
from tests.runners.load.server import ANSWER, sse, token

NOON = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
REFUSED = {"status": 429, "events": [[0, '{"error": {"message": "slow down"}}']]}
BROKEN = {"status": 500, "events": [[0, "oops"]]}
CUT = {"events": [[0, sse(token("a"), done=False)]]}
RESET = {"events": [[20, sse(token("a"), done=False)]], "end": "reset"}
HANGING = {"events": [[0, sse(token("a"), done=False)]], "end": "hang"}


def ended(number=1, status=200, kind=None, done=False, retry_after=None):
    attempt = Attempt("r", number)
    attempt.http_status, attempt.error_kind, attempt.retry_after = status, kind, retry_after
    attempt.answer.done = done
    return attempt


def script_of(*responses):
    """Answers the tries of each request by these responses, the last again and again."""

    def script(request):
        _, _, number = request["headers"]["x-request-id"].partition("#")
        return responses[min(int(number or 1), len(responses)) - 1]

    return script


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1", 1), (" 120 ", 120), ("0.5", 0.5), ("0", 0), (None, 0), ("", 0), ("soon", 0),
        ("-3", 0),
        ("Sun, 01 Mar 2026 12:00:07 GMT", 7), ("Sunday, 01-Mar-26 12:00:07 GMT", 7),
        ("Sun Mar  1 12:00:07 2026", 7), ("Sun, 01 Mar 2026 11:00:00 GMT", 0),
        ("Sun, 01 Mar 2026 13:00:07 +0100", 7), ("Sun, 99 Mar 2026 12:00:07 GMT", 0), ("1e3", 0),
        # As long as it likes: a number is no nonsense because it is large.
        ("9" * 40, float("9" * 40)), ("9" * 400, float("inf")),
    ],
)  # fmt: skip
def test_both_forms_of_retry_after(text, seconds):
    assert retry_after_s(text, NOON) == seconds


def test_waits_grow_within_their_ceiling_and_are_the_same_for_the_same_run():
    """Ceilings 0.5, 1, 2, ... to 30 s; full jitter is uniform below them: mean a half."""
    for number, ceiling in ((1, 0.5), (2, 1.0), (6, 16.0), (7, 30.0), (20, 30.0)):
        waits = []
        for name in range(400):
            attempt = Attempt(f"r{name}", number)
            waits.append(RetryPolicy(20, "run").wait_s(attempt, NOON))
        assert 0 <= min(waits) <= max(waits) < ceiling
        # Standard error of the mean of 400 uniforms: 0.29 / 20 = 0.0144 of the ceiling.
        assert abs(sum(waits) / 400 / ceiling - 0.5) < 5 * 0.0144
    first = RetryPolicy(1, "run").wait_s(ended(), NOON)
    assert first == RetryPolicy(3, "run").wait_s(ended(), NOON)
    assert first != RetryPolicy(1, "other run").wait_s(ended(), NOON)


def test_retry_after_is_the_least_wait_and_has_a_bound():
    policy = RetryPolicy(2, "run")
    assert 60 <= policy.wait_s(ended(retry_after="60"), NOON) < 60.5
    assert policy.wait_s(ended(retry_after="601"), NOON) == "retry_after_too_long"
    assert policy.wait_s(ended(number=3), NOON) == "used_up"


@pytest.mark.parametrize(
    ("status", "kind", "again"),
    [
        (429, "http_4xx", True), (408, "http_4xx", True), (425, "http_4xx", True),
        (500, "http_5xx", True), (503, "http_5xx", True), (400, "http_4xx", False),
        (401, "http_4xx", False), (404, "http_4xx", False), (302, "bad_response", False),
        (None, "connect", True), (None, "connection_reset", True), (200, "truncated", True),
        (200, "empty_response", True), (200, "stream_error", True), (None, "timeout", True),
        (None, "dns", False), (None, "tls", False), (200, "bad_response", False),
        (200, None, False),
    ],
)  # fmt: skip
def test_what_may_be_tried_again(status, kind, again):
    assert may_retry(ended(status=status, kind=kind)) is again
    # After [DONE] the server has said all it had to say.
    if status == 200:
        assert not may_retry(ended(status=status, kind=kind, done=True))


@pytest.mark.parametrize("transport", SLOW_HTTPX)
@pytest.mark.parametrize("form", ["seconds", "date"])
def test_a_refusal_with_retry_after_is_waited_out(load, serve, transport, form):
    """Two rows of one request; the wait is at least what was asked, counted from arrival."""
    first = {**REFUSED, "headers": {"Retry-After": "1"}}
    if form == "date":
        # Whole seconds: 2 s on is between 1 and 2 s on.
        at = datetime.fromtimestamp(int(time.time()) + 2, UTC)
        first["headers"] = {"Retry-After": format_datetime(at, usegmt=True)}
    server = serve(script_of(first, ANSWER))
    _, folder = load(server.url, {"id": "a"}, retries=1, transport=transport)
    one, two = sorted(rows(folder, "attempts"), key=lambda a: a["attempt"])
    assert (one["outcome"], one["http_status"], two["outcome"]) == ("rejected", 429, "completed")
    if form == "seconds":
        assert two["sent_s"] - one["end_s"] >= 1
    else:
        assert time.time() >= int(at.timestamp())
    (request,) = rows(folder, "requests")
    assert (request["outcome"], request["attempts"], request["intended_s"]) == ("completed", 2, 0)
    assert request["end_s"] == two["end_s"]
    assert [r["headers"]["x-request-id"] for r in server.posts] == ["a", "a#2"]
    assert server.posts[0]["body"] == server.posts[1]["body"]
    assert folder.run["policies"]["retries"] == 1
    assert folder.run["policies"]["retry"]["jitter"] == "full"
    assert folder.run["retries"] == {"sent": 1, "given_up": {}}


@pytest.mark.parametrize(
    ("responses", "outcomes", "connection"),
    [
        ([BROKEN, ANSWER], ["failed", "completed"], "http_5xx"),
        ([CUT, ANSWER], ["failed", "completed"], "truncated"),
        ([RESET, ANSWER], ["failed", "completed"], "connection_reset"),
        ([BROKEN, BROKEN, BROKEN], ["failed"] * 3, "http_5xx"),
        ([{"status": 404}, ANSWER], ["failed"], "http_4xx"),
        ([{"events": [[0, "<html>"]]}, ANSWER], ["failed"], "bad_response"),
    ],
)
def test_each_try_has_its_row_and_the_last_decides(load, serve, responses, outcomes, connection):
    _, folder = load(serve(script_of(*responses)).url, {}, {"at_s": 0.01}, retries=2)
    tries = sorted(rows(folder, "attempts"), key=lambda a: (a["request_id"], a["attempt"]))
    assert [a["outcome"] for a in tries] == outcomes * 2
    assert [a["attempt"] for a in tries] == [*range(1, len(outcomes) + 1)] * 2
    assert tries[0]["error_kind"] == connection
    for request in rows(folder, "requests"):
        assert (request["outcome"], request["attempts"]) == (outcomes[-1], len(outcomes))


def test_an_attempts_own_timeout_is_tried_again_and_the_users_patience_is_not(load, serve):
    """0.1 s per attempt; the second request's user leaves after 0.05 s."""
    lines = [{"id": "t", "timeout_s": 0.1}, {"id": "u", "timeout_s": 0.1, "cancel_after_s": 0.05}]
    _, folder = load(serve(script_of(HANGING, ANSWER)).url, *lines, retries=1)
    found = {r["request_id"]: (r["outcome"], r["attempts"]) for r in rows(folder, "requests")}
    assert found == {"t": ("completed", 2), "u": ("cancelled", 1)}


def test_a_wait_beyond_the_deadline_is_not_begun(load, serve):
    """Asked to wait 30 s with a deadline after 5: the refusal stands, at once."""
    refused = {**REFUSED, "headers": {"Retry-After": "30"}}
    started = time.monotonic()
    _, folder = load(serve(script_of(refused, ANSWER)).url, {"deadline_s": 5}, retries=3)
    assert time.monotonic() - started < 4
    assert [(r["outcome"], r["attempts"]) for r in rows(folder, "requests")] == [("rejected", 1)]
    assert folder.run["retries"] == {"sent": 0, "given_up": {"deadline": 1}}


def test_a_user_who_leaves_during_the_wait_ends_it(load, serve):
    refused = {**REFUSED, "headers": {"Retry-After": "30"}}
    _, folder = load(serve(script_of(refused, ANSWER)).url, {"cancel_after_s": 0.2}, retries=3)
    (request,) = rows(folder, "requests")
    assert (request["outcome"], request["attempts"], request["end_s"]) == ("cancelled", 1, 0.2)
    assert len(rows(folder, "attempts")) == 1


@pytest.mark.parametrize(("stop", "outcome"), [(True, "interrupted"), (False, "censored")])
def test_the_end_of_the_run_ends_the_wait_and_keeps_the_tries(load, serve, stop, outcome):
    refused = {**REFUSED, "headers": {"Retry-After": "30"}}
    server = serve(script_of(refused, ANSWER))
    _, folder = load(
        server.url, {}, retries=3, drain_s=None if stop else 0.3,
        should_stop=lambda: stop and len(server.posts) > 0,
    )  # fmt: skip
    assert [(r["outcome"], r["attempts"]) for r in rows(folder, "requests")] == [(outcome, 1)]
    assert [a["outcome"] for a in rows(folder, "attempts")] == ["rejected"]


def test_the_slot_is_free_during_the_wait(load, serve):
    """One slot; the first is told to come back after 2 s, the second is served meanwhile."""
    refused = {**REFUSED, "headers": {"Retry-After": "2"}}
    script = script_of(refused, ANSWER)
    server = serve(lambda r: ANSWER if r["headers"]["x-request-id"] == "b" else script(r))
    _, folder = load(server.url, {"id": "a"}, {"id": "b"}, retries=1, max_concurrency=1)
    found = {(a["request_id"], a["attempt"]): a["sent_s"] for a in rows(folder, "attempts")}
    assert found["a", 1] < found["b", 1] < found["a", 2] - 1


def test_the_record_counts_attempts_and_retries(serve, tmp_path, capsys):
    """Three requests; two of them need a second try: five attempts, two retries."""
    script = script_of(BROKEN, ANSWER)
    server = serve(lambda r: ANSWER if r["headers"]["x-request-id"] == "a" else script(r))
    trace = tmp_path / "t.jsonl"
    trace.write_text("".join(json.dumps({"id": i, "at_s": 0, "prompt": "x"}) + "\n" for i in "abc"))
    arguments = ["load", "--url", server.url, "--model", "m", "--trace", str(trace)]
    arguments += ["--out", str(tmp_path / "o"), "--retries", "1", "--json", "--lag-limit", "5"]
    assert run(arguments) == 0
    counts = json.loads(capsys.readouterr().out)["counts"]
    assert (counts["attempted"], counts["completed"]) == (3, 3)
    assert (counts["attempts"], counts["retries"]) == (5, 2)
