"""Kinds of answers met in the field, each with what must be read of it, whatever the transport."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from tests.runners.load.server import sse, token, usage

HEAD = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
LENGTH = "HTTP/1.1 200 OK\r\nContent-Length: "
THREE = [token("a"), token("b"), token("c", "stop")]
COMPLETED = {"outcome": "completed", "error_kind": None, "http_status": 200}
# Three chunks and their count by the server: what most kinds below carry.
WHOLE = sse(*THREE, usage(5, 3))
READ = {**COMPLETED, "output_tokens": 3, "prompt_tokens": 5, "token_count_source": "usage"}


@dataclass(frozen=True)
class Kind:
    """A response of the scripted server, and what must come of it in the evidence."""

    response: dict[str, Any]
    attempt: dict[str, Any] = field(default_factory=lambda: READ)
    output: dict[str, Any] = field(default_factory=lambda: {"text": "abc"})
    # Tokens of each chunk; "sum" checks only that they add up to the output tokens.
    tokens: list[int] | str | None = None
    # What the evidence must keep of the answer to show why it failed.
    error: str | None = None


def fails(response: dict[str, Any], kind: str, error: str | None = None, **columns: Any) -> Kind:
    """A kind that must come out as a failure of this error kind."""
    attempt = {"outcome": "failed", "error_kind": kind, **columns}
    return Kind(response, attempt, {}, error=error)


def at_once(text: str | bytes, **more: Any) -> dict[str, Any]:
    """The whole body in one write, a moment after the head."""
    return {"events": [[20, text]], **more}


def in_pieces(data: bytes, *cuts: int, **more: Any) -> dict[str, Any]:
    """`data` in writes that end at these places, 15 ms apart."""
    ends = [0, *cuts, len(data)]
    pieces = [data[a:b] for a, b in pairwise(ends)]
    return {"events": [[20 + 15 * i, piece] for i, piece in enumerate(pieces)], **more}


def raw(text: str | bytes, keep: bool = True) -> dict[str, Any]:
    """Bytes as they stand, status line and framing included."""
    return {"raw": True, "keep": keep, "events": [[20, text]]}


def chunk(data: bytes) -> bytes:
    """`data` as one chunk of a chunked body."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def delta(index: int = 0, finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """A chat chunk with any delta, of any choice."""
    return {"choices": [{"index": index, "delta": fields, "finish_reason": finish}]}


def call(name: str, arguments: str, index: int = 0) -> list[dict[str, Any]]:
    """A tool call's part of a delta."""
    function = {"name": name, "arguments": arguments} if name else {"arguments": arguments}
    return [{"index": index, "id": f"call-{name}", "function": function}]


def counted(chunk: dict[str, Any], total: int) -> dict[str, Any]:
    """A chunk that carries the running total of output tokens."""
    return {**chunk, "usage": {"prompt_tokens": 5, "completion_tokens": total}}


