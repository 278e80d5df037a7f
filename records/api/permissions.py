"""Access to the API: members of the project, within the token's scope."""

from __future__ import annotations

from django.http import HttpRequest
from rest_framework.permissions import SAFE_METHODS, BasePermission

from records.models.choices import TokenScope


class InProject(BasePermission):
    """Signed in; a token with scope `read` may only read. Rows are scoped by the selectors."""

    def has_permission(self, request: HttpRequest, view) -> bool:
        if request.user is None or not request.user.is_authenticated:
            return False
        if request.method in SAFE_METHODS or request.auth is None:
            return True
        return request.auth.scope == TokenScope.WRITE
