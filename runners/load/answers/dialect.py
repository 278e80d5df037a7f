"""What the chunks of an OpenAI-compatible stream look like: bytes in, one shape out.

`typed` decodes only the fields that count, without objects that the garbage collector would
have to walk, and raises UNFIT for what its types do not hold. `general` takes any JSON object
and bends it into the same shape. Where both give a chunk, both give the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec
import orjson

# So much of what could not be read is kept as evidence.
_SHOWN = 120
_COUNTABLE = 2**53


class BadEvent(ValueError):
    """An event whose data is not what a chat or completion chunk may be."""


class Function(msgspec.Struct, gc=False):
    """The function of a tool call, in pieces."""

    name: str | None = None
    arguments: str | None = None


class Call(msgspec.Struct, gc=False):
    """A piece of a tool call."""

    index: int | None = None
    id: str | None = None
    function: Function | None = None


class Delta(msgspec.Struct, gc=False):
    """What a chunk adds to one choice."""

    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[Call] | None = None
    refusal: str | None = None
    function_call: Function | None = None
    reasoning_details: Any = None


class Choice(msgspec.Struct, gc=False):
    """One choice of a chunk; the completions API has its text here instead of a delta."""

    index: int | None = None
    delta: Delta | None = None
    text: str | None = None
    finish_reason: str | None = None


class Details(msgspec.Struct, gc=False):
    """The breakdown of prompt or completion tokens."""

    reasoning_tokens: int | None = None
    cached_tokens: int | None = None


class Usage(msgspec.Struct, gc=False):
    """What the server counted, so far or in all."""

    completion_tokens: int | None = None
    prompt_tokens: int | None = None
    completion_tokens_details: Details | None = None
    prompt_tokens_details: Details | None = None


class Chunk(msgspec.Struct, gc=False):
    """One event of a stream, or a whole answer whose messages were put where deltas are.

    Every field more would cost the decoder time at each event, so what an error looks like
    without this field only `general` knows.
    """

    choices: list[Choice] | None = None
    usage: Usage | None = None
    error: Any = None


typed = msgspec.json.Decoder(Chunk).decode
UNFIT = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def chunk_of(data: bytes) -> Chunk:
    """The chunk that `data` is; BadEvent when it is none."""
    try:
        if not data.isascii():
            # The fields that are skipped are not looked at closely: none may be broken.
            data.decode()
        chunk = typed(data)
    except UNFIT:
        return general(data)
    return chunk if chunk.choices else general(data)


def general(data: bytes, inner: str = "delta") -> Chunk:
    """The same from any JSON object; what has an odd type counts as not there."""
    value = parse_object(data)
    choices, error = value.get("choices"), value.get("error")
    if value.get("object") == "error" and not choices:
        # As vLLM says it: the object itself is the error.
        error = error or value
    if isinstance(error, dict) and error and not error.get("message"):
        error = value.get("message") or error
    return Chunk(
        choices=[_choice(c, inner) for c in _mappings(choices)] if _is_list(choices) else None,
        usage=_usage(value.get("usage")),
        error=error,
    )


def parse_object(data: bytes) -> dict[str, Any]:
    """The JSON object in `data`; BadEvent when it is not one."""
    value = parse(data)
    if not isinstance(value, dict):
        raise BadEvent(f"data that is not a JSON object: {shown(data)}")
    return value


def parse(data: bytes) -> Any:
    """The JSON value in `data`; BadEvent when it is none."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass
    # Half a surrogate pair, which a server may split over two chunks, is JSON too.
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadEvent(f"data that is not JSON ({error}): {shown(data)}") from error


def shown(data: bytes) -> str:
    """The first bytes of what could not be read, for a person."""
    return repr(data[:_SHOWN]) + (" ..." if len(data) > _SHOWN else "")


def count_of(value: Any) -> int | None:
    """A number of tokens or an index; None for what cannot be one."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < _COUNTABLE else None


def details_of(delta: Delta) -> str:
    """The readable part of OpenRouter's `reasoning_details`."""
    details = _mappings(delta.reasoning_details)
    return "".join(_parts(d.get("text")) or _parts(d.get("summary")) for d in details)


def mended(text: str) -> str:
    """`text` with surrogate pairs that were split over chunks put together again."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _choice(value: Mapping[str, Any], inner: str) -> Choice:
    delta = value.get(inner)
    return Choice(
        index=count_of(value.get("index")),
        delta=_delta(delta) if isinstance(delta, Mapping) else None,
        text=_parts(value.get("text")),
        finish_reason=_text(value.get("finish_reason")),
    )


def _delta(value: Mapping[str, Any]) -> Delta:
    """A delta out of anything; thinking among the parts of a content is reasoning."""
    content, calls = value.get("content"), value.get("tool_calls")
    thought = "".join(_parts(p.get("thinking")) for p in _mappings(content))
    return Delta(
        content=_parts(content),
        reasoning_content=_parts(value.get("reasoning_content")) or thought,
        reasoning=_parts(value.get("reasoning")),
        tool_calls=[_call(c) for c in _mappings(calls)] if _is_list(calls) else None,
        refusal=_parts(value.get("refusal")),
        function_call=_function(value.get("function_call")),
        reasoning_details=value.get("reasoning_details"),
    )


def _call(value: Mapping[str, Any]) -> Call:
    return Call(
        index=count_of(value.get("index")),
        id=_text(value.get("id")),
        function=_function(value.get("function")),
    )


def _function(value: Any) -> Function | None:
    if not isinstance(value, Mapping):
        return None
    return Function(name=_parts(value.get("name")), arguments=_parts(value.get("arguments")))


def _usage(value: Any) -> Usage | None:
    if not isinstance(value, Mapping):
        return None
    return Usage(
        completion_tokens=count_of(value.get("completion_tokens")),
        prompt_tokens=count_of(value.get("prompt_tokens")),
        completion_tokens_details=_details(value.get("completion_tokens_details")),
        prompt_tokens_details=_details(value.get("prompt_tokens_details")),
    )


def _details(value: Any) -> Details | None:
    if not isinstance(value, Mapping):
        return None
    return Details(
        reasoning_tokens=count_of(value.get("reasoning_tokens")),
        cached_tokens=count_of(value.get("cached_tokens")),
    )


def _parts(value: Any) -> str:
    """A text, or the texts of a list of parts put together."""
    if isinstance(value, str):
        return value
    return "".join(_parts(p.get("text")) for p in _mappings(value))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [v for v in value if isinstance(v, Mapping)] if isinstance(value, list) else []
