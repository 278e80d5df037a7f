"""Endpoints: the only hosts that load is ever sent to."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import IntegrityError, transaction

from records.errors import BadInput, Conflict, FieldError
from records.evidence.canonical import is_number
from records.models import Configuration, Endpoint, Project
from records.models.choices import Api
from records.services import audit
from records.services.documents import named
from records.services.permissions import require
from runners.load.places import literal_addresses, refusal
from runners.load.urls import public_url

# Only variables made for this: an operator who could name any variable could have a
# worker send the database's password or the signing key to a host of their own.
_VARIABLE = re.compile(r"IMPAKT_KEY_[A-Z0-9_]+")

# More than any endpoint serves at once or in a second; a column holds it.
_MOST = 1_000_000


def endpoint_register(
    *,
    project: Project,
    user,
    name: str,
    url: str,
    api: str,
    model: str,
    configuration: Configuration | None = None,
    api_key_env: str = "",
    metrics_url: str = "",
    max_rate_per_s: float | None = None,
    max_concurrency: int | None = None,
    simulated: bool = False,
    reference_profile: str = "",
) -> Endpoint:
    """A place where load may be sent, up to its limits.

    FieldError names the field that is wrong, Conflict a name that is taken. The
    key itself is never given: `api_key_env` names the variable that holds it in
    the worker's environment.
    """
    require(user, project, "launch")
    fields: dict[str, Any] = {
        # Only the supervisor registers a reference endpoint, on this machine's loopback.
        "url": check_url(url, "url", private=bool(reference_profile)),
        "metrics_url": check_url(metrics_url, "metrics_url") if metrics_url else "",
        "api": _one_of(api, Api.values, "api"),
        "model": named(model, "model", "endpoint", FieldError, longest=200),
        "api_key_env": check_variable(api_key_env),
        "max_rate_per_s": _limit(max_rate_per_s, "max_rate_per_s"),
        "max_concurrency": _limit(max_concurrency, "max_concurrency"),
        "configuration": _own(configuration, project),
        "simulated": simulated,
        "reference_profile": reference_profile,
    }
    name = named(name, "name", "endpoint", FieldError)
    try:
        with transaction.atomic():
            endpoint = Endpoint.objects.create(
                project=project, name=name, created_by=user, **fields
            )
            audit.record(
                project=project, actor=user, action="endpoint.register", target=endpoint,
                after={"url": endpoint.url, "model": endpoint.model, "api": endpoint.api},
            )  # fmt: skip
    except IntegrityError as error:
        raise Conflict(f"An endpoint {name!r} exists already in {project}") from error
    return endpoint


def endpoint_move(*, endpoint: Endpoint, url: str, actor_name: str) -> Endpoint:
    """The endpoint answers at another address now (the bundled one gets a port at each start)."""
    url = check_url(url, "url", private=bool(endpoint.reference_profile))
    before = endpoint.url
    if before == url:
        return endpoint
    with transaction.atomic():
        endpoint.url = url
        endpoint.save(update_fields=["url"])
        audit.record(
            project=endpoint.project, actor_name=actor_name, action="endpoint.move",
            target=endpoint, before={"url": before}, after={"url": url},
        )  # fmt: skip
    return endpoint


def check_url(url: Any, field: str, private: bool = False) -> str:
    """An http or https address with a host and without credentials, query or fragment.

    A host that spells an address, in any way, must be one that load may go to;
    `private` allows private ranges whatever the settings say. What a name
    resolves to is looked at when a run begins.
    """
    text = url.strip() if isinstance(url, str) else ""
    try:
        parts = urlsplit(text)
        # Reading the port is what makes urllib look at it.
        port_is_fine = parts.port != 0
    except ValueError:
        raise FieldError("endpoint", field, "a valid address") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_fine:
        raise FieldError("endpoint", field, "an http:// or https:// address with a host")
    if "@" in parts.netloc:
        # The address itself is kept out of the message: it holds the secret.
        raise FieldError("endpoint", field, "no user or password in it; name api_key_env instead")
    if parts.query or parts.fragment:
        raise FieldError("endpoint", field, "an address without ? and #")
    if not text.isprintable() or " " in text or len(text) > 500:
        raise FieldError("endpoint", field, "at most 500 printable characters without spaces")
    try:
        public_url(text)
    except BadInput as error:
        raise FieldError("endpoint", field, "a host that is a name or an address") from error
    for ip in literal_addresses(parts.hostname):
        reason = refusal(ip, allow_private=private or settings.PRIVATE_ENDPOINTS)
        if reason is not None:
            raise FieldError("endpoint", field, f"an address load may go to, but {ip} is {reason}")
    return text.rstrip("/")


def check_variable(name: str) -> str:
    """The name of a variable made for keys, or "" for none."""
    if name and not _VARIABLE.fullmatch(name):
        # Not quoted: someone may have pasted the key itself.
        raise FieldError(
            "endpoint", "api_key_env", "the name of an environment variable, IMPAKT_KEY_…"
        )
    return name


def _one_of(value: str, known: list[str], field: str) -> str:
    if value not in known:
        raise FieldError("endpoint", field, f"one of {', '.join(known)}")
    return value


def _limit(value: Any, field: str) -> Any:
    if value is None:
        return None
    if not is_number(value) or not 0 < value <= _MOST:
        wanted = f"a number above 0 and at most {_MOST}, or nothing for no limit"
        raise FieldError("endpoint", field, wanted)
    return value


def _own(configuration: Configuration | None, project: Project) -> Configuration | None:
    if configuration is not None and configuration.project_id != project.pk:
        raise FieldError("endpoint", "configuration", "a configuration of the same project")
    return configuration
