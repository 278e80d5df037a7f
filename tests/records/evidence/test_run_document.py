"""run.json is checked before anything is computed from it."""

import pytest

from records.errors import BadEvidence
from records.evidence.run_document import FIELDS, SCHEMA, check_run


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("state", "paused"),
        ("created_at", "2026-01-01T00:00:00"),
        ("created_at", 7),
        ("clock", 1.5),
        ("clock.started_at", "yesterday"),
        ("end.ended_s", "x"),
        ("end.ended_s", float("nan")),
        ("generator", "busy"),
        ("policies.max_concurrency", "many"),
        ("policies.max_concurrency", True),
        ("policies.timeout_s", -1),
        ("window.end_s", "late"),
        ("cache_state", "lukewarm"),
        ("simulated", "yes"),
        ("trace", []),
        ("configuration", "c"),
    ],
)
def test_a_field_of_another_kind_is_named(path, value):
    """The error names the file, the field and what was expected."""
    run = {"schema": SCHEMA}
    *parents, last = path.split(".")
    place = run
    for key in parents:
        place = place.setdefault(key, {})
    place[last] = value
    with pytest.raises(BadEvidence) as caught:
        check_run(run, "run.json")
    assert caught.value.field == path
    assert str(caught.value).startswith(f"run.json: {path}: {FIELDS[path][1]}")


def test_absent_null_and_unknown_fields_are_kept():
    """A run that does not say something is a run all the same; what we do not know stays."""
    run = {"schema": SCHEMA, "owner": None, "clock": None, "site": {"rack": 7}}
    assert check_run(run, "run.json") == run


@pytest.mark.parametrize("run", [None, [], "x", {}, {"schema": "impakt.run/2"}])
def test_what_is_not_a_run_document_is_refused(run):
    """No object, or another schema, is not read as a run."""
    with pytest.raises(BadEvidence):
        check_run(run, "run.json")
