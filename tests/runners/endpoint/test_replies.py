"""What goes over the wire is OpenAI's dialect: events, usage, errors, headers."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from runners.endpoint.testing import Endpoint, serve

CHAT = {"model": "reference-1", "messages": [{"role": "user", "content": "one two three"}]}
TEXT = {"model": "reference-1", "prompt": "one two three"}
USAGE = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}


def events(raw: bytes) -> list[Any]:
    """The parsed events of a stream; [DONE] as text. Every event is one `data:` line."""
    blocks = raw.decode().split("\n\n")
    assert blocks[-1] == ""
    assert all(block.startswith("data: ") and "\n" not in block for block in blocks[:-1])
    bodies = [block.removeprefix("data: ") for block in blocks[:-1]]
    return [body if body == "[DONE]" else json.loads(body) for body in bodies]


def test_the_model_list_tells_that_this_is_the_simulator(client: httpx.Client) -> None:
    reply = client.get("/models")
    (model,) = reply.json()["data"]
    assert (model["id"], model["owned_by"]) == ("reference-1", "impakt-reference-endpoint")
    assert reply.headers["server"] == "impakt-reference-endpoint"
    assert reply.headers["x-impakt-simulated"] == "true"


def test_a_chat_stream_opens_with_the_role_and_sends_a_token_a_chunk(client: httpx.Client) -> None:
    options = {"stream": True, "stream_options": {"include_usage": True}, "max_tokens": 4}
    reply = client.post("/chat/completions", json=CHAT | options)
    assert reply.headers["content-type"].startswith("text/event-stream")
    opening, *tokens, finish, usage, done = events(reply.content)
    assert opening["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    texts = [event["choices"][0]["delta"]["content"] for event in tokens]
    assert len(texts) == len("".join(texts).split()) == 4
    assert not texts[0].startswith(" ")
    assert finish["choices"][0] | {"logprobs": None} == {
        "index": 0, "delta": {}, "logprobs": None, "finish_reason": "length",
    }  # fmt: skip
    assert (usage["choices"], usage["usage"]) == ([], USAGE)
    assert done == "[DONE]"
    every = [opening, *tokens, finish, usage]
    assert {(e["object"], e["model"]) for e in every} == {("chat.completion.chunk", "reference-1")}
    assert len({(e["id"], e["created"]) for e in every}) == 1
    assert all(e["choices"][0]["finish_reason"] is None for e in tokens)


def test_a_completions_stream_starts_with_its_first_token(client: httpx.Client) -> None:
    reply = client.post("/completions", json=TEXT | {"stream": True, "max_tokens": 4})
    *tokens, finish, done = events(reply.content)
    assert len("".join(event["choices"][0]["text"] for event in tokens).split()) == len(tokens) == 4
    assert (finish["choices"][0]["text"], finish["choices"][0]["finish_reason"]) == ("", "length")
    assert done == "[DONE]"
    assert not any("usage" in event for event in [*tokens, finish])


def test_the_bytes_of_a_token_chunk_are_valid_whatever_the_word(client: httpx.Client) -> None:
    text = 'In at most 30 words:\n[E1] "quoted" \\slash ünïcode 日本 <tag> {brace} \t x\x7fy'
    ask = {"stream": True, "messages": [{"role": "user", "content": text}]}
    reply = client.post("/chat/completions", json=CHAT | ask)
    _, *tokens, _, _ = events(reply.content)
    said = "".join(event["choices"][0]["delta"]["content"] for event in tokens)
    assert said.startswith('"quoted" \\slash ünïcode 日本 <tag> {brace} x\x7fy ')
    assert len(said.split(" ")) == len(tokens)


@pytest.mark.parametrize("path", ["/chat/completions", "/completions"])
def test_the_whole_reply_says_what_the_stream_says(client: httpx.Client, path: str) -> None:
    body = (CHAT if "chat" in path else TEXT) | {"max_tokens": 4}
    headers = {"x-request-id": f"same-{path}"}
    whole = client.post(path, json=body, headers=headers)
    stream = client.post(path, json=body | {"stream": True}, headers=headers)
    choice = whole.json()["choices"][0]
    said = choice["message"]["content"] if "chat" in path else choice["text"]
    parts = [e["choices"][0] for e in events(stream.content) if e != "[DONE]"]
    texts = [p["delta"].get("content", "") if "chat" in path else p["text"] for p in parts]
    assert said == "".join(texts)
    assert whole.json()["usage"] == USAGE
    assert choice["finish_reason"] == parts[-1]["finish_reason"] == "length"
    assert whole.headers["x-request-id"] == stream.headers["x-request-id"] == f"same-{path}"


def test_no_word_is_lost_or_doubled_when_the_clock_is_coarser_than_a_step() -> None:
    # Steps of .1 ms against a timer of 1 ms: several are delivered in one wake-up.
    body = TEXT | {"max_tokens": 200}
    headers = {"x-request-id": "r1"}
    quick = {"prefill_base_s": 0.0, "decode_base_s": 0.0001, "decode_per_sequence_s": 0.0}
    with serve("continuous", **quick) as running, httpx.Client(base_url=running.url) as http:
        whole = http.post("/completions", json=body, headers=headers)
        stream = http.post("/completions", json=body | {"stream": True}, headers=headers)
        counts = [line["output_tokens"] for line in running.truth()]
    texts = [e["choices"][0]["text"] for e in events(stream.content) if e != "[DONE]"]
    assert whole.json()["choices"][0]["text"] == "".join(texts)
    assert counts == [200, 200]


def test_an_answer_does_not_depend_on_order_or_batching(client: httpx.Client) -> None:
    content = "In at most 40 words.\n[E1] alpha beta gamma\n[E2] delta epsilon"
    body = CHAT | {"messages": [{"role": "user", "content": content}]}

    def ask(http: httpx.Client, ids: range) -> dict[int, str]:
        replies = {
            i: http.post("/chat/completions", json=body, headers={"x-request-id": f"r{i}"})
            for i in ids
        }
        return {i: r.json()["choices"][0]["message"]["content"] for i, r in replies.items()}

    shares = {"uncited_share": 0.05, "overlong_share": 0.05}
    quick = {"prefill_base_s": 0.001, "decode_base_s": 0.001}
    with serve("static", **shares, **quick) as other, httpx.Client(base_url=other.url) as http:
        backwards = ask(http, range(11, -1, -1))
    forwards = ask(client, range(12))
    assert forwards == backwards
    assert len(set(forwards.values())) > 1


def test_prompt_tokens_are_the_words_of_all_messages(client: httpx.Client) -> None:
    messages = [
        {"role": "system", "content": " be  brief\n"},
        {"role": "user", "content": [{"type": "text", "text": "two words"}]},
        {"role": "assistant", "content": None},
    ]
    reply = client.post("/chat/completions", json=CHAT | {"messages": messages, "max_tokens": 1})
    assert reply.json()["usage"]["prompt_tokens"] == 4
    ids = client.post("/completions", json=TEXT | {"prompt": [5, 6, 7, 8, 9], "max_tokens": 1})
    assert ids.json()["usage"]["prompt_tokens"] == 5


@pytest.mark.parametrize(
    ("path", "change", "param"),
    [
        ("/chat/completions", {"messages": []}, "messages"),
        ("/chat/completions", {"messages": "hi"}, "messages"),
        ("/chat/completions", {"messages": [{"content": "x"}]}, "messages[0].role"),
        ("/chat/completions", {"messages": [{"role": "a", "content": 3}]}, "messages[0].content"),
        ("/completions", {"prompt": None}, "prompt"),
        ("/completions", {"prompt": ["a", "b"]}, "prompt"),
        ("/completions", {"model": None}, "model"),
        ("/completions", {"max_tokens": 0}, "max_tokens"),
        ("/completions", {"max_tokens": "9"}, "max_tokens"),
        ("/chat/completions", {"max_completion_tokens": True}, "max_completion_tokens"),
        ("/completions", {"stream": "yes"}, "stream"),
        ("/completions", {"stream_options": 1}, "stream_options"),
        ("/completions", {"n": 2}, "n"),
    ],
)  # fmt: skip
def test_a_bad_field_is_a_400_that_names_it(
    client: httpx.Client, path: str, change: dict[str, Any], param: str
) -> None:
    reply = client.post(path, json=(CHAT if "chat" in path else TEXT) | change)
    error = reply.json()["error"]
    assert (reply.status_code, error["param"]) == (400, param)
    assert error["type"] == "invalid_request_error"
    assert error["message"].startswith(f"{param}: expected ")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"model": NaN}', b"\xff"])
def test_a_body_that_is_no_json_object_is_a_400(client: httpx.Client, body: bytes) -> None:
    reply = client.post("/completions", content=body)
    assert reply.status_code == 400
    assert reply.json()["error"]["message"].startswith("expected a JSON object")


def test_an_unknown_model_is_a_404_that_names_the_known_one(
    client: httpx.Client, endpoint: Endpoint
) -> None:
    headers = {"x-request-id": "lost", "x-impakt-run": "run-7"}
    reply = client.post("/completions", json=TEXT | {"model": "gpt"}, headers=headers)
    error = reply.json()["error"]
    assert (reply.status_code, error["code"]) == (404, "model_not_found")
    assert "`gpt`" in error["message"]
    assert "`reference-1`" in error["message"]
    (line,) = [t for t in endpoint.truth() if t["request_id"] == "lost"]
    assert (line["run"], line["status"], line["outcome"]) == ("run-7", 404, "not_found")
    assert line["first_token_s"] is None


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/nope", 404), ("GET", "/completions", 405)]
)
def test_an_unknown_path_or_method_is_refused(
    client: httpx.Client, method: str, path: str, status: int
) -> None:
    reply = client.request(method, path)
    assert reply.status_code == status
    assert "error" in reply.json()


def test_health_answers_with_nothing(endpoint: Endpoint) -> None:
    assert httpx.get(f"{endpoint.root}/health").status_code == 200


def test_a_key_is_asked_for_only_where_the_profile_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENDPOINT_TEST_KEY", "s3cret")
    with serve("continuous", api_key_env="ENDPOINT_TEST_KEY") as running:
        for key, status in ((None, 401), ("wrong", 401), ("s3cret", 200)):
            headers = {"authorization": f"Bearer {key}"} if key else {}
            reply = httpx.post(
                f"{running.url}/completions", json=TEXT | {"max_tokens": 1}, headers=headers
            )
            assert reply.status_code == status
            assert "s3cret" not in reply.text
        assert httpx.get(f"{running.url}/models").status_code == 401
        assert httpx.get(f"{running.root}/metrics").status_code == 200
        outcomes = [line["outcome"] for line in running.truth()]
        assert outcomes == ["unauthorized", "unauthorized", "completed"]
        assert b"s3cret" not in running.truth_log.read_bytes()
