"""One line of an arrival trace: its fields, and what each must be.

`FIELDS` is the whole of `impakt.trace/1` (CONTRACT, "Arrival trace"): a new
field is a line there and an attribute of `TraceRequest`. A key that is not in
the table is refused, because a misspelt one would silently change the demand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from records.errors import BadTrace
from records.traces import values
from records.traces.values import Check, Wrong

SCHEMA = "impakt.trace/1"
DEFAULT_CLASS = "default"
PROMPT_FORMS = ("prompt", "messages", "prompt_tokens")
# What `prompt_hash` covers and `demand_hash` leaves out. Tools are part of the
# text a model reads, so they count with the prompts.
PROMPT_FIELDS = frozenset({*PROMPT_FORMS, "prefix", "tools"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRequest:
    """One request to send: when, for whom, what, and how long its user waits.

    `at_s` is seconds from the start of the trace; `cancel_after_s` and
    `deadline_s` count from the intended arrival, `timeout_s` from each send.
    Exactly one of `prompt`, `messages`, `prompt_tokens` is set; the rest is
    None where the trace says nothing.
    """

    id: str
    at_s: float
    service_class: str = DEFAULT_CLASS
    prompt: str | None = None
    messages: list[dict[str, Any]] | None = None
    prompt_tokens: int | None = None
    prefix: list[dict[str, Any]] | None = None
    max_output_tokens: int | None = None
    case: str | None = None
    difficult: bool = False
    workflow: str | None = None
    session: str | None = None
    turn: int | None = None
    think_s: float | None = None
    tool_s: float | None = None
    cancel_after_s: float | None = None
    deadline_s: float | None = None
    timeout_s: float | None = None
    tools: list[dict[str, Any]] | None = None
    sampling: dict[str, Any] | None = None

    @property
    def workflow_id(self) -> str:
        """The piece of work this request belongs to: its own id unless the trace groups it."""
        return self.workflow if self.workflow is not None else self.id

    def line(self) -> dict[str, Any]:
        """The request as a JSON object in canonical form.

        `id`, `at_s` and `class` always; every other key only where it says
        something (an absent value and `difficult: false` are left out).
        """
        out: dict[str, Any] = {"id": self.id, "at_s": self.at_s, "class": self.service_class}
        for key in _OPTIONAL:
            value = getattr(self, key)
            if value is not None and value is not False:
                out[key] = value
        return out


FIELDS: dict[str, Check] = {
    "id": values.header_text,
    "at_s": values.seconds,
    "class": values.name,
    "prompt": values.text,
    "messages": values.messages,
    "prompt_tokens": values.tokens,
    "prefix": values.prefix,
    "max_output_tokens": values.tokens,
    "case": values.name,
    "difficult": values.flag,
    "workflow": values.name,
    "session": values.name,
    "turn": values.tokens,
    "think_s": values.seconds,
    "tool_s": values.seconds,
    "cancel_after_s": values.seconds,
    "deadline_s": values.seconds,
    "timeout_s": values.seconds_above_zero,
    "tools": values.objects,
    "sampling": values.mapping,
}
_OPTIONAL = tuple(key for key in FIELDS if key not in {"id", "at_s", "class"})


def check_line(raw: Any, where: str, default_id: str, before_s: float) -> TraceRequest:
    """The request a parsed line states; BadTrace names `where` and the field otherwise.

    `before_s` is the arrival on the line above, which this one may equal but
    not precede.
    """
    if not isinstance(raw, Mapping):
        raise BadTrace(where, None, f"a JSON object, not {values.shown(raw)}")
    fields = _checked_fields(raw, where)
    at_s = fields.get("at_s")
    if at_s is None:
        raise BadTrace(where, "at_s", "seconds from the start of the trace, which every line needs")
    if at_s < before_s:
        raise BadTrace(
            where,
            "at_s",
            f"a number of seconds, never before the line above ({before_s:g} s), not {at_s:g}",
        )
    _check_prompt(fields, where)
    fields.setdefault("id", default_id)
    if "class" in fields:
        fields["service_class"] = fields.pop("class")
    return TraceRequest(**fields)


def _checked_fields(raw: Mapping[str, Any], where: str) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, value in raw.items():
        check = FIELDS.get(key)
        if check is None:
            field = values.shortened(key)
            raise BadTrace(where, field, f"not a field of {SCHEMA}; known: {', '.join(FIELDS)}")
        if value is None:
            continue
        try:
            fields[key] = check(value)
        except Wrong as wrong:
            raise BadTrace(where, key, f"{wrong}, not {values.shown(value)}") from None
    return fields


def _check_prompt(fields: Mapping[str, Any], where: str) -> None:
    forms = [form for form in PROMPT_FORMS if form in fields]
    if len(forms) != 1:
        found = " and ".join(forms) if forms else "none of them"
        field = forms[1] if forms else "prompt"
        raise BadTrace(where, field, f"exactly one of {', '.join(PROMPT_FORMS)}, not {found}")
    blocks = fields.get("prefix")
    if blocks is None:
        return
    if forms != ["prompt_tokens"]:
        raise BadTrace(where, "prefix", f"only beside prompt_tokens, not beside {forms[0]}")
    shared = sum(block["tokens"] for block in blocks)
    if shared > fields["prompt_tokens"]:
        wanted = f"blocks of at most prompt_tokens ({fields['prompt_tokens']}) tokens together"
        raise BadTrace(where, "prefix", f"{wanted}, not {shared}")
