"""Every JSON document that leaves the API is JSON: no NaN, no infinity, whatever was measured."""

from __future__ import annotations

import json

import pytest

from records.api.schema import document
from records.services import access
from tests import factories
from tests.records.api.conftest import client_with


def strict(data: bytes):
    """The document; fails on NaN and Infinity, which Python's reader would let through."""

    def refuse(constant: str):
        raise AssertionError(f"{constant} in {data[:200]!r}")

    return json.loads(data, parse_constant=refuse)


@pytest.fixture
def member(project, alice):
    return client_with(
        access.token_create(project=project, user=alice, name="in", scope="write")[1]
    )


def _read_everything(client) -> int:
    """Every list and every row on it; the number of rows read."""
    read = 0
    for path, item in document()["paths"].items():
        if "{" in path or "get" not in item:
            continue
        for row in strict(client.get(path).content).get("results", []):
            strict(client.get(row["url"]).content)
            read += 1
    return read


# One request has no spread, no rate and no interval; four (of which one failed) have no tail.
@pytest.mark.parametrize("requests", [1, 2, 4, 20])
def test_small_runs_have_no_figure_that_is_no_number(member, project, tmp_path, requests):
    """Where too little was measured the figure is null."""
    folder = factories.sample_folder(tmp_path, requests=requests)
    run = factories.make_run(project, folder=folder)
    assert _read_everything(member) > run.evidence.count()


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_what_is_no_number_does_not_get_in(member, constant):
    """400 from a create and from an upload."""
    body = f'{{"name": "x", "document": {{"a": [{constant}]}}}}'
    created = member.post("/api/v1/configurations/", body, content_type="application/json")
    assert created.status_code == 400
    record = f'{{"schema": "impakt.record/1", "valid": {constant}}}'
    uploaded = member.post("/api/v1/uploads/", record, content_type="application/json")
    assert uploaded.status_code == 400
