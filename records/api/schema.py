"""The OpenAPI document, made from the code that answers."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.renderers import (
    OpenApiJsonRenderer,
    OpenApiJsonRenderer2,
    OpenApiYamlRenderer,
    OpenApiYamlRenderer2,
)
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, OpenApiTypes, extend_schema
from rest_framework import serializers
from rest_framework.permissions import AllowAny
from rest_framework.response import Response
from rest_framework.views import APIView

from records.api.bodies import RAW_TYPES


class BearerScheme(OpenApiAuthenticationExtension):
    """How a client authenticates."""

    target_class = "records.api.authentication.TokenAuthentication"
    name = "bearer"

    def get_security_definition(self, auto_schema) -> dict[str, Any]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "A token of one project, made by its administrators.",
        }


class ProblemField(serializers.Serializer):
    """One field at fault."""

    field = serializers.CharField(help_text="Path of the field, as in `policies.retries`.")
    detail = serializers.CharField()


class Problem(serializers.Serializer):
    """Problem details, RFC 9457."""

    type = serializers.CharField(default="about:blank")
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    errors = ProblemField(many=True, required=False)


_MEANING = {
    "400": "Something in the request is not as it must be; `errors` names the fields.",
    "401": "No credentials, or a token that is not known, has expired or was revoked.",
    "403": "The token's scope or the member's role does not allow this.",
    "404": "Not found in a project you belong to.",
    "409": "Contradicts what already stands: the state of the object, or an `Idempotency-Key` "
    "that was used for another body or is still being answered.",
}
_IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    str,
    OpenApiParameter.HEADER,
    description="The same key and body give the first answer again, another body 409.",
)
_PROBLEM_TYPE = "application/problem+json"


class ProblemSchema(AutoSchema):
    """Adds the problem documents an operation may answer with, and the key of a create."""

    def get_override_parameters(self) -> list[Any]:
        found: list[Any] = super().get_override_parameters()
        return [*found, _IDEMPOTENCY_KEY] if self.method == "POST" else found

    def _get_response_bodies(self, direction: str = "response") -> dict[str, Any]:
        bodies = super()._get_response_bodies(direction)
        statuses = ["400", "401", "403"]
        if "{" in self.path or self.method != "GET":
            statuses.append("404")
        if self.method == "POST":
            statuses.append("409")
        for status in statuses:
            described = OpenApiResponse(Problem, _MEANING[status])
            bodies.setdefault(
                status,
                self._get_response_for_code(described, status, [_PROBLEM_TYPE], direction),
            )
        return dict(sorted(bodies.items()))


@lru_cache(maxsize=1)
def document() -> dict[str, Any]:
    """The whole document, with every route; made once a process, as the code cannot change."""
    found: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    return found


class SchemaView(APIView):
    """The OpenAPI 3 document of this API, as JSON or (`?format=yaml`) YAML; needs no token."""

    authentication_classes = ()
    permission_classes = (AllowAny,)
    renderer_classes = (
        OpenApiJsonRenderer2,
        OpenApiYamlRenderer2,
        OpenApiJsonRenderer,
        OpenApiYamlRenderer,
    )

    @extend_schema(responses=OpenApiTypes.OBJECT, tags=["schema"], operation_id="schema")
    def get(self, request) -> Response:
        return Response(document())


def file_body(
    what: str, responses: dict[int, Any], extra: tuple[OpenApiParameter, ...] = ()
) -> Callable[[Any], Any]:
    """Describes a create whose body is a file: multipart, or the file's bytes alone."""
    multipart = {
        "type": "object",
        "required": ["file"],
        "properties": {
            "file": {"type": "string", "format": "binary", "description": what},
            "project": {"type": "string"},
        },
    }
    raw = {"type": "string", "format": "binary", "description": what}
    return extend_schema(
        request={"multipart/form-data": multipart, **dict.fromkeys(RAW_TYPES, raw)},
        responses=responses,
        parameters=[
            OpenApiParameter("project", str, description="Slug; needed by members of several."),
            OpenApiParameter("filename", str, description="Name of a body that is the file alone."),
            *extra,
        ],
    )
