"""Which role may do what; asked by pages, API and commands alike."""

from __future__ import annotations

from records.errors import NotPermitted
from records.models import Membership, Project
from records.models.choices import Role

# action -> roles that may; reading is for every member.
ALLOWED: dict[str, frozenset[str]] = {
    "view": frozenset(Role.values),
    "launch": frozenset({Role.OPERATOR, Role.APPROVER, Role.ADMIN}),
    "upload": frozenset({Role.OPERATOR, Role.APPROVER, Role.ADMIN}),
    "compare": frozenset({Role.OPERATOR, Role.REVIEWER, Role.APPROVER, Role.ADMIN}),
    "review": frozenset({Role.REVIEWER, Role.APPROVER, Role.ADMIN}),
    "sign": frozenset({Role.APPROVER, Role.ADMIN}),
    "administer": frozenset({Role.ADMIN}),
}


def role_in(user, project: Project) -> str | None:
    """The user's role in the project; None for an outsider."""
    return (
        Membership.objects.filter(user=user, project=project).values_list("role", flat=True).first()
    )


def may(user, project: Project, action: str) -> bool:
    """Whether the user's role in the project allows the action."""
    return role_in(user, project) in ALLOWED[action]


def require(user, project: Project, action: str) -> None:
    """NotPermitted naming the roles that would be allowed."""
    if not may(user, project, action):
        roles = ", ".join(sorted(ALLOWED[action]))
        raise NotPermitted(f"This needs one of the roles: {roles}")
