"""API tokens: made and revoked by a signed-in administrator of the project."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Q
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from records.api.filters import ProjectRowsFilter
from records.api.idempotency import once
from records.api.scope import project_for
from records.api.views import OWNED, Owned, Person, ReadOnly, url_of
from records.errors import NotPermitted
from records.models import ApiToken
from records.models.choices import Role, TokenScope
from records.services import access, permissions

_LONGEST_DAYS = 3650


class TokenOut(Owned):
    url = url_of("token")
    user = Person(allow_null=False, help_text="Whom it acts as.")

    class Meta:
        model = ApiToken
        fields = (
            *OWNED, "user", "name", "scope", "prefix", "last_used_at", "expires_at", "revoked_at",
        )  # fmt: skip


class TokenIn(serializers.Serializer):
    project = serializers.SlugField(required=False, help_text="Slug; needed by members of several.")
    name = serializers.CharField(max_length=120)
    scope = serializers.ChoiceField(TokenScope.choices, default=TokenScope.READ)
    expires_in_days = serializers.IntegerField(
        min_value=1, max_value=_LONGEST_DAYS, allow_null=True, default=90,
        help_text="null: until it is revoked.",
    )  # fmt: skip


class TokenMade(TokenOut):
    secret = serializers.CharField(
        allow_null=True,
        help_text="Shown in the first answer only and stored nowhere; null when asked again.",
    )

    class Meta(TokenOut.Meta):
        fields = (*TokenOut.Meta.fields, "secret")


class TokenFilter(ProjectRowsFilter):
    scope = filters.ChoiceFilter(choices=TokenScope.choices)
    revoked = filters.BooleanFilter("revoked_at", "isnull", exclude=True)


class Tokens(ReadOnly):
    """Tokens: administrators see all of their projects, others their own."""

    queryset = ApiToken.objects.select_related("project", "created_by", "user")
    serializer_class = TokenOut
    filterset_class = TokenFilter
    ordering_fields = ("id", "created_at", "name")

    def get_queryset(self):
        rows = super().get_queryset()
        if getattr(self, "swagger_fake_view", False):
            return rows
        user = self.request.user
        administered = user.memberships.filter(role=Role.ADMIN).values("project")
        return rows.filter(Q(user=user) | Q(project__in=administered))

    @extend_schema(request=TokenIn, responses={201: TokenMade})
    def create(self, request) -> Response:
        """Make a token that acts as the signed-in administrator."""
        given = TokenIn(data=request.data)
        given.is_valid(raise_exception=True)
        project = project_for(request, given.validated_data.get("project"))
        _signed_in_administrator(request, project)

        def make() -> Response:
            days = given.validated_data["expires_in_days"]
            token, secret = access.token_create(
                project=project,
                user=request.user,
                name=given.validated_data["name"],
                scope=given.validated_data["scope"],
                lifetime=None if days is None else timedelta(days=days),
            )
            token.secret = secret
            return Response(TokenMade(token, context=self.get_serializer_context()).data, 201)

        return once(request, project, make, keep=lambda data: {**data, "secret": None})

    @extend_schema(responses={204: None})
    def destroy(self, request, pk=None) -> Response:
        """Revoke a token: it stops working at once and stays on the list."""
        token = self.get_object()
        _signed_in_administrator(request, token.project)
        access.token_revoke(token=token, user=request.user)
        return Response(status=204)


def _signed_in_administrator(request, project) -> None:
    if request.auth is not None:
        raise NotPermitted("A token cannot make or revoke tokens; sign in")
    permissions.require(request.user, project, "administer")
