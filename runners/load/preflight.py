"""Whether the endpoint answers, takes our key and knows the model, before any load."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import orjson

from records.errors import EndpointUnreachable, OtherSideFailed, WrongKey
from runners.load.answers.body import PATHS
from runners.load.attempt import Broken
from runners.load.plan import LoadPlan
from runners.load.tally import WRONG_KEY, Refusal
from runners.load.transports.seam import Transport
from runners.load.urls import host_and_port, public_url

TIMEOUT_S = 10.0
# What the bundled simulator calls itself in /models.
SIMULATOR = "impakt-reference-endpoint"
_SHOWN_NAMES, _SHOWN = 5, 80
# How a server answers where nothing is served: in HTTP's words, or with a page.
_NO_SUCH_PLACE = (404, 405, None)
_PROXY_KEY = 407
_VERSION = re.compile(r"/v\d+[a-z0-9]*(/|$)", re.ASCII)


@dataclass(frozen=True)
class Preflight:
    """What GET /models told. `simulated` is None when it could not tell.

    A warning is a note that a person should see before the load.
    """

    simulated: bool | None = None
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


async def look(transport: Transport, plan: LoadPlan) -> Preflight:
    """Asks the endpoint for its models, which also warms connection, DNS and JSON.

    EndpointUnreachable without any answer, naming host, port and cause; WrongKey
    on 401 and 403; HostNotAllowed where no load may go. A missing list or model is
    told only: some servers list none, or an alias.
    """
    url = public_url(plan.url)
    try:
        status, body = await transport.get_models(TIMEOUT_S)
    except Broken as error:
        raise EndpointUnreachable(f"{url}: {_where(plan)}: {error}") from error
    if status in WRONG_KEY:
        raise _wrong_key(status, plan)
    if status != 200:
        return Preflight(notes=[f"GET /models answered HTTP {status}"])
    models = _models(body)
    if models is None:
        return Preflight(notes=["GET /models answered something that is no list of models"])
    simulated = any(m.get("owned_by") == SIMULATOR for m in models)
    names = [str(m["id"]) for m in models if m.get("id")]
    warnings = [] if plan.model in names else [_missing(plan.model, names)]
    return Preflight(simulated, warnings=warnings)


def _where(plan: LoadPlan) -> str:
    """Whom we talk to: the proxy, when there is one, may be at fault."""
    if plan.proxy is not None:
        return f"through the proxy {host_and_port(plan.proxy)}"
    return host_and_port(plan.url)


def _wrong_key(status: int | None, plan: LoadPlan) -> WrongKey:
    who = "the endpoint" if plan.proxy is None else "the endpoint, or the proxy before it,"
    return WrongKey(f"{public_url(plan.url)}: {who} refused the API key (HTTP {status})")


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
        return _wrong_key(refusal.status, plan)
    begins = urlsplit(url).path.rstrip("/")
    what = "none of this API" if refusal.status is None else f"HTTP {refusal.status}"
    said = f": {refusal.said}" if refusal.said else ""
    return OtherSideFailed(
        f"{url}: every answer was {what} for POST {begins}{PATHS[plan.api]}, model {plan.model}"
        f"{said}{_hint(refusal, begins)}"
    )


def _hint(refusal: Refusal, begins: str) -> str:
    """What is most likely wrong where a server does not know the address, or a proxy us."""
    if refusal.status == _PROXY_KEY:
        return " (the proxy wants a user and a password, or others)"
    if refusal.status not in _NO_SUCH_PLACE:
        return ""
    for path in (*PATHS.values(), "/models"):
        if begins.endswith(path):
            return f" (the URL is needed without {path})"
    return "" if _VERSION.search(begins) else " (does the URL lack /v1 at its end?)"
