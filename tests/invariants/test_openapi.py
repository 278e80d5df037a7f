"""The OpenAPI document is whole: every route in it, every one of them behind authentication."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from django.urls import URLPattern, URLResolver, get_resolver
from rest_framework.test import APIClient

from records.api import fallback, urls
from records.api.schema import document
from tests import factories
from tests.records.api.conftest import client_with

ROOT = Path(__file__).resolve().parents[2]
PUBLIC = {"/api/v1/schema/"}
RESOURCES = [
    "projects",
    "workloads",
    "configurations",
    "endpoints",
    "traces",
    "runs",
    "uploads",
    "evidence",
    "judgments",
    "records",
    "comparisons",
    "decisions",
    "alerts",
    "tokens",
    "audit",
]


def _routes(patterns, prefix=""):
    """(path, view) of every route below; path parameters as {name}."""
    for pattern in patterns:
        path = prefix + _plain(str(pattern.pattern))
        if isinstance(pattern, URLResolver):
            yield from _routes(pattern.url_patterns, path)
        elif isinstance(pattern, URLPattern):
            yield path, pattern.callback


def _plain(pattern: str) -> str:
    """`^runs/(?P<pk>[^/.]+)/$` and `<str:pk>` as `runs/{pk}/` and `{pk}`."""
    pattern = re.sub(r"\(\?P<(\w+)>[^)]*\)", r"{\1}", pattern)
    return re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", pattern).replace("^", "").replace("$", "")


def _api_routes():
    return [
        (path, view)
        for path, view in _routes(urls.urlpatterns, "/api/")
        if path.startswith("/api/v1/") and getattr(view, "cls", None) is not fallback.NoSuchRoute
    ]


def test_every_route_is_in_the_document():
    """And the document has no route more."""
    routes = {path.replace("{pk}", "{id}").replace("\\Z", "") for path, _ in _api_routes()}
    assert routes == set(document()["paths"])
    for resource in RESOURCES:
        assert f"/api/v1/{resource}/" in routes


def test_the_api_is_where_the_contract_says():
    """No route of the API lies outside /api/."""
    found = [p for p, _ in _routes(get_resolver().url_patterns, "/") if "/api/" in p]
    assert found
    assert all(path.startswith("/api/") for path in found)


def test_every_operation_asks_for_a_token():
    """In the document; the schema itself is public."""
    for path, item in document()["paths"].items():
        for operation in item.values():
            expected = [{}] if path in PUBLIC else [{"bearer": []}, {"cookieAuth": []}]
            assert operation["security"] == expected, path


def test_every_operation_turns_strangers_away(db):
    """In earnest: 401 for each method of each path."""
    client = APIClient()
    for path, item in document()["paths"].items():
        for method in item:
            response = getattr(client, method)(path.replace("{id}", "1"))
            assert response.status_code == (200 if path in PUBLIC else 401), (method, path)


@pytest.fixture
def everything(project, tmp_path):
    """A project with a row in every list that this version can fill."""
    from records.models import Alert, Comparison, Decision, Upload
    from records.services import access

    run = factories.make_run(project, folder=factories.sample_folder(tmp_path))
    comparison = Comparison.objects.create(project=project, number=1, title="c")
    comparison.baselines.add(run)
    Decision.objects.create(
        project=project, number=1, question="q", intervention="batching",
        comparison=comparison, verdict="not_enough_evidence",
    )  # fmt: skip
    Alert.objects.create(project=project, kind="run_failed", title="a", run=run)
    Upload.objects.create(project=project, sha256="0" * 64, bytes=1, run=run)
    access.token_create(project=project, user=factories.owner_of(project), name="t")
    return run


def test_every_list_and_detail_is_scoped(everything, alice, mallory, project):
    """A member finds and opens a row of every list; the same addresses tell an outsider nothing."""
    from records.services import access

    _, secret = access.token_create(project=project, user=alice, name="in")
    _, outside = access.token_create(
        project=mallory.memberships.get().project, user=mallory, name="out"
    )
    member, outsider = client_with(secret), client_with(outside)
    for resource in RESOURCES:
        rows = member.get(f"/api/v1/{resource}/").json()["results"]
        assert rows, resource
        assert member.get(rows[0]["url"]).status_code == 200, resource
        assert outsider.get(rows[0]["url"]).status_code == 404, resource
        seen = outsider.get(f"/api/v1/{resource}/").json()["results"]
        assert {r["id"] for r in rows}.isdisjoint(r["id"] for r in seen), resource
        narrowed = outsider.get(f"/api/v1/{resource}/", {"project": project.slug})
        if resource != "projects":
            assert narrowed.json()["results"] == [], resource


def test_every_ordering_that_is_offered_works(everything, alice, project):
    """Each value of each `ordering` in the document gives a page."""
    from records.services import access

    client = client_with(access.token_create(project=project, user=alice, name="in")[1])
    for path, item in document()["paths"].items():
        for parameter in item.get("get", {}).get("parameters", []):
            if parameter["name"] == "ordering":
                for value in parameter["schema"]["enum"]:
                    response = client.get(path, {"ordering": value, "page_size": 1})
                    assert response.status_code == 200, (path, value)


def test_every_answer_has_the_fields_of_the_document(everything, alice, project):
    """No field is answered that the document does not have, nor the other way round."""
    from records.services import access

    client = client_with(access.token_create(project=project, user=alice, name="in")[1])
    schemas = document()["components"]["schemas"]
    for path, item in document()["paths"].items():
        if "{id}" in path or "get" not in item or path in PUBLIC:
            continue
        answer = item["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        rows = schemas[answer["$ref"].rpartition("/")[2]]["properties"]["results"]["items"]
        fields = schemas[rows["$ref"].rpartition("/")[2]]["properties"]
        for row in client.get(path).json()["results"]:
            assert set(row) == set(fields), path


def test_the_document_is_served_as_json_and_yaml(db):
    """The same document in both; JSON unless asked otherwise; no token needed."""
    client = APIClient()
    plain = client.get("/api/v1/schema/")
    assert plain["Content-Type"].startswith("application/json")
    assert plain.json()["openapi"].startswith("3.")
    written = client.get("/api/v1/schema/", {"format": "yaml"})
    assert yaml.safe_load(written.content) == plain.json()
    assert plain.json() == json.loads(json.dumps(document()))


def test_the_document_is_made_without_a_warning(tmp_path):
    """And it is valid OpenAPI: drf-spectacular's own command says so."""
    command = ["manage.py", "spectacular", "--validate", "--fail-on-warn", "--file"]
    done = subprocess.run(
        [sys.executable, *command, str(tmp_path / "schema.yaml")],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_the_readable_pages_tell_of_every_operation(client, db):
    """Without a script or a style of their own: the content security policy allows none."""
    response = client.get("/api/docs/")
    page = response.content.decode()
    assert response.status_code == 200
    for path, item in document()["paths"].items():
        for method, operation in item.items():
            assert f'id="{operation["operationId"]}"' in page
            assert f'<span class="tag">{method.upper()}</span> <code>{path}</code>' in page
    assert not re.search(r"<script(?![^>]*\bsrc=)|\bstyle=|<style|\bon\w+=", page)
    assert "default-src 'none'" in response["Content-Security-Policy"]
