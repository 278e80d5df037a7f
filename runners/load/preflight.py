"""Whether the endpoint answers, takes our key and knows the model, before any load."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import orjson

from records.errors import EndpointUnreachable, OtherSideFailed, WrongKey
from runners.load.answers.body import PATHS
from runners.load.attempt import Broken
from runners.load.describe import public_url
from runners.load.plan import LoadPlan
from runners.load.tally import WRONG_KEY, Refusal
from runners.load.transports.seam import Transport

TIMEOUT_S = 10.0
# What the bundled simulator calls itself in /models.
SIMULATOR = "impakt-reference-endpoint"
_SHOWN_NAMES, _SHOWN = 5, 80
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Preflight:
    """What GET /models told. `simulated` is None when it could not tell.

    A warning is a note that a person should see before the load.
    """

    simulated: bool | None = None
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


async def look(transport: Transport, url: str, model: str) -> Preflight:
    """Asks the endpoint for its models, which also warms connection, DNS and JSON.

    EndpointUnreachable without any answer, naming host, port and cause; WrongKey
    on 401 and 403; HostNotAllowed where no load may go. A missing list or model is
    told only: some servers list none, or an alias.
    """
    try:
        status, body = await transport.get_models(TIMEOUT_S)
    except Broken as error:
        raise EndpointUnreachable(f"{url}: {_where(url)}: {error}") from error
    if status in WRONG_KEY:
        raise WrongKey(f"{url}: the endpoint refused the API key (HTTP {status})")
    if status != 200:
        return Preflight(notes=[f"GET /models answered HTTP {status}"])
    models = _models(body)
    if models is None:
        return Preflight(notes=["GET /models answered something that is no list of models"])
    simulated = any(m.get("owned_by") == SIMULATOR for m in models)
    names = [str(m["id"]) for m in models if m.get("id")]
    return Preflight(simulated, warnings=[] if model in names else [_missing(model, names)])


def _where(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.hostname} port {parts.port or _PORTS[parts.scheme]}"


def _missing(model: str, names: list[str]) -> str:
    shown = ", ".join(name[:_SHOWN] for name in names[:_SHOWN_NAMES])
    more = f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
    return f"GET /models does not list {model}; it lists {shown or 'none'}{more}"


def _models(body: bytes) -> list[dict[str, Any]] | None:
    try:
        data = orjson.loads(body)["data"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None
    if not isinstance(data, list):
        return None
    return [m for m in data if isinstance(m, dict)]


def refusal_error(refusal: Refusal, plan: LoadPlan) -> OtherSideFailed:
    """One line for an endpoint whose first answers were all the same refusal."""
    url = public_url(plan.url)
    if refusal.is_key:
        return WrongKey(f"{url}: the endpoint refused the API key (HTTP {refusal.status})")
    path = urlsplit(url).path.rstrip("/") + PATHS[plan.api]
    said = f": {refusal.said}" if refusal.said else ""
    return OtherSideFailed(
        f"{url}: every answer was HTTP {refusal.status} for POST {path}, model {plan.model}{said}"
    )
