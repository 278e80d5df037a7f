"""A run sends what the trace says when it says, and keeps what became of it."""

from __future__ import annotations

import json
import os
import signal
import threading
import time

import pytest

from records.errors import BadInput, StorageFailed
from records.evidence import writer
from records.evidence.manifest import verify_folder
from runners.load.run import run_load
from tests.runners.load.conftest import everything_in, plan_of, rows
from tests.runners.load.server import ANSWER, sse, token

SLOW = {"events": [[300, sse(token("a"), token("b", "stop"))]]}
HANGING = {"events": [[10, sse(token("a"), done=False)]], "end": "hang"}


def outcomes(folder):
    return [r["outcome"] for r in rows(folder, "requests")]


def test_a_run_leaves_a_whole_verified_folder(load, serve):
    server = serve()
    lines = [{"id": f"r{i}", "at_s": i * 0.05, "class": "x", "case": "c1"} for i in range(5)]
    outcome, folder = load(server.url, *lines, owner="alice", cache_state="warm")
    assert (outcome.state, outcome.outcomes) == ("completed", {"completed": 5})
    run = folder.run
    assert run["state"] == "completed"
    assert run["end"]["reason"] == "end_of_trace"
    assert run["window"] == {"start_s": 0.0, "end_s": 0.2}
    assert (run["owner"], run["cache_state"], run["simulated"]) == ("alice", "warm", False)
    assert run["configuration"] == {"model": "m"}
    assert run["generator"]["loop_stall_s"]["n"] > 5
    assert run["generator"]["cpu_s"] > 0
    assert run["clock"]["started_at"].endswith("Z")
    assert verify_folder(folder.path) == []
    request = rows(folder, "requests")[0]
    assert (request["class"], request["case"], request["workflow_id"]) == ("x", "c1", "r0")
    assert (request["prompt_tokens"], request["output_tokens"]) == (3, 2)
    assert [o["text"] for o in folder.outputs()] == ["ab"] * 5


def test_each_request_is_named_to_the_server_and_sent_once(load, serve):
    server = serve()
    load(server.url, *({"id": f"r{i}"} for i in range(20)))
    sent = [r["headers"]["x-request-id"] for r in server.posts]
    assert sorted(sent) == sorted(f"r{i}" for i in range(20))
    assert {r["headers"]["x-impakt-run"] for r in server.posts} == {"run-1"}


def test_the_body_asks_for_a_stream_with_usage_and_takes_the_traces_sampling(load, serve):
    server = serve()
    line = {
        "max_output_tokens": 7, "sampling": {"temperature": 0.5, "stream": False},
        "tools": [{"type": "function"}], "messages": [{"role": "user", "content": "é"}],
        "prompt": None,
    }  # fmt: skip
    load(server.url, line)
    assert json.loads(server.posts[0]["body"]) == {
        "model": "m", "messages": [{"role": "user", "content": "é"}], "max_tokens": 7,
        "stream": True, "stream_options": {"include_usage": True}, "temperature": 0.5,
        "tools": [{"type": "function"}],
    }  # fmt: skip


def test_the_completions_api_is_asked_with_text(load, serve):
    server = serve()
    load(server.url, {"prompt": "once"}, api="completions")
    assert server.posts[0]["path"] == "/v1/completions"
    assert json.loads(server.posts[0]["body"])["prompt"] == "once"


def test_nothing_is_sent_before_its_time_and_little_after(load, serve):
    lines = [{"at_s": i * 0.013} for i in range(60)]
    _, folder = load(serve().url, *lines)
    requests = {r["request_id"]: r["intended_s"] for r in rows(folder, "requests")}
    lags = [a["sent_s"] - requests[a["request_id"]] for a in rows(folder, "attempts")]
    assert min(lags) >= 0
    # A schedule relative to the last send would only ever drift away from its times.
    assert min(lags[30:]) < 0.010


def test_a_slow_server_does_not_delay_the_arrivals_after_it(load, serve):
    """Ten arrivals 20 ms apart, each served in 300 ms: closed-loop sending would take 2.7 s."""
    lines = [{"at_s": i * 0.02} for i in range(10)]
    _, folder = load(serve(SLOW).url, *lines)
    sent = [a["sent_s"] for a in rows(folder, "attempts")]
    assert max(sent) < 2


def test_a_concurrency_limit_makes_requests_wait_and_the_wait_counts(load, serve):
    """Three at once, one slot, 300 ms each: sent at about 0, 0.3 and 0.6 s."""
    _, folder = load(serve(SLOW).url, {}, {}, {}, max_concurrency=1)
    first, second, third = sorted(rows(folder, "attempts"), key=lambda a: a["sent_s"])
    assert second["sent_s"] >= first["end_s"] >= 0.29
    assert third["sent_s"] >= second["end_s"] >= 0.59
    assert [r["intended_s"] for r in rows(folder, "requests")] == [0.0] * 3


