"""Errors as problem details (RFC 9457), with the path of the field at fault."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import exception_handler, set_rollback

from records.errors import (
    BadInput,
    Conflict,
    EvidenceDiffers,
    FieldError,
    ImpaktError,
    NotPermitted,
    OtherSideFailed,
    StorageFailed,
)

log = logging.getLogger(__name__)


def handler(error: Exception, context: dict[str, Any]) -> Response:
    """DRF's exception handler: the answer to every error of the API."""
    if isinstance(error, ImpaktError):
        return _ours(error)
    if isinstance(error, RequestDataTooBig):
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        return problem(413, f"More than the {limit} bytes that this server takes here")
    if isinstance(error, SuspiciousOperation):
        return problem(400, "The request is not of a form that this server takes")
    response = exception_handler(error, context)
    if response is None:
        # A fault of ours: the log has it, and the client what a client can read.
        log.error("%s %s", *_asked(context), exc_info=error)
        set_rollback()
        return problem(500, "The server failed; its log says why")
    fields = list(_fields(response.data)) if isinstance(error, exceptions.ValidationError) else []
    detail = _detail(error, response.data, fields)
    headers = {k: v for k, v in response.items() if k in ("WWW-Authenticate", "Retry-After")}
    return problem(response.status_code, detail, fields, headers)


def _asked(context: dict[str, Any]) -> tuple[str, str]:
    request = context.get("request")
    return (request.method, request.path) if request is not None else ("", "")


def problem(
    status: int, detail: str, fields: list[dict[str, str]] | None = None, headers=None
) -> Response:
    """One problem document."""
    body = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status}
    body["detail"] = detail
    if fields:
        body["errors"] = fields
    return Response(body, status=status, headers=headers, content_type="application/problem+json")


# error -> status, and what to say where its own words are for the server's operator only
# (they may name a path of this machine).
_STATUS: tuple[tuple[type[ImpaktError], int, str | None], ...] = (
    (Conflict, 409, None),
    (NotPermitted, 403, None),
    (BadInput, 400, None),
    (EvidenceDiffers, 500, "The stored bytes are not what their SHA-256 says; not handed out"),
    (StorageFailed, 503, "The server's storage did not do its part; see its log"),
    (OtherSideFailed, 503, None),
)


def _ours(error: ImpaktError) -> Response:
    found = (entry for entry in _STATUS if isinstance(error, entry[0]))
    _, status, said = next(found, (ImpaktError, 422, None))
    if said is not None:
        log.error("%s", error)
    fields = None
    if isinstance(error, FieldError) and error.field:
        fields = [{"field": error.field, "detail": error.expected}]
    return problem(status, said or str(error), fields)


def _detail(error: Exception, data: Any, fields: list[dict[str, str]]) -> str:
    if fields:
        return "; ".join(f"{f['field']}: {f['detail']}" for f in fields)
    if isinstance(error, Http404):
        return "Not found in a project you belong to"
    if isinstance(error, PermissionDenied):
        return "Not permitted"
    return str(data.get("detail", "")) if isinstance(data, dict) else str(data)


def _fields(data: Any, path: str = ""):
    if isinstance(data, dict):
        for key, value in data.items():
            yield from _fields(value, f"{path}.{key}" if path else str(key))
    elif isinstance(data, list):
        for i, value in enumerate(data):
            inner = isinstance(value, dict | list)
            yield from _fields(value, f"{path}[{i}]" if inner else path)
    else:
        yield {"field": path or "body", "detail": str(data)}
