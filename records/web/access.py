"""Every page of a project is reached through membership; outsiders find nothing there."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone

from records.errors import NotPermitted
from records.models import Membership, Project
from records.services import permissions

View = Callable[..., HttpResponse]


def in_project(view: View) -> View:
    """Hands the view its project instead of the slug: sign-in first, then 404 to outsiders.

    Sets `request.project` and `request.role` for the frame, and the time zone
    in which the page tells times.
    """

    @wraps(view)
    def inner(request: HttpRequest, slug: str, *args: Any, **kwargs: Any) -> HttpResponse:
        membership = membership_or_404(request.user, slug)
        request.project, request.role = membership.project, membership.role
        try:
            with timezone.override(_zone(membership.project)):
                return view(request, membership.project, *args, **kwargs)
        except NotPermitted as error:
            raise PermissionDenied(str(error)) from error

    return login_required(inner)


def membership_or_404(user: Any, slug: str) -> Membership:
    """The user's membership in the project of this slug."""
    membership = (
        Membership.objects.filter(user=user, project__slug=slug).select_related("project").first()
    )
    if membership is None:
        raise Http404("No such project")
    return membership


def may(request: HttpRequest, action: str) -> bool:
    """Whether the reader's role allows the action; pages hide buttons that would be refused."""
    return request.role in permissions.ALLOWED[action]


def require(request: HttpRequest, action: str) -> None:
    """NotPermitted, shown as 403, when the role does not allow the action."""
    permissions.require(request.user, request.project, action)


def _zone(project: Project) -> ZoneInfo:
    try:
        return ZoneInfo(project.time_zone)
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo("UTC")