def test_a_user_who_leaves_counts_from_the_intended_arrival(load, serve):
    """One slot held for 2 s: the second user leaves at 100 ms, never sent."""
    lines = [{"timeout_s": 2}, {"cancel_after_s": 0.1}]
    _, folder = load(serve(HANGING).url, *lines, max_concurrency=1)
    request = rows(folder, "requests")[1]
    assert (request["outcome"], request["attempts"]) == ("cancelled", 0)
    assert 0.09 < request["end_s"] < 1.5
    assert len(rows(folder, "attempts")) == 1


def test_timeouts_count_from_the_send_and_deadlines_from_the_arrival(load, serve):
    lines = [{"id": "t", "timeout_s": 0.15}, {"id": "d", "deadline_s": 0.1}]
    _, folder = load(serve(HANGING).url, *lines)
    found = {a["request_id"]: a for a in rows(folder, "attempts")}
    assert [found[i]["outcome"] for i in "td"] == ["timed_out"] * 2
    assert [found[i]["error_kind"] for i in "td"] == ["timeout"] * 2
    assert 0.14 < found["t"]["end_s"] - found["t"]["sent_s"] < 2
    assert 0.09 < found["d"]["end_s"] < 2
    assert found["t"]["first_token_s"] is not None
    assert rows(folder, "requests")[1]["deadline_s"] == 0.1


def test_a_class_may_have_its_own_timeout(load, serve):
    from records.evidence.workload import check_workload

    work = check_workload({"classes": {"x": {"timeout_s": 0.1}}}, "w")
    _, folder = load(serve(HANGING).url, {"class": "x"}, workload=work)
    assert outcomes(folder) == ["timed_out"]


def test_what_is_open_after_the_drain_is_censored(load, serve):
    _, folder = load(serve(HANGING).url, {}, {"at_s": 0.1}, drain_s=0.2)
    assert outcomes(folder) == ["censored"] * 2
    attempt = rows(folder, "attempts")[0]
    assert 0.28 < attempt["end_s"] < 3
    assert attempt["output_tokens"] == 1
    assert folder.run["state"] == "completed"


def test_the_window_leaves_the_warm_up_out_and_sends_nothing_after_it(load, serve):
    """Arrivals at 0, .1, .2, .3, .4 with 0.1 s warm-up and a window of 0.2 s: [0.1, 0.3)."""
    server = serve()
    lines = [{"at_s": i / 10} for i in range(5)]
    _, folder = load(server.url, *lines, warmup_s=0.1, window_s=0.2)
    requests = rows(folder, "requests")
    assert [r["in_window"] for r in requests] == [False, True, True]
    assert len(server.posts) == 3
    assert folder.run["window"] == {"start_s": 0.1, "end_s": 0.3}


@pytest.mark.parametrize(("capture", "text"), [("full", "ab"), ("hashes", None)])
def test_capture_keeps_text_or_its_hash(load, serve, capture, text):
    _, folder = load(serve().url, {}, capture=capture)
    (output,) = folder.outputs()
    assert output["text"] == text
    assert len(output["sha256"]) == 64


def test_capture_none_keeps_no_outputs_file(load, serve):
    answer = {"events": [[0, sse(token("zebra", "stop"))]]}
    _, folder = load(serve(answer).url, {}, capture="none")
    assert not folder.has_outputs
    assert b"zebra" not in everything_in(folder.path)


def test_a_person_who_stops_a_run_keeps_what_there_is(load, serve):
    seen = []
    lines = [{"at_s": 0.0}, {"at_s": 0.05}, {"at_s": 50.0}]
    outcome, folder = load(
        serve(HANGING).url, *lines,
        on_progress=seen.append, should_stop=lambda: len(seen) > 1,
    )  # fmt: skip
    assert outcome.state == folder.run["state"] == "stopped"
    assert outcomes(folder) == ["interrupted"] * 2
    assert folder.run["end"]["ended_s"] < 5
    assert (seen[1].planned, seen[1].sent, seen[1].in_flight) == (3, 2, 2)
    assert (seen[-1].in_flight, seen[-1].outcomes) == (0, {"interrupted": 2})
    assert verify_folder(folder.path) == []


def test_a_worker_that_must_end_interrupts_its_run(load, serve):
    outcome, folder = load(serve(HANGING).url, {}, should_stop=lambda: "interrupted")
    assert outcome.state == folder.run["state"] == "interrupted"
    assert folder.run["end"]["reason"] == "shutdown"


