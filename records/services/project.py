"""Projects and who may do what in them."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.core.validators import validate_slug
from django.db import IntegrityError, transaction

from records.errors import BadInput, Conflict, FieldError
from records.models import Membership, Project
from records.models.choices import Role
from records.services import audit
from records.services.documents import named
from records.services.numbers import lock
from records.services.permissions import require


def project_create(*, slug: str, name: str, owner) -> Project:
    """A new project whose owner is its admin. Conflict when the slug is taken."""
    name = named(name, "name", "project", FieldError)
    try:
        validate_slug(slug)
    except ValidationError as error:
        raise FieldError("project", "slug", "letters, digits, - and _ only") from error
    try:
        with transaction.atomic():
            project = Project.objects.create(slug=slug, name=name)
            Membership.objects.create(project=project, user=owner, role=Role.ADMIN)
            audit.record(
                project=project, actor=owner, action="project.create", target=project,
                after={"slug": slug, "name": name, "owner": owner.get_username()},
            )  # fmt: skip
    except IntegrityError as error:
        raise Conflict(f"A project {slug!r} exists already") from error
    return project


def member_set(*, project: Project, user, role: str | None, actor) -> Membership | None:
    """Gives a person a role, changes it, or takes it (role None).

    NotPermitted unless the actor administers the project; Conflict when the
    project would be left without an admin.
    """
    require(actor, project, "administer")
    if role is not None and role not in Role.values:
        raise FieldError("membership", "role", f"one of {', '.join(Role.values)}")
    with transaction.atomic():
        lock(project)
        before = Membership.objects.filter(project=project, user=user).first()
        if role is None and before is None:
            raise BadInput(f"{user.get_username()} is no member of {project}")
        old_role = before.role if before else None
        member = _written(project, user, role, before)
        if not project.memberships.filter(role=Role.ADMIN).exists():
            raise Conflict("A project needs an admin; name another one first")
        audit.record(
            project=project, actor=actor, action="member.set", target=project,
            before={"user": user.get_username(), "role": old_role},
            after={"user": user.get_username(), "role": role},
        )  # fmt: skip
    return member


def _written(project: Project, user, role: str | None, before: Membership | None):
    if role is None:
        before.delete()
        return None
    if before is None:
        return Membership.objects.create(project=project, user=user, role=role)
    before.role = role
    before.save(update_fields=["role"])
    return before
