"""The bytes of the truth server: what its answers look like, and the numbers a body asks for."""

from __future__ import annotations

import json
import re

MODEL = "truth"
_ID = "chatcmpl-0123456789abcdef0123"


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def _event(delta: str, finish: str = "null") -> bytes:
    text = (
        f'data: {{"id":"{_ID}","object":"chat.completion.chunk","created":1700000000,'
        f'"model":"{MODEL}","choices":[{{"index":0,"delta":{{{delta}}},'
        f'"logprobs":null,"finish_reason":{finish}}}]}}\n\n'
    )
    return _chunk(text.encode())


_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
    b"Cache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n"
)
TOKEN = _event('"content":" token"')
FIRST = _HEAD + _event('"role":"assistant","content":" token"')


def end_of(tokens: int, prompt_tokens: int) -> bytes:
    """What comes after the last token: finish reason, usage, [DONE], end of body."""
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": tokens}
    usage["total_tokens"] = sum(usage.values())
    last = {
        "id": _ID, "object": "chat.completion.chunk", "created": 1700000000, "model": MODEL,
        "choices": [], "usage": usage,
    }  # fmt: skip
    tail = b"data: " + json.dumps(last).encode() + b"\n\n"
    return _event("", '"length"') + _chunk(tail) + _chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"


def plain(status: bytes, body: bytes) -> bytes:
    """A whole JSON answer."""
    head = b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    return head % (status, len(body)) + body


def asked(body: bytes, name: bytes) -> float | None:
    """The number that a JSON body gives for a name; unparsed, for a body may be a megabyte.

    A name between two bare quotes stands in no JSON text: quotes in texts are escaped.
    """
    start = body.rfind(b'"%s"' % name)
    found = re.compile(rb'"\w+"\s*:\s*([0-9.]+)').match(body, start) if start >= 0 else None
    return float(found[1]) if found else None
