"""What lies at no address of the API: a problem document, as everywhere else in it."""

from __future__ import annotations

from django.http import HttpResponseBase, HttpResponsePermanentRedirect
from django.urls import Resolver404, resolve
from drf_spectacular.utils import extend_schema
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.views import APIView

from records.api.problems import problem


@extend_schema(exclude=True)
class NoSuchRoute(APIView):
    """404 for every method; leads a reader who forgot the last slash to the right address."""

    authentication_classes = ()
    permission_classes = (AllowAny,)

    def http_method_not_allowed(self, request: Request, *args, **kwargs) -> HttpResponseBase:
        path = request.path
        other = path.rstrip("/") if path.endswith("/") else f"{path}/"
        if not _is_route(other):
            return problem(404, f"{path} is no address of this API; /api/docs/ lists them")
        if request.method in ("GET", "HEAD"):
            query = request.META.get("QUERY_STRING", "")
            return HttpResponsePermanentRedirect(other + (f"?{query}" if query else ""))
        return problem(404, f"{path} is no address of this API; {other} is")


def _is_route(path: str) -> bool:
    try:
        return getattr(resolve(path).func, "cls", None) is not NoSuchRoute
    except Resolver404:
        return False
