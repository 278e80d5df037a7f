"""Which projects a person may see; everything else is reached through one of them."""

from __future__ import annotations

from django.db.models import QuerySet

from records.models import Membership, Project


def projects_for(user) -> QuerySet[Project]:
    """The projects the user is a member of, by name; none for nobody."""
    if user is None or not user.is_authenticated:
        return Project.objects.none()
    return Project.objects.visible_to(user)


def project_get(*, user, slug: str) -> Project:
    """One of the user's projects. Project.DoesNotExist for any other, there or not."""
    return projects_for(user).get(slug=slug)


def member_list(project: Project) -> QuerySet[Membership]:
    """Who may do what in the project."""
    return project.memberships.select_related("user").order_by("user__username")
