"""Columns of the evidence tables: name, dtype, unit, and what a null means.

One table answers one question: `requests` what became of each logical request,
`attempts` what each try did, `chunks` when tokens came, `tools` where external
time went, `metrics` what the server said. All times are float64 seconds from
run start and null when the thing did not happen. CONTRACT "Evidence folder".
"""

from __future__ import annotations

import pyarrow as pa

_S = "s"
_TOKENS = "tokens"


def _field(name: str, dtype: pa.DataType, doc: str, unit: str = "") -> pa.Field:
    return pa.field(name, dtype, metadata={"unit": unit, "doc": doc})


def _time(name: str, doc: str) -> pa.Field:
    return _field(name, pa.float64(), doc, _S)


def _tokens(name: str, doc: str) -> pa.Field:
    return _field(name, pa.int64(), doc, _TOKENS)


def _text(name: str, doc: str) -> pa.Field:
    return _field(name, pa.string(), doc)


REQUESTS = pa.schema(
    [
        _text("request_id", "logical request, unique in the run"),
        _text("workflow_id", "piece of work it belongs to; the request itself when alone"),
        _text("class", "service class"),
        _text("case", "case id, null when not a case"),
        _text("session", "session id, null when single"),
        _field("turn", pa.int64(), "turn in the session, from 1; null when single"),
        _time("intended_s", "intended arrival"),
        _time("deadline_s", "deadline from intended arrival; null when none"),
        _text("outcome", "outcome of the last attempt, see OUTCOMES"),
        _field("attempts", pa.int64(), "tries sent; 0 for a request never sent"),
        _field("fallback", pa.bool_(), "answered by the fallback model"),
        _field("in_window", pa.bool_(), "intended arrival lies in the measurement window"),
        _tokens("prompt_tokens", "of the attempt that counted; null when not observed"),
        _tokens("output_tokens", "of the attempt that counted; null when not observed"),
        _time("first_token_s", "first generated token of any channel"),
        _time("first_visible_token_s", "first token a reader sees"),
        _time("last_token_s", "last generated token"),
        _time("end_s", "end of the attempt that counted"),
    ]
)

ATTEMPTS = pa.schema(
    [
        _text("request_id", "logical request"),
        _field("attempt", pa.int64(), "number of the try, from 1"),
        _time("sent_s", "request written to the socket"),
        _time("first_byte_s", "first byte of the response"),
        _time("first_token_s", "first generated token of any channel"),
        _time("first_visible_token_s", "first token a reader sees"),
        _time("last_token_s", "last generated token"),
        _time("end_s", "end of the stream or of the failure"),
        _tokens("prompt_tokens", "as the server counted; null when it did not say"),
        _tokens("output_tokens", "see token_count_source; null when unknown"),
        _tokens("reasoning_tokens", "part of output_tokens"),
        _tokens("cached_tokens", "part of prompt_tokens served from cache"),
        _tokens("drafted_tokens", "speculative tokens proposed"),
        _tokens("accepted_draft_tokens", "speculative tokens kept"),
        _text("outcome", "see OUTCOMES"),
        _field("http_status", pa.int64(), "null when no response head came"),
        _text("error_kind", "see ERROR_KINDS; null when completed"),
        _text("finish_reason", "as the server said"),
        _field("tool_calls", pa.int64(), "tool calls in the answer; null when not observed"),
        _time("queue_s", "duration the server says it queued; null when it does not say"),
        _time("prefill_s", "duration of prefill as the server says"),
        _time("decode_s", "duration of decode as the server says"),
        _text("phase_grade", "measured, derived or not_observable"),
        _text("token_count_source", "usage, stream, tokenizer or chunks; null when none"),
        _text("connection", "new, reused or resent; null when none was made"),
        _text("stamp_source", "kernel or user: who read the clock when bytes came"),
        _field("receives", pa.int64(), "receives that brought token-bearing chunks"),
        _time(
            "first_token_after_s",
            "stamp of the receive before, where the first token shared its receive with a later"
            " one, so that it came after this and by first_token_s; null when it came alone",
        ),
    ]
)

CHUNKS = pa.schema(
    [
        _text("request_id", "logical request"),
        _field("attempt", pa.int64(), "number of the try"),
        _field("first_us", pa.int64(), "first token-bearing chunk, from run start", "us"),
        _field("gap_us", pa.list_(pa.int32()), "time between token-bearing chunks", "us"),
        _field(
            "tokens",
            pa.list_(pa.int16()),
            "tokens in each chunk, one longer than gap_us; null where unknown",
            _TOKENS,
        ),
    ]
)

TOOLS = pa.schema(
    [
        _text("workflow_id", "piece of work"),
        _text("request_id", "request whose answer called the tool"),
        _text("name", "tool"),
        _time("start_s", "call started"),
        _time("end_s", "call ended; null when it did not"),
        _field("ok", pa.bool_(), "whether it completed"),
    ]
)

METRICS = pa.schema(
    [
        _time("at_s", "scrape"),
        _text("name", "series as the server names it"),
        _text("labels", "canonical JSON of the labels"),
        _field("value", pa.float64(), "sample"),
    ]
)

TABLES: dict[str, pa.Schema] = {
    "requests": REQUESTS,
    "attempts": ATTEMPTS,
    "chunks": CHUNKS,
    "tools": TOOLS,
    "metrics": METRICS,
}

# Columns that evidence of earlier versions lacks; they read as null there.
LATER: dict[str, set[str]] = {
    "attempts": {"stamp_source", "receives", "first_token_after_s"},
}

# A request has exactly one of these; attempted = the sum of all nine.
OUTCOMES = (
    "completed",
    "failed",
    "timed_out",
    "cancelled",
    "rejected",
    "shed",
    "deferred",
    "interrupted",
    "censored",
)

# Outcomes of a request that was never sent.
NEVER_SENT = ("shed", "deferred")

ERROR_KINDS = (
    "empty_response",
    "stream_error",
    "truncated",
    "connection_reset",
    "connect",
    "dns",
    "tls",
    "http_4xx",
    "http_5xx",
    "bad_response",
    "timeout",
)

GRADES = ("measured", "derived", "declared", "not_observable")
