"""A create sent twice creates once: the first answer is kept under its Idempotency-Key.

The key is claimed in a transaction of its own, so that a second request sees it
at once, and freed when the create fails: a failed create made nothing, and the
client may try again. The answer is stored with what it tells of, in one
transaction. A claim whose process died is taken over after CLAIM_S.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from datetime import timedelta
from typing import Any

import orjson
from django.db import transaction
from django.utils import timezone
from rest_framework.exceptions import ValidationError
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from records.api.problems import problem
from records.evidence.canonical import sha256_of
from records.models import IdempotencyKey, Project

HEADER = "Idempotency-Key"
# Set on an answer given again.
REPLAYED = "Idempotent-Replayed"
# Longer than any create takes; a shorter time would let two of them run at once.
CLAIM_S = 15 * 60
_LONGEST = 200


def once(
    request: Request,
    project: Project,
    create: Callable[[], Response],
    *,
    body_sha256: str | None = None,
    keep: Callable[[Any], Any] = lambda data: data,
    atomic: bool = True,
) -> Response:
    """The answer of `create`, or the first one given to the same key and body.

    `body_sha256` says what counts as the body (default: the parsed JSON);
    `keep` takes out of the stored answer what must not be stored; `atomic` is
    False for a `create` that has its own transactions and can be repeated.
    Without the header, `create` simply runs. 409 for another body, or while the
    first is still being answered.
    """
    together = transaction.atomic if atomic else nullcontext
    key = request.headers.get(HEADER)
    if key is None:
        with together():
            return create()
    if not key.strip() or len(key) > _LONGEST:
        raise ValidationError({HEADER: f"1 to {_LONGEST} characters"})
    body = body_sha256 or sha256_of(request.data)
    claim, first = _claim(request, project, key, body)
    if not first:
        return _again(claim, body)
    try:
        with together():
            response = create()
            if response.status_code < 400:
                _store(claim, response, keep)
    except BaseException:
        IdempotencyKey.objects.filter(pk=claim.pk, status=None).delete()
        raise
    if response.status_code >= 400:
        IdempotencyKey.objects.filter(pk=claim.pk, status=None).delete()
    return response


def _claim(request: Request, project: Project, key: str, body: str) -> tuple[IdempotencyKey, bool]:
    """The key's row, and whether this request is the one to answer it."""
    # The route names the user too: a key of one member says nothing to another.
    route = f"{request.user.pk} {request.method} {request.path}"
    facts = {"body_sha256": body, "created_by": request.user}
    row, created = IdempotencyKey.objects.get_or_create(
        project=project, route=route, key=key, defaults=facts
    )
    if created:
        return row, True
    now = timezone.now()
    abandoned = IdempotencyKey.objects.filter(
        pk=row.pk, status=None, body_sha256=body, created_at__lt=now - timedelta(seconds=CLAIM_S)
    )
    # Conditional update: of two that find it abandoned, one takes it over.
    return row, bool(abandoned.update(created_at=now))


def _again(claim: IdempotencyKey, body: str) -> Response:
    if claim.body_sha256 != body:
        return problem(409, f"This {HEADER} was used for another body", [_FIELD])
    if claim.status is None:
        detail = "The first request with this key is still being answered; ask again"
        return problem(409, detail, [_FIELD], {"Retry-After": "2"})
    headers = {REPLAYED: "true"}
    if isinstance(claim.response, dict) and "url" in claim.response:
        headers["Location"] = claim.response["url"]
    return Response(claim.response, claim.status, headers=headers)


_FIELD = {"field": HEADER, "detail": "A key stands for one create with one body"}


def _store(claim: IdempotencyKey, response: Response, keep: Callable[[Any], Any]) -> None:
    # Rendered and read back, so that what is stored is exactly what was sent.
    data = orjson.loads(JSONRenderer().render(keep(response.data)))
    IdempotencyKey.objects.filter(pk=claim.pk).update(status=response.status_code, response=data)
