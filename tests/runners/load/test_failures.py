"""What goes wrong between client and server is named for what it is."""

from __future__ import annotations

import socket

import pytest

from records.errors import EndpointUnreachable, WrongKey
from runners.load.plan import Secret
from tests.runners.load.conftest import everything_in, rows
from tests.runners.load.server import ANSWER, sse, token

ERROR_EVENT = 'event: error\ndata: {"message": "no"}\n\n'
FINISHED = sse(token("a", "stop"), done=False)
GARBAGE = "HTTP/1.1 garbage\r\n\r\n"
KEY = "sk-very-secret-0123456789"


def one(load, url, line=None, **options):
    """The only attempt of a run of one request."""
    _, folder = load(url, line or {}, **options)
    return rows(folder, "attempts")[0]


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


@pytest.mark.parametrize(
    ("response", "outcome", "kind", "status"),
    [
        ({"status": 429, "events": [[0, "{}"]]}, "rejected", "http_4xx", 429),
        ({"status": 503, "events": [[0, "busy"]]}, "rejected", "http_5xx", 503),
        ({"status": 404, "events": [[0, "{}"]]}, "failed", "http_4xx", 404),
        ({"status": 500, "end": "cut"}, "failed", "http_5xx", 500),
        ({"status": 307, "headers": {"Location": "/v1/x"}}, "failed", "bad_response", 307),
        ({"events": []}, "failed", "empty_response", 200),
        ({"events": [[0, ": ping\n\n"]]}, "failed", "empty_response", 200),
        ({"events": [[0, "<html>login</html>"]]}, "failed", "bad_response", 200),
        ({"events": [[0, "data: {nonsense\n\n"]]}, "failed", "bad_response", 200),
        ({"events": [[0, "data: [1]\n\n"]]}, "failed", "bad_response", 200),
        ({"events": [[0, '{"ok": true}']]}, "failed", "bad_response", 200),
        ({"events": [[0, '{"error": {"message": "no"}}']]}, "failed", "stream_error", 200),
        ({"events": [[0, ERROR_EVENT]]}, "failed", "stream_error", 200),
        ({"events": [[0, sse(token("a"), token("", "error"))]]}, "failed", "stream_error", 200),
        ({"events": [[0, sse(token("a"), done=False)]]}, "failed", "truncated", 200),
        ({"events": [[0, sse(token(""), done=False)]]}, "failed", "truncated", 200),
        ({"events": [[0, FINISHED]], "end": "cut"}, "completed", None, 200),
        ({"events": [[0, sse(token("a"))]], "end": "reset"}, "completed", None, 200),
        ({"raw": True, "events": [[0, GARBAGE]]}, "failed", "bad_response", None),
        ({"raw": True, "events": []}, "failed", "connection_reset", None),
    ],
)  # fmt: skip
def test_the_outcome_and_kind_of_each_response(load, serve, response, outcome, kind, status):
    attempt = one(load, serve(response).url)
    found = (attempt["outcome"], attempt["error_kind"], attempt["http_status"])
    assert found == (outcome, kind, status)


def test_a_redirect_is_not_followed(load, serve):
    server = serve({"status": 302, "headers": {"Location": "/elsewhere"}})
    one(load, server.url)
    assert {r["path"] for r in server.seen} == {"/v1/models", "/v1/chat/completions"}


