"""The database itself refuses what must not be: changes of evidence, counts that do not add up."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, connection, transaction

from records.models import (
    AuditEntry,
    Configuration,
    Endpoint,
    Evidence,
    EvidencePacket,
    Judgment,
    JudgmentSet,
    MeasurementRecord,
    RequestRecords,
    Rubric,
    Run,
    ServiceClass,
    Trace,
    Workload,
    immutable,
)
from records.models.choices import RunKind, RunState
from records.models.immutable import MUTABLE
from records.models.request_records import OUTCOME_FIELDS
from tests import factories


@pytest.fixture
def run(tmp_path, project) -> Run:
    return factories.make_run(project, folder=factories.sample_folder(tmp_path))


# A fixed column of each table, and a value it does not have.
CHANGES = [
    (Evidence, {"sha256": "0" * 64}),
    (Evidence, {"bytes": 1}),
    (Evidence, {"name": "other"}),
    (Evidence, {"run": None}),
    (Configuration, {"document": {"model": "other"}}),
    (Configuration, {"fingerprint": "0" * 64}),
    (Trace, {"trace_hash": "0" * 64}),
    (Trace, {"file_sha256": "0" * 64}),
    (Trace, {"requests": 1}),
    (Rubric, {"document": {}}),
    (EvidencePacket, {"document": {}}),
    (ServiceClass, {"objective": {}}),
    (Workload, {"document": {}}),
    (RequestRecords, {"completed": 20, "failed": 0}),
    (MeasurementRecord, {"document": {}}),
    (JudgmentSet, {"method": "human"}),
    (Judgment, {"rubric_passed": None}),
    (AuditEntry, {"action": "nothing"}),
]


def test_what_was_measured_cannot_be_changed(run):
    """An UPDATE of a fixed column fails, whoever sends it, in every immutable table."""
    for model, change in CHANGES:
        row = model.objects.order_by("pk").first()
        with pytest.raises(IntegrityError, match="immutable once written"), transaction.atomic():
            model.objects.filter(pk=row.pk).update(**change)
    guarded = {model.__name__ for model, _ in CHANGES}
    assert set(MUTABLE) - guarded == {"CaseSet"}, "the sample has no case set"


def test_what_may_change_still_can(run):
    """Names, previews and the result of a verification are not evidence."""
    assert Configuration.objects.update(name="renamed") == 1
    assert Trace.objects.update(name="renamed") == 1
    assert Evidence.objects.update(verified=True) > 1


def test_a_guard_survives_migrating_again(run):
    """Installing the triggers a second time leaves them in force."""
    immutable.install(connection)
    with pytest.raises(IntegrityError, match="immutable"), transaction.atomic():
        Evidence.objects.update(bytes=1)


def test_outcomes_must_add_up_to_attempted(run):
    """A count that does not add up is refused: 20 attempted is not 18 completed and 1 failed."""
    rows = run.request_records
    counts = {name: getattr(rows, name) for name in OUTCOME_FIELDS}
    assert (counts["completed"], counts["failed"], rows.attempted) == (19, 1, 20)
    other = factories.make_run(run.project)
    with (
        pytest.raises(IntegrityError, match="outcomes_add_up_to_attempted"),
        transaction.atomic(),
    ):
        RequestRecords.objects.create(
            project=run.project, run=other, requests=rows.requests, attempts=rows.attempts,
            attempted=20, **(counts | {"completed": 18}),
        )  # fmt: skip


def test_a_fingerprint_stands_once_in_a_project(project):
    """The same tuple is one row in a project and may be another's too."""
    first = factories.make_configuration(project)
    fields = {"name": "twin", "fingerprint": first.fingerprint, "document": first.document}
    with pytest.raises(IntegrityError), transaction.atomic():
        Configuration.objects.create(project=project, **fields)
    elsewhere = factories.make_project()
    assert Configuration.objects.create(project=elsewhere, **fields).pk != first.pk


def test_a_load_run_is_whole_and_an_external_one_need_not_be(project):
    """A load run without its trace is refused; an upload may not know any of the four."""
    made = factories.make_run(project)
    with pytest.raises(IntegrityError, match="load_run_is_whole"), transaction.atomic():
        Run.objects.filter(pk=made.pk).update(trace=None)
    Run.objects.create(project=project, number=99, kind=RunKind.EXTERNAL)


def test_a_running_run_holds_a_lease(project):
    """Running without a lease is refused: nobody would ever recover it."""
    made = factories.make_run(project)
    with pytest.raises(IntegrityError, match="running_run_has_a_lease"), transaction.atomic():
        Run.objects.filter(pk=made.pk).update(state=RunState.RUNNING)


def test_a_state_outside_the_vocabulary_is_refused(project):
    """Only the states of the contract can be stored."""
    made = factories.make_run(project)
    with pytest.raises(IntegrityError, match="run_state_known"), transaction.atomic():
        Run.objects.filter(pk=made.pk).update(state="done")


def test_a_number_and_a_name_stand_once(project):
    """Two runs never share a number, two endpoints never a name."""
    made = factories.make_run(project)
    with pytest.raises(IntegrityError), transaction.atomic():
        Run.objects.create(project=project, number=made.number, kind=RunKind.EXTERNAL)
    with pytest.raises(IntegrityError), transaction.atomic():
        Endpoint.objects.create(
            project=project, name=made.endpoint.name, url="http://127.0.0.1:1", model="m"
        )
