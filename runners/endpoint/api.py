"""The OpenAI dialect: request bodies in, reply bytes out. No sockets, no engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from runners.endpoint.answers import MAX_TOKENS, Ask

OWNER = "impakt-reference-endpoint"


class ApiError(Exception):
    """A request that is refused, with what OpenAI's error body says about it."""

    def __init__(
        self, status: int, message: str, *, code: str, param: str | None = None,
        kind: str = "invalid_request_error", retry_after_s: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.status, self.message, self.code, self.param = status, message, code, param
        self.kind, self.retry_after_s = kind, retry_after_s

    def body(self) -> bytes:
        """The JSON body."""
        error = {
            "message": self.message, "type": self.kind, "param": self.param, "code": self.code,
        }  # fmt: skip
        return orjson.dumps({"error": error})


@dataclass(frozen=True, slots=True)
class Request:
    """A checked request for tokens. `prompt_tokens` is its count of words."""

    chat: bool
    model: str
    ask: Ask
    prompt_tokens: int
    stream: bool
    include_usage: bool


def bad_field(param: str | None, expected: str) -> ApiError:
    """The 400 that names the field and what it should have been."""
    where = f"{param}: " if param else ""
    return ApiError(400, f"{where}expected {expected}", code="bad_request", param=param)


def parse_request(body: bytes, *, chat: bool) -> Request:
    """The request in a body; ApiError 400 names the first wrong field."""
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise bad_field(None, f"a JSON object ({error})") from error
    if not isinstance(data, dict):
        raise bad_field(None, "a JSON object")
    model = data.get("model")
    if not isinstance(model, str):
        raise bad_field("model", "the name of a model")
    if data.get("n") not in (None, 1):
        raise bad_field("n", "1: the simulator gives one choice")
    options = data.get("stream_options") or {}
    if not isinstance(options, Mapping):
        raise bad_field("stream_options", "an object")
    text, tokens = _chat_text(data) if chat else _prompt_text(data)
    return Request(
        chat=chat,
        model=model,
        ask=Ask(text, _cap(data), _flag(data, "ignore_eos")),
        prompt_tokens=tokens,
        stream=_flag(data, "stream"),
        include_usage=_flag(options, "include_usage"),
    )


def _flag(data: Mapping[str, Any], key: str) -> bool:
    value = data.get(key)
    if value is not None and not isinstance(value, bool):
        raise bad_field(key, "true or false")
    return bool(value)


def _cap(data: Mapping[str, Any]) -> int | None:
    caps = []
    for key in ("max_completion_tokens", "max_tokens"):
        value = data.get(key)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_TOKENS:
            raise bad_field(key, f"a whole number from 1 to {MAX_TOKENS}")
        caps.append(value)
    return min(caps, default=None)


def _prompt_text(data: Mapping[str, Any]) -> tuple[str, int]:
    prompt = data.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], str):
        prompt = prompt[0]
    if isinstance(prompt, str):
        return prompt, len(prompt.split())
    if isinstance(prompt, list) and prompt and all(type(token) is int for token in prompt):
        return " ".join(map(str, prompt)), len(prompt)
    raise bad_field("prompt", "a string, a list of one string, or a list of token numbers")


def _chat_text(data: Mapping[str, Any]) -> tuple[str, int]:
    messages = data.get("messages")
    if not isinstance(messages, list) or not messages:
        raise bad_field("messages", "a list of at least one message")
    text = "\n".join(_message_text(message, i) for i, message in enumerate(messages))
    return text, len(text.split())


def _message_text(message: Any, i: int) -> str:
    where = f"messages[{i}]"
    if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
        raise bad_field(f"{where}.role", "the role of a message")
    content = message.get("content")
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(part, Mapping) for part in content):
        texts = [part.get("text", "") for part in content]
        if all(isinstance(text, str) for text in texts):
            return "\n".join(texts)
    raise bad_field(f"{where}.content", "a string or a list of text parts")


def usage(prompt_tokens: int, output_tokens: int) -> dict[str, int]:
    """OpenAI's usage object."""
    total = prompt_tokens + output_tokens
    return {
        "prompt_tokens": prompt_tokens, "completion_tokens": output_tokens, "total_tokens": total,
    }  # fmt: skip


def whole_reply(
    request: Request, reply_id: str, created: int, words: list[str], finish_reason: str
) -> bytes:
    """The body of an answer that is not streamed."""
    text = " ".join(words)
    choice: dict[str, Any] = {"index": 0, "logprobs": None, "finish_reason": finish_reason}
    choice |= (
        {"message": {"role": "assistant", "content": text}} if request.chat else {"text": text}
    )
    return orjson.dumps(
        {
            "id": reply_id,
            "object": "chat.completion" if request.chat else "text_completion",
            "created": created,
            "model": request.model,
            "choices": [choice],
            "usage": usage(request.prompt_tokens, len(words)),
        }
    )


class Sse:
    """The server-sent events of one streamed answer, the constant parts rendered once."""

    def __init__(self, request: Request, reply_id: str, created: int) -> None:
        self._request = request
        self._base: dict[str, Any] = {
            "id": reply_id,
            "object": "chat.completion.chunk" if request.chat else "text_completion",
            "created": created,
            "model": request.model,
        }
        self._before, self._after = self._around_text()

    def _around_text(self) -> tuple[bytes, bytes]:
        # A place that orjson leaves as it is, and that no other field contains.
        mark = '"\x7f"'
        part: dict[str, Any] = (
            {"delta": {"content": "\x7f"}} if self._request.chat else {"text": "\x7f"}
        )
        choice = {"index": 0, **part, "logprobs": None, "finish_reason": None}
        before, after = self._event([choice]).split(mark.encode(), 1)
        return before, after

    def _event(self, choices: list[dict[str, Any]], **more: Any) -> bytes:
        return b"data: " + orjson.dumps(self._base | {"choices": choices} | more) + b"\n\n"

    def opening(self) -> bytes:
        """Chat's role-only chunk, before any token; nothing for completions."""
        if not self._request.chat:
            return b""
        delta = {"role": "assistant", "content": ""}
        return self._event([{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}])

    def token(self, text: str) -> bytes:
        """The chunk of one token."""
        return self._before + orjson.dumps(text) + self._after

    def closing(self, finish_reason: str, output_tokens: int) -> bytes:
        """The finish chunk, the usage chunk when asked for, and [DONE]."""
        empty: dict[str, Any] = {"delta": {}} if self._request.chat else {"text": ""}
        choice = {"index": 0, **empty, "logprobs": None, "finish_reason": finish_reason}
        events = self._event([choice])
        if self._request.include_usage:
            counts = usage(self._request.prompt_tokens, output_tokens)
            events += self._event([], usage=counts)
        return events + b"data: [DONE]\n\n"


def model_list(model: str, created: int) -> bytes:
    """The body of /v1/models."""
    entry = {"id": model, "object": "model", "created": created, "owned_by": OWNER}
    return orjson.dumps({"object": "list", "data": [entry]})
