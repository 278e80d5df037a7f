"""Letting people and programs in: tokens and one-time sign-in links."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from records.errors import FieldError
from records.models import ApiToken, Project, SignInLink
from records.models.choices import TokenScope
from records.services import audit
from records.services.documents import named
from records.services.permissions import require

_PREFIX = "impakt_"


def _hash(secret: str) -> str:
    # Tokens are 256 random bits: a fast hash is enough, nothing can be guessed.
    return hashlib.sha256(secret.encode()).hexdigest()


def token_create(
    *,
    project: Project,
    user,
    name: str,
    scope: str = TokenScope.READ,
    lifetime: timedelta | None = None,
) -> tuple[ApiToken, str]:
    """A new token and its secret, which is shown this once and stored nowhere.

    Any member may have one: it acts as its user, so the scope `write` lets it do
    no more than the user's role allows.
    """
    require(user, project, "view")
    name = named(name, "name", "token", FieldError)
    if scope not in TokenScope.values:
        raise FieldError("token", "scope", f"one of {', '.join(TokenScope.values)}")
    secret = _PREFIX + secrets.token_urlsafe(32)
    with transaction.atomic():
        token = ApiToken.objects.create(
            project=project,
            user=user,
            created_by=user,
            name=name,
            scope=scope,
            prefix=secret[:12],
            token_hash=_hash(secret),
            expires_at=None if lifetime is None else timezone.now() + lifetime,
        )
        audit.record(
            project=project, actor=user, action="token.create", target=token,
            after={"name": name, "scope": scope},
        )  # fmt: skip
    return token, secret


def token_revoke(*, token: ApiToken, user) -> None:
    """The token stops working at once: one's own, or anyone's for an admin."""
    require(user, token.project, "view" if token.user_id == user.pk else "administer")
    with transaction.atomic():
        live = ApiToken.objects.filter(pk=token.pk, revoked_at=None)
        if live.update(revoked_at=timezone.now()):
            audit.record(project=token.project, actor=user, action="token.revoke", target=token)


def token_authenticate(secret: str) -> ApiToken | None:
    """The live token behind a secret whose user is still a member; None otherwise."""
    now = timezone.now()
    token = (
        ApiToken.objects.select_related("user", "project")
        .filter(
            Q(expires_at=None) | Q(expires_at__gt=now),
            token_hash=_hash(secret),
            revoked_at=None,
            user__is_active=True,
            user__memberships__project=F("project"),
        )
        .first()
    )
    if token is None:
        return None
    # At most one write a minute, whatever the request rate.
    stale = Q(last_used_at=None) | Q(last_used_at__lt=now - timedelta(minutes=1))
    ApiToken.objects.filter(stale, pk=token.pk).update(last_used_at=now)
    return token


def link_create(*, user, lifetime: timedelta = timedelta(hours=12)) -> str:
    """The secret of a link that signs the user in once."""
    secret = secrets.token_urlsafe(32)
    SignInLink.objects.create(
        user=user, token_hash=_hash(secret), expires_at=timezone.now() + lifetime
    )
    return secret


def link_use(secret: str):
    """The user behind an unused, unexpired link, which is used up by this; None otherwise."""
    now = timezone.now()
    live = SignInLink.objects.filter(
        token_hash=_hash(secret), used_at=None, expires_at__gt=now, user__is_active=True
    )
    with transaction.atomic():
        # Conditional update: of two clicks at once, one wins.
        if not live.update(used_at=now):
            return None
        user = SignInLink.objects.select_related("user").get(token_hash=_hash(secret)).user
        audit.record(project=None, actor=user, action="sign_in.link", target=user)
    return user
