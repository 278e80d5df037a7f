"""Evidence is handed out byte for byte, checked first, and a difference is said."""

from __future__ import annotations

import hashlib

import pytest
from django.urls import reverse

from records.models import Alert
from records.services.storage import evidence_store


def place(run, row):
    return reverse("evidence", args=[run.project.slug, run.number, row.pk])


def test_every_file_arrives_as_it_was_written(as_alice, run):
    for row in run.evidence.all():
        answer = as_alice.get(place(run, row))
        data = b"".join(answer.streaming_content)
        assert hashlib.sha256(data).hexdigest() == row.sha256 == answer["X-Content-SHA256"]
        assert answer["Content-Disposition"].startswith("attachment")
        assert answer["Content-Type"] == "application/octet-stream"


def test_a_changed_file_is_not_handed_out(as_alice, run, tamper):
    row = run.evidence.get(name="requests.parquet")
    tamper(row)
    answer = as_alice.get(place(run, row), follow=True)
    assert b"cannot be handed out" in answer.content


def test_verify_says_that_all_is_well_and_marks_the_files(as_alice, run):
    answer = as_alice.post(reverse("run_verify", args=[run.project.slug, run.number]), follow=True)
    assert b"Every file is as it was written" in answer.content
    assert set(run.evidence.values_list("verified", flat=True)) == {True}


def test_verify_names_the_file_that_differs_and_raises_an_alert(as_alice, run, tamper):
    tamper(run.evidence.get(name="requests.parquet"))
    answer = as_alice.post(reverse("run_verify", args=[run.project.slug, run.number]), follow=True)
    assert b"requests.parquet (changed)" in answer.content
    assert Alert.objects.get(run=run).kind == "evidence_differs"
    assert answer.context["checks"][0].title == "Evidence differs"


def test_another_runs_file_is_not_found_under_this_run(as_alice, run, tmp_path):
    from tests import factories

    other = factories.make_run(
        run.project, folder=factories.sample_folder(tmp_path, name="other", run_id="other")
    )
    address = reverse("evidence", args=[run.project.slug, run.number, other.evidence.first().pk])
    assert as_alice.get(address).status_code == 404


@pytest.fixture
def tamper():
    """Changes one byte of a stored file; puts it right afterwards, for the store is shared."""
    changed = []

    def change(row) -> None:
        path = evidence_store().path_of(row.sha256)
        data = path.read_bytes()
        changed.append((path, data))
        path.chmod(0o600)
        path.write_bytes(bytes([data[0] ^ 1]) + data[1:])

    yield change
    for path, data in changed:
        path.write_bytes(data)
