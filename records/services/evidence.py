"""Evidence in the registry: taken in, checked out, read and verified."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from records.errors import EvidenceDiffers, StorageFailed
from records.evidence.columns import OUTCOMES
from records.evidence.files import sha256_file
from records.evidence.folder import EvidenceFolder
from records.evidence.manifest import NAME as MANIFEST
from records.evidence.manifest import Difference, FileEntry, verify_folder
from records.models import Evidence, RequestRecords, Run
from records.models.choices import AlertKind
from records.services import audit
from records.services.alert import alert_raise
from records.services.permissions import require
from records.services.storage import evidence_store


def evidence_ingest(*, run: Run, folder: Path) -> list[Evidence]:
    """Takes every file of a folder into the store and tells the registry; sealed first if need be.

    Doing it again changes nothing. EvidenceDiffers when a file is not what the
    manifest says, or other bytes are known under its name; NotDecided while the
    folder is still written.
    """
    return evidence_rows(run=run, stored=evidence_put(folder))


@dataclass(frozen=True)
class Stored:
    """A folder's files in the store, name to (SHA-256, bytes), and its outcome counts."""

    files: dict[str, tuple[str, int]]
    counts: dict[str, int]


def evidence_put(folder: Path) -> Stored:
    """Takes the bytes of a folder into the store; nothing in the registry yet.

    Apart from the rows, because copying takes seconds and a transaction should not.
    """
    opened = EvidenceFolder.open(folder)
    for difference in verify_folder(folder):
        raise EvidenceDiffers(f"{difference.name}: {difference.kind}, {difference.detail}")
    store = evidence_store()
    files = {entry.name: store.put_file(folder / entry.name) for entry in entries_of(opened)}
    return Stored(files, _outcome_counts(opened))


def evidence_rows(*, run: Run, stored: Stored) -> list[Evidence]:
    """Tells the registry which files a run's evidence consists of."""
    with transaction.atomic():
        # One at a time: the same folder may come from a worker and from a sweep.
        Run.objects.filter(pk=run.pk).update(number=F("number"))
        rows = [_row(run, name, *stored.files[name]) for name in sorted(stored.files)]
        by_name = {row.name: row for row, _ in rows}
        RequestRecords.objects.get_or_create(
            run=run,
            defaults={
                "project": run.project,
                "requests": by_name["requests.parquet"],
                "attempts": by_name["attempts.parquet"],
                **stored.counts,
            },
        )
        if any(made for _, made in rows):
            audit.record(
                project=run.project, actor_name="worker", action="evidence.ingest", target=run,
                after={"files": {row.name: row.sha256 for row, made in rows if made}},
            )  # fmt: skip
    return [row for row, _ in rows]


def entries_of(folder: EvidenceFolder) -> list[FileEntry]:
    """Every file of a folder with hash and size: raw ones, the manifest, judgments, records."""
    beside = [MANIFEST]
    beside += [f"judgments/{p.name}" for p in folder.judgment_sets()]
    beside += [f"records/{p.name}" for p in folder.records()]
    more = [FileEntry(name, *sha256_file(folder.path / name)) for name in beside]
    return folder.files() + more


def evidence_add(*, run: Run, name: str, data: bytes) -> Evidence:
    """One more file of a run, such as a record or a set of judgments; call it in a transaction."""
    return _row(run, name, *evidence_store().put_bytes(data))[0]


def _row(run: Run, name: str, sha256: str, size: int) -> tuple[Evidence, bool]:
    row, made = Evidence.objects.get_or_create(
        run=run, name=name,
        defaults={"project_id": run.project_id, "sha256": sha256, "bytes": size},
    )  # fmt: skip
    if row.sha256 != sha256:
        raise EvidenceDiffers(f"{run} {name}: other bytes are known under this name")
    return row, made


def _outcome_counts(folder: EvidenceFolder) -> dict[str, int]:
    """Every request of the run by outcome, in the window or not."""
    found = folder.table("requests")["outcome"].value_counts()
    unknown = sorted(set(found.index) - set(OUTCOMES))
    if unknown:
        raise EvidenceDiffers(f"requests.parquet: outcome {unknown[0]!r} is not one of ours")
    counts = {name: int(found.get(name, 0)) for name in OUTCOMES}
    return {"attempted": sum(counts.values()), **counts}


@contextmanager
def folder_checkout(run: Run) -> Iterator[Path]:
    """A temporary folder with the run's files, each checked against its hash.

    EvidenceDiffers or StorageFailed when one is not there as it was written.
    """
    rows = Evidence.objects.filter(run=run)
    entries = [FileEntry(row.name, row.sha256, row.bytes) for row in rows]
    with tempfile.TemporaryDirectory(prefix="impakt-") as place:
        folder = Path(place)
        evidence_store().checkout(entries, folder)
        yield folder


def evidence_open(evidence: Evidence) -> BinaryIO:
    """The bytes of one file, checked before the first of them is handed out."""
    return evidence_store().open(evidence.sha256)


def evidence_verify(*, run: Run, user=None) -> list[Difference]:
    """What differs between the stored bytes and the registry; empty when nothing does.

    Each row keeps when it was checked and with what result; a difference raises
    an alert.
    """
    if user is not None:
        require(user, run.project, "view")
    rows = list(Evidence.objects.filter(run=run))
    found = {row.pk: _check(row) for row in rows}
    differences = [d for d in found.values() if d is not None]
    now = timezone.now()
    with transaction.atomic():
        for row in rows:
            row.verified_at, row.verified = now, found[row.pk] is None
        Evidence.objects.bulk_update(rows, ["verified_at", "verified"])
        audit.record(
            project=run.project, actor=user, actor_name="" if user else "worker",
            action="evidence.verify", target=run,
            after={"files": len(rows), "differ": [d.name for d in differences]},
        )  # fmt: skip
        if differences:
            detail = "\n".join(f"{d.name}: {d.kind}, {d.detail}" for d in differences)
            alert_raise(
                project=run.project, kind=AlertKind.EVIDENCE_DIFFERS, run=run, detail=detail,
                title=f"Evidence of {run} does not verify",
            )  # fmt: skip
    return differences


def _check(row: Evidence) -> Difference | None:
    store = evidence_store()
    if not store.exists(row.sha256):
        return Difference(row.name, "missing", "not in the evidence store")
    try:
        store.open(row.sha256).close()
    except EvidenceDiffers:
        return Difference(row.name, "changed", "its SHA-256 is not the registry's")
    except StorageFailed as error:
        return Difference(row.name, "unreadable", str(error))
    return None
