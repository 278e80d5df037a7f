"""How people and programs are let in: tokens and one-time sign-in links.

Only hashes of secrets are stored; the secret itself is shown once.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models

from records.models.base import ProjectOwned
from records.models.choices import TokenScope


class ApiToken(ProjectOwned):
    """A program's key to one project; acts as its user, within its scope."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens"
    )
    name = models.CharField(max_length=120)
    scope = models.CharField(max_length=5, choices=TokenScope.choices, default=TokenScope.READ)
    # The first characters, so that a person can tell tokens apart.
    prefix = models.CharField(max_length=16)
    token_hash = models.CharField(max_length=64, unique=True)
    last_used_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(scope__in=TokenScope.values), name="token_scope_known"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class SignInLink(models.Model):
    """A link that signs its user in once, before it expires."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    token_hash = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"sign-in link of {self.user}"