BYTES = WHOLE.encode()
EVENTS = BYTES.removesuffix(b"\n\n").split(b"\n\n")
ACCENT = sse(token("é"), token("b"), token("c", "stop"), usage(5, 3)).replace("\\u00e9", "é")
IN_ACCENT = ACCENT.encode().index("é".encode()) + 1
FIRST = len(sse(token("a"), done=False))
SPLIT = "".join(
    'data: {"choices": [{"index": 0,\ndata: "delta": {"content":\n'
    f'data: "{text}"}}, "finish_reason": {finish}}}]}}\n\n'
    for text, finish in (("a", "null"), ("b", "null"), ("c", '"stop"'))
)
NAMED = "retry: 10\n\n" + WHOLE.replace("data:", "id: 7\nevent: message\ndata:")
HUGE = "x" * (2 << 20)
FRAMED: dict[str, Kind] = {
    "several events in one segment": Kind(at_once(WHOLE), tokens=[1, 1, 1]),
    "several chunks in one segment": Kind(
        raw(HEAD.encode() + b"".join(chunk(e + b"\n\n") for e in EVENTS) + b"0\r\n\r\n"),
        {**READ, "receives": 1},
        tokens=[1, 1, 1],
    ),
    "one event over many segments": Kind(in_pieces(BYTES, 3, 9, 20, 41, FIRST - 1)),
    "one event over many segments of one HTTP chunk": Kind(
        in_pieces(
            HEAD.encode() + chunk(BYTES) + b"0\r\n\r\n", 10, 90, 140, 200, raw=True, keep=True
        )
    ),
    "a character cut in two": Kind(in_pieces(ACCENT.encode(), IN_ACCENT), output={"text": "ébc"}),
    "a chunk size cut in two": Kind(
        in_pieces(HEAD.encode() + chunk(BYTES) + b"0\r\n\r\n", len(HEAD) + 1, raw=True, keep=True)
    ),
    "a body whose middle looks like its end": Kind(
        raw(
            HEAD.encode()
            + b"".join(chunk(d + b": 0\r\n\r\n") for d in (BYTES[:FIRST], BYTES[FIRST:]))
            + b"0\r\n\r\n"
        )
    ),
    "CRLF": Kind(at_once(WHOLE.replace("\n", "\r\n")), tokens=[1, 1, 1]),
    "CR": Kind(at_once(WHOLE.replace("\n", "\r"))),
    "a byte order mark": Kind(at_once("\ufeff" + WHOLE)),
    "comments": Kind(at_once(": a\n\n: b\n" + WHOLE.replace("\n\n", "\n: ping\n\n"))),
    "names and ids": Kind(at_once(NAMED)),
    "data over several lines": Kind(at_once(SPLIT + sse(usage(5, 3)))),
    "no space after the colon": Kind(at_once(WHOLE.replace("data: ", "data:"))),
    "a huge event": Kind(
        at_once(sse(token(HUGE, "stop"), usage(5, 400_000))),
        {**READ, "output_tokens": 400_000},
        {"text": HUGE},
    ),
    "gzip": Kind(at_once(WHOLE, gzip=True)),
    "gzip, event by event": Kind(in_pieces(BYTES, FIRST, 2 * FIRST, gzip=True)),
    "gzip with a length": Kind(at_once(WHOLE, gzip=True, framing="length")),
    "trailers": Kind(at_once(WHOLE, trailers={"X-Checksum": "7", "X-Other": "8"})),
    "chunk extensions": Kind(at_once(WHOLE, extension=';name="va;lue";other')),
    "a body with a length": Kind(in_pieces(BYTES, FIRST, framing="length")),
    "a body ended by close": Kind(at_once(WHOLE, framing="none")),
    "interim responses": Kind(at_once(WHOLE, interim=[100, 103, 103])),
    "a late head": Kind(at_once(WHOLE, headers_at_ms=15)),
    "a head in small letters without spaces": Kind(
        raw(b"HTTP/1.1 200\r\ntransfer-encoding:Chunked\r\n\r\n" + chunk(BYTES) + b"0\r\n\r\n")
    ),
    "HTTP/1.0": Kind(raw("HTTP/1.0 200 OK\r\n\r\n" + WHOLE, keep=False)),
}

