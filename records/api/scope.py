"""Whose rows a request may see: the token's one project, or the projects of the signed-in user."""

from __future__ import annotations

from django.db.models import QuerySet
from django.http import Http404
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from records.models import Project


def projects(request: Request) -> QuerySet[Project]:
    """The projects a request may see; a token sees exactly its own."""
    if request.auth is not None:
        return Project.objects.filter(pk=request.auth.project_id)
    return Project.objects.visible_to(request.user)


def visible(request: Request, rows: QuerySet, path: str = "project") -> QuerySet:
    """The rows whose project, found along `path`, the request may see."""
    if request.auth is not None:
        return rows.filter(**{path: request.auth.project_id})
    return rows.filter(**{f"{path}__in": projects(request)})


def project_for(request: Request, slug: str | None) -> Project:
    """The project a create is meant for.

    A token's project needs no naming; a signed-in user of several must name one.
    Http404 when the request may not see the project named.
    """
    found = projects(request)
    if slug:
        project = found.filter(slug=slug).first()
        if project is None:
            raise Http404
        return project
    few = list(found[:2])
    if len(few) != 1:
        raise ValidationError({"project": "Name the project (its slug)"})
    return few[0]
