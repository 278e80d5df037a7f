"""Bodies, their framing as HTTP, and what is read of them however their bytes are cut."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from runners.load.answers.answer import BadEvent
from runners.load.answers.body import BodyReader
from runners.load.attempt import Attempt
from runners.load.transports.fast.http1 import ResponseReader
from tests.runners.load.kinds import KINDS

CASES_FILE = Path(__file__).parents[2] / "samples" / "streams" / "cases.json"
TIMES = ("first_token_s", "first_visible_token_s", "last_token_s")
# Reading these one byte at a time takes too long.
_LONG = 100_000


@cache
def bodies() -> dict[str, bytes]:
    """Every body of the case file and of the kinds, by name."""
    cases = json.loads(CASES_FILE.read_text("utf-8"))
    responses = {case["id"]: case["responses"][-1] for case in cases}
    responses |= {
        name: kind.response for name, kind in KINDS.items() if not kind.response.get("raw")
    }
    joined = {name: _body(response) for name, response in responses.items()}
    return {name: body for name, body in joined.items() if 0 < len(body) < _LONG}


def _body(response: dict[str, Any]) -> bytes:
    encoding = "latin-1" if response.get("latin1") else "utf-8"
    return b"".join(
        data if isinstance(data, bytes) else data.encode(encoding)
        for _, data in response.get("events", [])
    )


@dataclass
class Read:
    """What was read: `said` must not depend on cuts; times do, in the way that `later` says."""

    said: dict[str, Any] = field(default_factory=dict)
    times: dict[str, float | None] = field(default_factory=dict)
    # When each token-bearing chunk came.
    chunks: list[float] = field(default_factory=list)
    receives: int = 0
    first_token_after_s: float | None = None


def read_body(pieces: Iterator[tuple[bytes, float]], end_s: float | None) -> Read:
    """Reads (bytes, time) pieces of a body; it ended cleanly at `end_s`, or not when None."""
    attempt = Attempt("r", 1)
    attempt.sent_s = -1.0
    reader = BodyReader(attempt.answer)
    bad = False
    try:
        for data, at_s in pieces:
            reader.feed(data, at_s)
        if end_s is not None:
            reader.end(end_s)
    except BadEvent:
        bad = True
    answer, row = attempt.answer, attempt.row()
    output, part = answer.output(), answer.take_part(text=False)
    return Read(
        said={
            "bad": bad, "counts": answer.counts(), "finish_reason": answer.finish_reason,
            "done": answer.done, "error": answer.error, "tokens": answer.has_tokens,
            "output": output, "totals": part and list(part.totals),
        },
        times={name: row[name] for name in TIMES},
        chunks=[us / 1e6 for us in part.times_us] if part else [],
        receives=row["receives"] or 0,
        first_token_after_s=row["first_token_after_s"],
    )  # fmt: skip


@cache
def byte_by_byte(name: str) -> Read:
    """The truth: each time is the number of bytes of the body that it took."""
    body = bodies()[name]
    pieces = ((body[i : i + 1], float(i + 1)) for i in range(len(body)))
    return read_body(pieces, len(body) + 1.0)


@dataclass(frozen=True)
class Wire:
    """A body as an HTTP response, and how many bytes of it each byte of the body needs."""

    data: bytes
    # needs[n]: bytes of `data` that bring the first n of the body; last: that end the body.
    needs: list[int]


HEAD = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
INTERIM = "HTTP/1.1 103 Early Hints\r\nLink: </s>\r\n\r\n"


def framed(body: bytes, ends: Sequence[int], framing: str) -> Wire:
    """The body with a length, until close, or in chunks that end at these places."""
    if framing == "length":
        head = f"{HEAD}Content-Length: {len(body)}\r\n\r\n".encode()
        needs = [len(head) + n for n in range(len(body) + 1)]
        return Wire(head + body, [*needs, needs[-1]])
    if framing == "close":
        head = f"{HEAD}\r\n".encode()
        needs = [len(head) + n for n in range(len(body) + 1)]
        return Wire(head + body, [*needs, needs[-1]])
    data = f"{INTERIM}{HEAD}Transfer-Encoding: chunked\r\n\r\n".encode()
    needs = [len(data)]
    for begin, end in pairwise(sorted({0, *ends, len(body)})):
        data += b"%x;n=1\r\n" % (end - begin)
        needs += [len(data) + n + 1 for n in range(end - begin)]
        data += body[begin:end] + b"\r\n"
    data += b"0\r\nX-Trailer: 1\r\n\r\n"
    return Wire(data, [*needs, len(data)])


def read_wire(wire: Wire, ends: list[int]) -> Read:
    """Reads the response in receives that end at these places, the last at the wire's end."""
    reader = ResponseReader()

    def pieces() -> Iterator[tuple[bytes, float]]:
        for begin, end in pairwise([0, *ends]):
            body = reader.feed(wire.data[begin:end])
            if body:
                yield body, float(end)
        if not reader.over:
            reader.eof()

    read = read_body(pieces(), float(ends[-1]))
    assert read.said["bad"] or (reader.over and reader.fault is None), reader.fault
    return read


def later(at: float | None, wire: Wire, ends: list[int]) -> float | None:
    """When a receive brings what takes the first `at` bytes of the body."""
    return None if at is None else float(ends[bisect_left(ends, wire.needs[int(at)])])