JSON_ANSWER = {
    "choices": [{"index": 0, "message": {"content": "abc"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 5, "completion_tokens": 3},
}
NO_TIMES = {"first_token_s": None, "first_visible_token_s": None, "last_token_s": None}

SAID: dict[str, Kind] = {
    "plain JSON": Kind(at_once(json.dumps(JSON_ANSWER)), {**READ, **NO_TIMES}),
    "plain JSON in pieces, after spaces": Kind(
        in_pieces(("\n " + json.dumps(JSON_ANSWER, indent=2)).encode(), 1, 5, 40, framing="length"),
        {**READ, **NO_TIMES},
    ),
    "usage on every chunk": Kind(
        at_once(sse(counted(THREE[0], 2), counted(THREE[1], 4), counted(THREE[2], 7))),
        {**READ, "output_tokens": 7},
        tokens=[2, 2, 3],
    ),
    "usage at the end only, more than chunks": Kind(
        at_once(sse(*THREE, usage(5, 7))), {**READ, "output_tokens": 7}
    ),
    "usage null until the end": Kind(
        at_once(sse(*({**c, "usage": None} for c in THREE), usage(5, 3))), tokens=[1, 1, 1]
    ),
    "usage never": Kind(
        at_once(sse(*THREE)),
        {**COMPLETED, "output_tokens": 3, "prompt_tokens": None, "token_count_source": "chunks"},
    ),
    "usage that grows under empty deltas": Kind(
        at_once(sse(
            counted(delta(role="assistant", content=""), 0), counted(token(""), 1),
            counted(token("ab"), 2), counted(token(""), 3), counted(token("c", "stop"), 4),
        )),
        {**READ, "output_tokens": 4},
        tokens="sum",
    ),
    "reasoning, then text": Kind(
        at_once(sse(
            delta(reasoning_content="x"), delta(reasoning_content="y"), token("a", "stop"),
            usage(5, 3),
        )),
        {**READ, "reasoning_tokens": 2},
        {"text": "a", "reasoning": "xy"},
    ),
    "reasoning under both names": Kind(
        at_once(sse(
            delta(reasoning="x", reasoning_content="x"), token("a"), token("b", "stop"),
            usage(5, 3),
        )),
        READ,
        {"text": "ab", "reasoning": "x"},
    ),
    "a tool call in parts": Kind(
        at_once(sse(
            delta(tool_calls=call("f", "")), delta(tool_calls=call("", '{"x":')),
            delta(tool_calls=call("", "1}")), delta(finish="tool_calls"), usage(5, 3),
        )),
        {**READ, "tool_calls": 1, "finish_reason": "tool_calls", "first_visible_token_s": None},
        {"text": None, "tool_calls": [{"id": "call-f", "name": "f", "arguments": '{"x":1}'}]},
    ),
    "two tool calls in turn": Kind(
        at_once(sse(
            delta(tool_calls=call("f", "1")), delta(tool_calls=call("g", "2", 1)),
            delta(tool_calls=call("", "3", 1)), delta(finish="tool_calls"), usage(5, 3),
        )),
        {**READ, "tool_calls": 2},
        {"tool_calls": [
            {"id": "call-f", "name": "f", "arguments": "1"},
            {"id": "call-g", "name": "g", "arguments": "23"},
        ]},
    ),
    "events that carry nothing": Kind(
        at_once(WHOLE.replace("data: ", "data:\n\nevent: ping\ndata: \n\ndata: "))
    ),
    "a refusal": Kind(
        at_once(sse(delta(refusal="I "), delta(refusal="can"), delta(refusal="not"),
                    delta(finish="stop"), usage(5, 3))),
        READ,
        {"text": "I cannot"},
    ),
    "two choices with tool calls in both": Kind(
        at_once(sse(
            delta(0, tool_calls=call("f", "1")), delta(1, tool_calls=call("g", "2")),
            delta(0, tool_calls=call("", "3")), delta(1, tool_calls=call("", "4")),
            delta(0, "tool_calls"), delta(1, "tool_calls"), usage(5, 8),
        )),
        {**READ, "tool_calls": 2, "output_tokens": 8, "finish_reason": "tool_calls"},
        {"tool_calls": [
            {"id": "call-f", "name": "f", "arguments": "13"},
            {"id": "call-g", "name": "g", "arguments": "24"},
        ]},
    ),
}  # fmt: skip

PAGE = "<html><title>Please sign in</title></html>"
ERROR = '{"error": {"message": "out of memory", "code": 500}}'
FAILED: dict[str, Kind] = {
    "a page instead of a stream": fails(at_once(PAGE), "bad_response", "Please sign in"),
    "bytes of nothing": fails(at_once(b"\x00\x01\x02garbage-7f"), "bad_response", "garbage-7f"),
    "an event that is not JSON": fails(
        at_once(sse(token("a"), done=False) + "data: {nonsense-7f\n\n"),
        "bad_response",
        "nonsense-7f",
    ),
    "an event that is no object": fails(at_once("data: [1234567]\n\n"), "bad_response", "1234567"),
    "not HTTP": fails(raw("SSH-2.0-OpenSSH_9.2\r\n\r\n", keep=False), "bad_response", "SSH-2.0"),
    "a chunk size that is none": fails(raw(HEAD + "zz-7f\r\nabc\r\n"), "bad_response"),
    "a body that is not gzip": fails(
        at_once("not-gzip-7f", headers={"Content-Encoding": "gzip"}), "bad_response"
    ),
    "an error object in a stream": fails(
        at_once(sse(token("a"), json.loads(ERROR))), "stream_error", "out of memory"
    ),
    "an error object instead of a stream": fails(at_once(ERROR), "stream_error", "out of memory"),
    "an error event": fails(
        at_once('event: error\ndata: {"message": "out of memory"}\n\n'),
        "stream_error",
        "out of memory",
    ),
    "a finish reason that says error": fails(
        at_once(sse(token("a"), token("", "error"))), "stream_error"
    ),
    "cleanly truncated": fails(at_once(sse(*THREE[:2], done=False)), "truncated"),
    "truncated, ended by close": fails(
        at_once(sse(*THREE[:2], done=False), framing="none"), "truncated"
    ),
    "less than the promised length": fails(
        raw(f"{LENGTH}{len(WHOLE)}\r\n\r\n{WHOLE[:FIRST]}", keep=False), "truncated"
    ),
    "cut in an event": fails(at_once(WHOLE[: FIRST + 20], end="cut"), "truncated"),
    "no answer but an end": fails(at_once("data: [DONE]\n\n"), "empty_response"),
    "an empty body": fails({"framing": "length"}, "empty_response"),
    "no content": fails(raw("HTTP/1.1 204 No Content\r\n\r\n"), "empty_response", http_status=204),
    "a redirect": fails(
        {"status": 307, "headers": {"Location": "https://elsewhere.example/?key=7f"}},
        "bad_response",
        "a redirect to elsewhere.example, not followed",
        http_status=307,
    ),
    "a refusal that breaks off": fails(
        raw("HTTP/1.1 500 X\r\nContent-Length: 500\r\n\r\nout of memory", keep=False),
        "http_5xx",
        "out of memory",
        http_status=500,
    ),
}
KINDS = FRAMED | SAID | FAILED
