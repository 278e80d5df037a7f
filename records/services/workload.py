"""Workloads in versions, with the rubric, cases and evidence packet they name."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from records.acceptance.rubric import automatic_criteria
from records.errors import BadWorkload
from records.evidence.canonical import sha256_of
from records.evidence.workload import check_workload
from records.models import CaseSet, EvidencePacket, Project, Rubric, ServiceClass, Workload
from records.models.base import VersionedDocument
from records.services import audit
from records.services.documents import checked, named
from records.services.numbers import lock
from records.services.permissions import require

_PARTS = {"rubric": Rubric, "case_set": CaseSet, "evidence_packet": EvidencePacket}


def workload_create(*, project: Project, document: dict[str, Any], user, title="") -> Workload:
    """The version of a workload with this content: a new one, or the one there is already.

    Changed content under the same name is the next version, which names the one
    it replaces. BadWorkload names the field that is wrong.
    """
    require(user, project, "launch")
    return ensure(project=project, document=document, user=user, title=title)


def ensure(*, project: Project, document: dict[str, Any], user, title="") -> Workload:
    """As `workload_create`, for a caller that has asked for permission itself."""
    work = check_workload(checked(document, "workload", BadWorkload), "workload")
    automatic_criteria(work["rubric"], "workload")
    name = named(work["name"], "name", "workload", BadWorkload)
    with transaction.atomic():
        lock(project)
        parts = {
            key: None if work[key] is None else _part(model, project, name, work[key], user)
            for key, model in _PARTS.items()
        }
        workload, made = _version(
            Workload, project, name, work, work["hashes"]["workload"], user,
            title=str(title or work["title"] or "")[:200], **parts,
        )  # fmt: skip
        if made:
            _add_classes(workload, work["classes"])
            audit.record(
                project=project, actor=user, action="workload.create", target=workload,
                after={"sha256": workload.sha256, "version": workload.version},
            )  # fmt: skip
    return workload


def _part(model, project: Project, workload_name: str, document: Any, user) -> VersionedDocument:
    own = document.get("name") if isinstance(document, dict) else None
    name = named(own or workload_name, "name", model._meta.verbose_name, BadWorkload)
    return _version(model, project, name, document, sha256_of(document), user)[0]


def _version(model, project: Project, name: str, document, sha256: str, user, **fields):
    same = model.objects.filter(project=project, name=name)
    if found := same.filter(sha256=sha256).first():
        return found, False
    last = same.order_by("-version").first()
    made = model.objects.create(
        project=project, name=name, document=document, sha256=sha256, created_by=user,
        version=last.version + 1 if last else 1, replaces=last, **fields,
    )  # fmt: skip
    return made, True


def _add_classes(workload: Workload, classes: dict[str, dict[str, Any]]) -> None:
    rows = []
    for position, (name, spec) in enumerate(classes.items()):
        share = spec.get("share")
        if share is not None and not _is_fraction(share):
            raise BadWorkload("workload", f"classes.{name}.share", "a fraction from 0 to 1")
        rows.append(
            ServiceClass(
                workload=workload,
                name=named(name, f"classes.{name}", "workload", BadWorkload, longest=60),
                position=position,
                objective=spec.get("objective") or {},
                timeout_s=spec.get("timeout_s"),
                priority=spec.get("priority"),
                share=share,
            )
        )
    ServiceClass.objects.bulk_create(rows)


def _is_fraction(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