def test_a_proxy_in_the_environment_is_not_used(load, serve, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    assert one(load, serve().url)["outcome"] == "completed"


def test_an_unreachable_endpoint_is_a_failed_run_with_its_evidence(load):
    outcome, folder = load(f"http://127.0.0.1:{free_port()}/v1", {})
    assert isinstance(outcome.error, EndpointUnreachable)
    assert outcome.error.exit_code == 4
    assert (outcome.state, folder.run["state"]) == ("failed", "failed")
    assert folder.run["end"]["reason"] == "endpoint_unreachable"
    assert "no connection" in folder.run["end"]["text"]
    assert rows(folder, "requests") == []
    assert len(list(folder.trace_lines())) == 1


def test_an_unknown_host_says_so(load):
    outcome, _ = load("http://no-such-host.invalid/v1", {})
    assert "host name is not known" in str(outcome.error)


def test_tls_to_a_plain_server_says_so(load, serve):
    server = serve()
    outcome, _ = load(server.url.replace("http:", "https:"), {})
    assert isinstance(outcome.error, EndpointUnreachable)
    assert "TLS handshake failed" in str(outcome.error)


@pytest.mark.parametrize("status", [401, 403])
def test_a_wrong_key_is_said_and_never_shown(load, serve, status):
    server = serve()
    server.models = (status, {"error": {"message": f"Incorrect API key: {KEY}"}})
    outcome, folder = load(server.url, {}, api_key=Secret(KEY))
    assert isinstance(outcome.error, WrongKey)
    assert KEY not in str(outcome.error)
    assert folder.run["end"]["reason"] == "wrong_key"
    assert server.seen[0]["headers"]["authorization"] == f"Bearer {KEY}"
    assert KEY.encode() not in everything_in(folder.path)


def test_a_key_that_only_completions_refuse_ends_the_run_early(load, serve):
    body = f'{{"error": {{"message": "bad key {KEY}"}}}}'
    server = serve({"status": 401, "events": [[0, body]]})
    lines = [{"at_s": i * 0.05} for i in range(100)]
    outcome, folder = load(server.url, *lines, api_key=Secret(KEY))
    assert isinstance(outcome.error, WrongKey)
    assert folder.run["state"] == "failed"
    assert 5 <= len(server.posts) < 20
    assert KEY.encode() not in everything_in(folder.path)
    assert "bad key ***" in folder.run["errors"]["http_4xx"]["example"]


def test_a_key_echoed_in_an_answer_is_struck_out(load, serve):
    call = {"index": 0, "id": "c", "function": {"name": "f", "arguments": f"[{KEY}]"}}
    called = {"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}
    server = serve({"events": [[0, sse(called, token(f"your key is {KEY}", "stop"))]]})
    _, folder = load(server.url, {}, api_key=Secret(KEY))
    output = next(folder.outputs())
    assert output["text"] == "your key is ***"
    assert output["tool_calls"] == [{"id": "c", "name": "f", "arguments": "[***]"}]
    assert KEY.encode() not in everything_in(folder.path)


def test_credentials_in_the_url_are_used_but_not_recorded(load, serve):
    server = serve()
    url = server.url.replace("//", "//user:hunter2@") + "?api-key=hunter3&api-version=2"
    outcome, folder = load(url, {})
    assert outcome.state == "completed"
    assert server.posts[0]["headers"]["authorization"].startswith("Basic ")
    assert server.posts[0]["path"] == "/v1/chat/completions?api-key=hunter3&api-version=2"
    everything = everything_in(folder.path)
    assert b"hunter2" not in everything
    assert b"hunter3" not in everything
    assert "api-version=2" in folder.run["url"]


def test_a_secret_shows_in_no_repr_and_no_pickle():
    import pickle

    secret = Secret(KEY)
    assert KEY not in f"{secret} {secret!r} {[secret]}"
    with pytest.raises(TypeError):
        pickle.dumps(secret)


def test_a_long_error_body_is_cut(load, serve):
    server = serve({"status": 500, "events": [[0, "x" * 200_000]]})
    _, folder = load(server.url, {})
    assert len(folder.run["errors"]["http_5xx"]["example"]) == 500


def test_a_connection_is_used_again(load, serve):
    server = serve()
    _, folder = load(server.url, *({"at_s": i * 0.1} for i in range(5)))
    assert {a["connection"] for a in rows(folder, "attempts")} == {"reused"}
    assert server.connections == 1


def test_an_idle_connection_that_was_closed_is_no_failure_and_the_resending_shows(load, serve):
    """The second request meets a closing server, as when a keep-alive just ran out."""
    server = serve()
    server.script = lambda r: {"raw": True} if len(server.posts) == 2 else ANSWER
    _, folder = load(server.url, {"id": "a"}, {"id": "b", "at_s": 0.2})
    found = {a["request_id"]: a for a in rows(folder, "attempts")}
    assert (found["b"]["outcome"], found["b"]["connection"]) == ("completed", "resent")
    assert [r["headers"]["x-request-id"] for r in server.posts] == ["a", "b", "b"]


def test_a_server_that_always_closes_is_a_failure_after_a_few_resendings(load, serve):
    server = serve({"raw": True})
    assert one(load, server.url)["error_kind"] == "connection_reset"
    assert len(server.posts) <= 4


def test_half_a_surrogate_pair_in_each_of_two_chunks_is_one_character(load, serve):
    def raw(text):
        return f'data: {{"choices":[{{"index":0,"delta":{{"content":"{text}"}}}}]}}\n\n'

    stream = raw("\\ud83d") + raw("\\ude00") + sse(token("", "stop"))
    _, folder = load(serve({"events": [[0, stream]]}).url, {})
    assert next(folder.outputs())["text"] == "😀"


def test_absurd_counts_from_a_server_are_not_believed(load, serve):
    chunk = {**token("a", "stop"), "usage": {"prompt_tokens": 10**30, "completion_tokens": -4}}
    attempt = one(load, serve({"events": [[0, sse(chunk)]]}).url)
    assert attempt["outcome"] == "completed"
    assert attempt["prompt_tokens"] is None
    assert (attempt["output_tokens"], attempt["token_count_source"]) == (1, "chunks")
