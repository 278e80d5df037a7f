"""Evidence goes into the store once, comes out checked, and tells when a byte is another."""

from __future__ import annotations

import json

import pytest

from records.errors import EvidenceDiffers, NotPermitted
from records.evidence.folder import EvidenceFolder
from records.evidence.manifest import verify_folder
from records.models import Alert, AuditEntry, Evidence, Judgment, Run
from records.models.choices import AlertKind
from records.services import evidence, judgment, record
from records.services.storage import evidence_store
from tests import factories


@pytest.fixture
def folder(tmp_path):
    return factories.sample_folder(tmp_path)


@pytest.fixture
def own_store(settings, tmp_path):
    """A store that a test may damage."""
    settings.EVIDENCE_DIR = tmp_path / "store"


@pytest.fixture
def run(project, folder, own_store) -> Run:
    return factories.make_run(project, folder=folder)


def test_every_file_of_a_folder_is_taken_in_once(project, folder, own_store):
    """All raw files and the manifest get a row; a second time changes nothing."""
    made = factories.make_run(project)
    rows = evidence.evidence_ingest(run=made, folder=folder)
    names = {entry.name for entry in EvidenceFolder.open(folder).files()}
    assert {row.name for row in rows} == names | {"manifest.json"}
    for row in rows:
        assert evidence_store().read_bytes(row.sha256) == (folder / row.name).read_bytes()
    again = evidence.evidence_ingest(run=made, folder=folder)
    assert [row.pk for row in again] == [row.pk for row in rows]
    assert AuditEntry.objects.filter(action="evidence.ingest").count() == 1


def test_outcomes_are_counted_from_the_requests(run):
    """20 requests, the fourth of which failed: 19 + 1 = 20."""
    rows = run.request_records
    assert (rows.attempted, rows.completed, rows.failed) == (20, 19, 1)
    assert rows.requests.name == "requests.parquet"


def test_a_changed_file_is_refused_and_nothing_is_written(project, folder):
    """One flipped byte: the file is named, no row is made."""
    made = factories.make_run(project)
    path = folder / "attempts.parquet"
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)
    with pytest.raises(EvidenceDiffers, match=r"attempts\.parquet"):
        evidence.evidence_ingest(run=made, folder=folder)
    assert not Evidence.objects.filter(run=made).exists()


def test_another_folder_for_the_same_run_is_refused(run, tmp_path):
    """Other bytes under a known name never replace what was measured."""
    other = factories.sample_folder(tmp_path, name="other", requests=10)
    with pytest.raises(EvidenceDiffers, match="other bytes are known"):
        evidence.evidence_ingest(run=run, folder=other)
    assert run.request_records.attempted == 20


def test_a_checkout_is_the_folder_again(run, folder):
    """What comes out verifies against its own manifest and goes away afterwards."""
    with evidence.folder_checkout(run) as path:
        assert verify_folder(path) == []
        assert (path / "run.json").read_bytes() == (folder / "run.json").read_bytes()
    assert not path.exists()


def _damage(run: Run, name: str) -> None:
    path = evidence_store().path_of(run.evidence.get(name=name).sha256)
    path.chmod(0o600)
    data = bytearray(path.read_bytes())
    data[10] ^= 1
    path.write_bytes(data)


def test_whole_evidence_verifies_and_says_when(run, bob):
    """Any member may ask; each row remembers the result."""
    assert evidence.evidence_verify(run=run, user=bob) == []
    assert not run.evidence.exclude(verified=True).exists()
    assert not Alert.objects.exists()


def test_a_flipped_byte_in_the_store_is_found_named_and_alerted(run):
    """The damaged file is named, marked and raises one alert however often it is found."""
    _damage(run, "requests.parquet")
    for _ in range(2):
        found = evidence.evidence_verify(run=run)
        assert [(d.name, d.kind) for d in found] == [("requests.parquet", "changed")]
    assert run.evidence.get(name="requests.parquet").verified is False
    assert run.evidence.filter(verified=True).count() == run.evidence.count() - 1
    assert Alert.objects.get().kind == AlertKind.EVIDENCE_DIFFERS


