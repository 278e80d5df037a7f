"""Configuration tuples: immutable, found again by their fingerprint."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from records.errors import BadConfiguration
from records.evidence.canonical import sha256_of
from records.models import Configuration, Project
from records.services import audit
from records.services.documents import checked, named
from records.services.permissions import require

# Parts of the tuple that are themselves objects; see docs/methods/record.md.
_OBJECTS = ("runtime", "hardware")


def configuration_create(
    *, project: Project, name: str, document: dict[str, Any], user
) -> Configuration:
    """The project's configuration with this tuple: a new row, or the one it has already.

    The fingerprint is the SHA-256 of the canonical JSON, so key order and 1.0
    for 1 make no other configuration; the name of an existing row stands.
    BadConfiguration names the field that is wrong.
    """
    require(user, project, "launch")
    return ensure(project=project, name=name, document=document, user=user)


def ensure(*, project: Project, name: str, document: dict[str, Any], user) -> Configuration:
    """As `configuration_create`, for a caller that has asked for permission itself."""
    plain = _checked(document)
    name = named(name, "name", "configuration", BadConfiguration)
    with transaction.atomic():
        configuration, made = Configuration.objects.get_or_create(
            project=project,
            fingerprint=sha256_of(plain),
            defaults={
                "name": name,
                "document": plain,
                "simulated": plain.get("simulated") is True,
                "created_by": user,
            },
        )
        if made:
            audit.record(
                project=project, actor=user, action="configuration.create", target=configuration,
                after={"fingerprint": configuration.fingerprint},
            )  # fmt: skip
    return configuration


def _checked(document: Any) -> dict[str, Any]:
    plain = checked(document, "configuration", BadConfiguration)
    if not plain:
        raise BadConfiguration("configuration", None, "at least one field of the tuple")
    for key in _OBJECTS:
        if plain.get(key) is not None and not isinstance(plain[key], dict):
            raise BadConfiguration("configuration", key, "an object")
    if not isinstance(plain.get("simulated", False), bool | None):
        raise BadConfiguration("configuration", "simulated", "true or false")
    return plain
