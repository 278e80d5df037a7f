"""What becomes of uploaded bytes: an evidence folder or a record turned into an external run."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from records.api.bodies import UNPACKED, Body
from records.api.idempotency import CLAIM_S
from records.errors import BadEvidence
from records.evidence.archive import unpack
from records.models import Project, Run, Upload
from records.services import audit, external

log = logging.getLogger(__name__)
# An archive may not unpack to more than this many times what was sent at most.
_UNPACKED_TIMES = 4
# What a value of another kind makes of the arithmetic that meets it.
_MISFIT = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
RELATED = ("project", "created_by", "run__project")
_SPACE = b" \t\r\n"


@dataclass(frozen=True)
class Received:
    """The upload, and whether these bytes made it now."""

    upload: Upload
    made: bool


def receive(*, project: Project, user, body: Body) -> Received | None:
    """The upload with these bytes: a new one with its run, or the one there is already.

    None while another request is taking them in. BadEvidence when the bytes are
    neither an evidence folder nor a record, or differ from their manifest;
    nothing is kept then.
    """
    if known := _known(project, body):
        return Received(known, False)
    claim = _claimed(project, user, body)
    if claim is None:
        known = _known(project, body)
        return Received(known, False) if known else None
    try:
        # No transaction around it: unpacking and analysing would keep all others from writing.
        run = _run(project, user, body)
        with transaction.atomic():
            Upload.objects.filter(pk=claim.pk).update(run=run)
            audit.record(
                project=project, actor=user, action="upload.create", target=claim,
                after={"sha256": body.sha256, "bytes": body.bytes, "run": str(run)},
            )  # fmt: skip
    except BaseException:
        Upload.objects.filter(pk=claim.pk, run=None).delete()
        raise
    return Received(Upload.objects.select_related(*RELATED).get(pk=claim.pk), True)


def _known(project: Project, body: Body) -> Upload | None:
    uploads = Upload.objects.in_project(project).select_related(*RELATED)
    return uploads.filter(sha256=body.sha256, run__isnull=False).first()


def _claimed(project: Project, user, body: Body) -> Upload | None:
    """The row under which these bytes are taken in; None when someone else has it.

    A claim whose process died is taken over after CLAIM_S.
    """
    facts = {"bytes": body.bytes, "filename": body.filename, "created_by": user}
    try:
        with transaction.atomic():
            return Upload.objects.create(project=project, sha256=body.sha256, **facts)
    except IntegrityError:
        now = timezone.now()
        abandoned = Upload.objects.in_project(project).filter(
            sha256=body.sha256, run=None, created_at__lt=now - timedelta(seconds=CLAIM_S)
        )
        won = abandoned.update(created_at=now, **facts)
        return Upload.objects.get(project=project, sha256=body.sha256) if won else None


def _run(project: Project, user, body: Body) -> Run:
    facts = {"project": project, "user": user, "filename": body.filename}
    if _looks_like_json(body):
        return external.run_from_record(record=_record(body), **facts)
    folder = body.folder / UNPACKED
    with body.path.open("rb") as handle:
        unpack(handle, folder, settings.UPLOAD_MAX_BYTES * _UNPACKED_TIMES, where=body.filename)
    try:
        return external.run_from_folder(folder=folder, **facts)
    except _MISFIT as error:
        # A stranger's file may hold a value of any kind anywhere; the log keeps the place.
        log.exception("%s does not analyse", body.filename)
        expected = f"values of the kinds an evidence folder has ({type(error).__name__})"
        raise BadEvidence(body.filename, None, expected) from error


def _looks_like_json(body: Body) -> bool:
    with body.path.open("rb") as handle:
        return handle.read(4096).lstrip(_SPACE)[:1] == b"{"


def _record(body: Body) -> dict:
    def refuse(constant: str):
        raise ValueError(f"{constant} is not JSON")

    if body.bytes > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
        raise BadEvidence(body.filename, None, "a record of at most 8 MiB")
    try:
        record = json.loads(body.path.read_bytes(), parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise BadEvidence(body.filename, None, f"JSON ({error})") from error
    if not isinstance(record, dict) or record.get("schema") != "impakt.record/1":
        raise BadEvidence(body.filename, "schema", "impakt.record/1")
    return record
