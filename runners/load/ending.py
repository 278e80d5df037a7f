"""How a run may end, as run.json says it; docs/methods/load.md "How a run ends"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from records.errors import BadInput, HostNotAllowed, ImpaktError, WrongKey

State = Literal["completed", "stopped", "interrupted", "failed"]
# What end.reason says of what kept a run from starting, where it is not the endpoint.
_REASONS = {BadInput: "bad_input", WrongKey: "wrong_key", HostNotAllowed: "host_not_allowed"}


@dataclass(frozen=True)
class End:
    """How the replay ended."""

    state: State
    reason: str
    text: str | None = None
    ended_s: float | None = None
    error: ImpaktError | None = None


def never_started(error: ImpaktError) -> End:
    """The end of a run that this kept from sending any load."""
    reason = _REASONS.get(type(error), "endpoint_unreachable")
    return End("failed", reason, str(error), None, error)


def asked_to(stop: bool | str) -> End:
    """The end of a run whose `should_stop` said so."""
    if stop == "interrupted":
        return End("interrupted", "shutdown", "the worker was shut down")
    return End("stopped", "stopped", "stopped by a person")
