"""Uploaded runs: computed here from their evidence, or kept as a record nobody can recompute."""

from __future__ import annotations

import copy
import json

import pytest

from records.acceptance.judging import judge_folder
from records.analysis.record import analyze_folder
from records.errors import BadEvidence, EvidenceDiffers, NotPermitted
from records.evidence.folder import EvidenceFolder
from records.models import Configuration, Run, Trace, Workload
from records.services import evidence, external
from tests import factories


@pytest.fixture
def folder(tmp_path):
    return factories.sample_folder(tmp_path)


def _upload(project, user, folder) -> Run:
    return external.run_from_folder(
        project=project, user=user, folder=folder, filename="run.tar.zst"
    )


def test_a_folder_becomes_a_run_with_everything_it_names(project, alice, folder):
    """Workload, configuration and trace are rows, the record is computed from the evidence."""
    run = _upload(project, alice, folder)
    assert (run.kind, run.state, run.title) == ("external", "completed", "run.tar.zst")
    assert (run.attempted, run.accepted, run.simulated, run.cache_state) == (20, 18, True, "warm")
    told = EvidenceFolder.open(folder).run
    assert run.configuration.fingerprint == told["configuration_fingerprint"]
    assert run.workload.sha256 == told["workload_hash"]
    assert run.trace.trace_hash == told["trace"]["trace_hash"]
    assert run.started_at.isoformat() == "2026-01-01T00:00:00+00:00"
    # It ended 10 s later: last arrival 9.5 s, then 0.5 s.
    assert (run.ended_at - run.started_at).total_seconds() == 10
    assert evidence.evidence_verify(run=run) == []


def test_what_the_project_has_already_is_found_again(project, alice, folder):
    """The same workload, configuration and trace make no second row."""
    made = factories.make_run(project)
    run = _upload(project, alice, folder)
    assert (run.workload, run.configuration, run.trace) == (
        made.workload, made.configuration, made.trace,
    )  # fmt: skip
    assert (Workload.objects.count(), Configuration.objects.count(), Trace.objects.count()) == (
        1, 1, 1,
    )  # fmt: skip


def test_a_record_that_comes_with_evidence_is_not_believed(project, alice, folder):
    """A forged record in the folder changes no figure; it is kept as a file."""
    opened = EvidenceFolder.open(folder)
    forged = opened.add_record(b'{"schema":"impakt.record/1","counts":{"accepted":1000}}')
    run = _upload(project, alice, folder)
    assert run.accepted == 18
    assert run.measurement_records.count() == 1
    assert run.evidence.filter(name=f"records/{forged.name}").exists()


def test_an_interrupted_run_stays_interrupted(project, alice, tmp_path):
    """Uploading does not turn a cut run into a whole one."""
    end = {"ended_s": 5.0, "reason": "killed", "text": None}
    folder = factories.sample_folder(tmp_path, state="interrupted", end=end)
    assert _upload(project, alice, folder).state == "interrupted"


def test_damaged_or_unsealed_evidence_leaves_nothing(project, alice, tmp_path, folder):
    """A flipped byte and a state that no seal writes are named; no run is made."""
    path = folder / "requests.parquet"
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(data)
    with pytest.raises((EvidenceDiffers, BadEvidence), match=r"requests\.parquet"):
        _upload(project, alice, folder)
    running = factories.sample_folder(tmp_path, name="running", state="running")
    with pytest.raises(BadEvidence, match="state"):
        _upload(project, alice, running)
    assert not Run.objects.exists()


@pytest.mark.parametrize("who", ["bob", "mallory"])
def test_viewers_and_outsiders_may_not_upload(project, folder, who, request):
    """Uploading needs a role that may."""
    with pytest.raises(NotPermitted):
        _upload(project, request.getfixturevalue(who), folder)
    assert not Run.objects.exists()


@pytest.fixture(scope="module")
def computed(tmp_path_factory):
    """The record of the sample folder, computed once."""
    folder = factories.sample_evidence(tmp_path_factory.mktemp("record"))
    judge_folder(folder)
    return analyze_folder(folder.path)


@pytest.fixture
def document(computed):
    """A record as a client would send it."""
    return copy.deepcopy(computed)


def _from_record(project, user, document) -> Run:
    return external.run_from_record(
        project=project, user=user, record=document, filename="record.json"
    )


def test_a_bare_record_is_kept_as_it_is_and_says_where_it_comes_from(project, alice, document):
    """Its figures show, its source says that nobody recomputed them."""
    known = factories.make_run(project)
    run = _from_record(project, alice, document)
    assert (run.kind, run.state, run.source) == ("external", "completed", "uploaded record")
    assert (run.attempted, run.accepted) == (20, 18)
    stored = run.measurement_records.get()
    assert stored.document == document
    assert [e.name for e in run.evidence.all()] == [f"records/{stored.sha256}.json"]
    # The project knows the trace and the workload by their hashes.
    assert (run.trace, run.workload) == (known.trace, known.workload)


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        (("schema",), "other/1", "schema"),
        (("valid",), "yes", "valid"),
        (("analysis_version",), 1, "analysis_version"),
        (("counts",), [], "counts"),
        (("counts", "failed"), 2, "counts.attempted"),
        (("counts", "failed"), -1, "counts.failed"),
        (("counts", "failed"), None, "counts.failed"),
        (("notes",), [float("nan")], "NaN|nan"),
        (("run", "owner"), "a\0b", "run.owner"),
    ],
)
def test_a_wrong_record_names_its_field(project, alice, document, path, value, field):
    """Counts that do not add up and values that are not JSON are refused."""
    inner = document
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    before = Run.objects.count()
    with pytest.raises(BadEvidence, match=field):
        _from_record(project, alice, document)
    assert Run.objects.count() == before


def test_figures_that_are_missing_are_unknown(project, alice, document):
    """A record without a latency or a rate leaves those columns empty."""
    document["latency"] = {"ttft_s": None}
    document["goodput"] = {}
    run = _from_record(project, alice, json.loads(json.dumps(document)))
    assert (run.ttft_p95_s, run.accepted_per_s, run.slo_attainment) == (None, None, None)


@pytest.mark.parametrize("replicate", [-1, 2**31, 10**40, True, "2"])
def test_a_replicate_that_no_column_holds_is_unknown(project, alice, document, replicate):
    document["run"]["replicate"] = replicate
    assert _from_record(project, alice, document).replicate is None