def test_a_file_gone_from_the_store_is_missing(run):
    """Absent bytes are told apart from changed ones."""
    evidence_store().path_of(run.evidence.get(name="chunks.parquet").sha256).unlink()
    found = evidence.evidence_verify(run=run)
    assert [(d.name, d.kind) for d in found] == [("chunks.parquet", "missing")]


def test_damaged_bytes_are_never_handed_out(run):
    """Neither opening nor checking out gives bytes that are not what the registry says."""
    _damage(run, "requests.parquet")
    with pytest.raises(EvidenceDiffers):
        evidence.evidence_open(run.evidence.get(name="requests.parquet"))
    with pytest.raises(EvidenceDiffers), evidence.folder_checkout(run):
        pass


def test_an_outsider_may_not_verify(run, mallory):
    """Verification is for members."""
    with pytest.raises(NotPermitted):
        evidence.evidence_verify(run=run, user=mallory)


def test_analysing_twice_gives_the_same_record(run):
    """The same evidence gives the same bytes, so there is one record, and it recomputes."""
    first = run.measurement_records.get()
    again = record.run_analyse(run=run)
    assert again.pk == first.pk
    assert record.record_recompute(run=run) == []
    assert run.evidence.filter(name=f"records/{first.sha256}.json").exists()


def test_the_headline_repeats_the_record(run):
    """19 of 20 completed; of these request 1 does not cite its evidence, so 18 are accepted.

    The window is 9.5 s long: 18 / 9.5 = 1.894737 accepted per second.
    """
    document = run.measurement_records.get().document
    assert (run.attempted, run.completed, run.accepted) == (20, 19, 18)
    assert run.accepted_per_s == pytest.approx(18 / 9.5)
    assert run.accepted_per_s_low < run.accepted_per_s < run.accepted_per_s_high
    assert run.slo_attainment == document["goodput"]["slo_attainment"]["value"]
    # 19 samples do not carry a 95th percentile, so the list shows none either.
    assert document["latency"]["ttft_s"]["p95"]["supported"] is False
    assert run.ttft_p95_s is None
    assert run.valid is True
    json.dumps(document, allow_nan=False)


def test_judgments_become_rows(run, folder):
    """The automatic set holds the 19 completed; request 1 fails for want of a citation."""
    judged = run.judgment_sets.get()
    rows = Judgment.objects.filter(judgment_set=judged)
    assert (judged.method, rows.count()) == ("automatic", 19)
    failed = rows.get(rubric_passed=False)
    assert failed.request_id == "r1"
    assert failed.criteria["citations"]["passed"] is False
    with evidence.folder_checkout(run) as path:
        judgment.judgments_ingest(run=run, folder=path)
    assert run.judgment_sets.count() == 1


def test_a_record_of_changed_judgments_replaces_the_last(run, folder):
    """A later human verdict gives another record; the old one stays and is replaced."""
    from records.evidence.judgments import judgment_bytes

    first = run.measurement_records.get()
    with evidence.folder_checkout(run) as path:
        opened = EvidenceFolder.open(path)
        opened.add_judgments(_human(opened, judgment_bytes))
        judgment.judgments_ingest(run=run, folder=path)
    second = record.run_analyse(run=run)
    run.refresh_from_db()
    assert second.replaces == first
    assert run.accepted == 17
    assert run.measurement_records.count() == 2


def _human(folder: EvidenceFolder, judgment_bytes) -> bytes:
    header = {
        "method": "human", "author": "bob", "created_at": "2026-01-02T00:00:00Z",
        "rubric_hash": folder.workload["hashes"]["rubric"], "covers": "sample",
    }  # fmt: skip
    line = {
        "workflow_id": "r0", "request_id": "r0", "rubric_passed": False,
        "criteria": {"citations": {"passed": False, "reason": "cites the wrong line"}},
        "severe_failure": False, "authority_violation": False, "review_minutes": 1.5,
    }  # fmt: skip
    return judgment_bytes(header, [line])
