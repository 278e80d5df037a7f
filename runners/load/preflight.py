"""Whether the endpoint answers, takes our key and knows the model, before any load."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import orjson

from records.errors import EndpointUnreachable, WrongKey
from runners.load.attempt import Broken
from runners.load.client import HttpxClient

TIMEOUT_S = 10.0
# What the bundled simulator calls itself in /models.
SIMULATOR = "impakt-reference-endpoint"
WRONG_KEY = (401, 403)


@dataclass(frozen=True)
class Preflight:
    """What GET /models told. `simulated` is None when it could not tell."""

    simulated: bool | None = None
    notes: list[str] = field(default_factory=list)


async def look(client: HttpxClient, url: str, model: str) -> Preflight:
    """Asks the endpoint for its models, which also warms connection, DNS and JSON.

    EndpointUnreachable without any answer, WrongKey on 401 and 403. A missing
    list or model is a note only: some servers list none, or an alias.
    """
    try:
        status, body = await client.get_models(TIMEOUT_S)
    except Broken as error:
        raise EndpointUnreachable(f"{url}: {error}") from error
    if status in WRONG_KEY:
        raise WrongKey(f"{url}: the endpoint refused the API key (HTTP {status})")
    if status != 200:
        return Preflight(notes=[f"GET /models answered HTTP {status}"])
    models = _models(body)
    if models is None:
        return Preflight(notes=["GET /models answered something that is no list of models"])
    names = [m.get("id") for m in models]
    simulated = any(m.get("owned_by") == SIMULATOR for m in models)
    missing = [] if model in names else [f"GET /models does not list {model}"]
    return Preflight(simulated, missing)


def _models(body: bytes) -> list[dict[str, Any]] | None:
    try:
        data = orjson.loads(body)["data"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None
    if not isinstance(data, list):
        return None
    return [m for m in data if isinstance(m, dict)]