def test_a_reader_of_the_progress_that_fails_does_not_end_the_run(load, serve, caplog):
    def fail(progress):
        raise RuntimeError("database is locked")

    outcome, _ = load(serve(SLOW).url, {}, on_progress=fail)
    assert outcome.state == "completed"
    assert "database is locked" in caplog.text


def test_a_fault_of_ours_is_not_hidden_and_the_evidence_is_kept(tmp_path, serve, monkeypatch):
    from records.evidence.folder import EvidenceFolder
    from runners.load import ahead

    real = ahead.request_body

    def fail(request, plan):
        if request.id == "4":
            raise RuntimeError("a bug")
        return real(request, plan)

    monkeypatch.setattr(ahead, "request_body", fail)
    lines = [{"at_s": i * 0.1} for i in range(5)]
    with pytest.raises(RuntimeError, match="a bug"):
        run_load(plan_of(serve().url, *lines), tmp_path / "f")
    folder = EvidenceFolder.open(tmp_path / "f")
    assert (folder.run["state"], folder.run["end"]["reason"]) == ("failed", "internal_error")
    assert len(rows(folder, "attempts")) >= 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_run_as_interrupted_and_handlers_come_back(load, serve, number):
    server = serve(HANGING)
    before = signal.getsignal(number)

    def kill():
        while not server.posts:
            time.sleep(0.01)
        os.kill(os.getpid(), number)

    threading.Thread(target=kill, daemon=True).start()
    outcome, folder = load(server.url, {}, {"at_s": 30.0}, handle_signals=True)
    assert outcome.state == folder.run["state"] == "interrupted"
    assert outcomes(folder) == ["interrupted"]
    assert signal.getsignal(number) is before


def test_a_full_disk_stops_the_load_and_keeps_what_was_written(tmp_path, serve, monkeypatch):
    server = serve()
    real = os.write

    def write(handle, data):
        if b'"send"' in bytes(data) and len(server.posts) > 3:
            raise OSError(28, "No space left on device")
        return real(handle, data)

    monkeypatch.setattr(writer.os, "write", write)
    lines = [{"at_s": i * 0.05} for i in range(200)]
    outcome = run_load(plan_of(server.url, *lines), tmp_path / "f")
    assert isinstance(outcome.error, StorageFailed)
    assert outcome.state == "interrupted"
    assert len(server.posts) < 100
    from records.evidence.folder import EvidenceFolder

    folder = EvidenceFolder.open(tmp_path / "f")
    assert folder.run["end"]["reason"] == "storage_failed"
    assert outcomes(folder).count("completed") >= 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"api": "x"}, "api"), ({"timeout_s": 0}, "timeout_s"), ({"warmup_s": -1}, "warmup_s"),
        ({"window_s": float("nan")}, "window_s"), ({"max_concurrency": 0}, "concurrency"),
        ({"transport": "x"}, "transport"), ({"lag_limit_s": float("inf")}, "lag_limit"),
         ({"capture": "all"}, "capture"),
    ],
)  # fmt: skip
def test_a_wrong_plan_is_refused_before_anything_is_written(tmp_path, options, message):
    with pytest.raises(BadInput, match=message):
        run_load(plan_of("http://127.0.0.1:9/v1", {}, **options), tmp_path / "f")
    assert not (tmp_path / "f").exists()


@pytest.mark.parametrize("url", ["ftp://x/v1", "127.0.0.1:80", "http://", "http://u:pw@"])
def test_a_url_that_is_none_is_refused_without_its_password(tmp_path, url):
    with pytest.raises(BadInput, match="url") as caught:
        run_load(plan_of(url, {}), tmp_path / "f")
    assert "pw" not in str(caught.value)


def test_the_simulator_and_a_missing_model_are_noticed(load, serve):
    server = serve(ANSWER)
    server.models = (200, {"data": [{"id": "o", "owned_by": "impakt-reference-endpoint"}]})
    _, folder = load(server.url, {"think_s": 1.0})
    assert folder.run["simulated"] is True
    assert folder.run["notes"] == [
        "think_s is not followed: every turn is sent at its own at_s",
        "GET /models does not list m; it lists o",
    ]


def test_an_endpoint_without_a_list_of_models_is_measured_all_the_same(load, serve):
    server = serve(ANSWER)
    server.models = (404, {"detail": "Not Found"})
    outcome, folder = load(server.url, {})
    assert outcome.outcomes == {"completed": 1}
    assert folder.run["simulated"] is None
