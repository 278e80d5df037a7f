"""Bearer tokens: who a program is, and which project it may see."""

from __future__ import annotations

from django.http import HttpRequest
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed

from records.services import access


class TokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer TOKEN`; `request.auth` is the ApiToken."""

    keyword = "Bearer"

    def authenticate(self, request: HttpRequest):
        parts = get_authorization_header(request).split()
        if not parts or parts[0].lower() != b"bearer":
            return None
        if len(parts) != 2:
            raise AuthenticationFailed("Authorization: expected 'Bearer TOKEN'")
        token = access.token_authenticate(parts[1].decode("latin-1"))
        if token is None:
            raise AuthenticationFailed("This token is not known, has expired or was revoked")
        return token.user, token

    def authenticate_header(self, request: HttpRequest) -> str:
        return self.keyword
