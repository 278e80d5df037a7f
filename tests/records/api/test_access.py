"""Who gets what: strangers 401, outsiders 404, readers no writes, members their own."""

from __future__ import annotations

import pytest
from rest_framework.test import APIClient

from records.models import ApiToken
from tests import factories
from tests.records.api.conftest import client_with


@pytest.fixture
def run(project):
    return factories.make_run(project)


def test_a_stranger_is_told_how_to_authenticate(db):
    """401 as a problem document, with the scheme in WWW-Authenticate."""
    response = APIClient().get("/api/v1/runs/")
    assert response.status_code == 401
    assert response["Content-Type"] == "application/problem+json"
    assert response["WWW-Authenticate"] == "Bearer"
    assert response.json()["status"] == 401


@pytest.mark.parametrize("header", ["Bearer wrong", "Bearer", "Bearer a b"])
def test_a_wrong_token_is_no_token(db, header):
    """A token that nobody gave answers 401, and is not repeated in the answer."""
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=header)
    response = client.get("/api/v1/runs/")
    assert response.status_code == 401
    assert "wrong" not in response.content.decode()


def test_a_revoked_token_stops_working(writer, project):
    """Revoking takes effect with the next request."""
    from records.services import access

    token = ApiToken.objects.get(project=project)
    access.token_revoke(token=token, user=token.user)
    assert writer.get("/api/v1/runs/").status_code == 401


def test_an_outsider_finds_nothing(outsider, run):
    """Neither list nor detail tells an outsider that the run exists."""
    assert outsider.get("/api/v1/runs/").json()["results"] == []
    response = outsider.get(f"/api/v1/runs/{run.pk}/")
    assert response.status_code == 404
    assert response["Content-Type"] == "application/problem+json"
    missing = outsider.get("/api/v1/runs/999999/")
    assert response.json() == missing.json()


def test_a_token_sees_its_own_project_only(alice, project, run, token_of):
    """Alice belongs to two projects; her token of the other one does not see this one's runs."""
    other = factories.make_project(owner=alice)
    client = client_with(token_of(alice, other))
    assert client.get("/api/v1/runs/").json()["results"] == []
    assert client.get(f"/api/v1/runs/{run.pk}/").status_code == 404
    assert [p["slug"] for p in client.get("/api/v1/projects/").json()["results"]] == [other.slug]


def test_a_signed_in_member_sees_all_their_projects(alice, project, run, signed_in):
    """A session is not bound to one project."""
    factories.make_run(factories.make_project(owner=alice))
    assert len(signed_in.get("/api/v1/runs/").json()["results"]) == 2
    narrowed = signed_in.get("/api/v1/runs/", {"project": project.slug}).json()["results"]
    assert [r["id"] for r in narrowed] == [run.pk]


def test_a_read_token_does_not_write(reader):
    """403 whatever the role of its user."""
    body = {"name": "c", "document": {"model": "m"}}
    response = reader.post("/api/v1/configurations/", body, format="json")
    assert response.status_code == 403
    assert response["Content-Type"] == "application/problem+json"


def test_a_viewer_does_not_write(viewer, run):
    """403 naming the roles that may, whatever the scope of the token."""
    body = {"name": "c", "document": {"model": "m"}}
    response = viewer.post("/api/v1/configurations/", body, format="json")
    assert response.status_code == 403
    assert "operator" in response.json()["detail"]
    assert viewer.post(f"/api/v1/runs/{run.pk}/cancel/").status_code == 403
    assert viewer.get(f"/api/v1/runs/{run.pk}/").status_code == 200


def test_a_session_needs_the_csrf_token(alice, project):
    """A page elsewhere cannot make a signed-in browser write."""
    client = APIClient(enforce_csrf_checks=True)
    client.force_login(alice)
    body = {"name": "c", "document": {"model": "m"}}
    assert client.post("/api/v1/configurations/", body, format="json").status_code == 403


def test_another_project_cannot_be_named(writer, elsewhere):
    """Naming a project the token does not see answers as if it did not exist."""
    body = {"project": elsewhere.slug, "name": "c", "document": {"model": "m"}}
    assert writer.post("/api/v1/configurations/", body, format="json").status_code == 404


def test_no_address_is_a_problem_document_too(db):
    """An unknown address, and one that lacks its slash."""
    client = APIClient()
    response = client.get("/api/v1/nothing/")
    assert response.status_code == 404
    assert response["Content-Type"] == "application/problem+json"
    redirect = client.get("/api/v1/runs?state=queued")
    assert (redirect.status_code, redirect["Location"]) == (301, "/api/v1/runs/?state=queued")
    assert "/api/v1/uploads/" in client.post("/api/v1/uploads").json()["detail"]


def test_asking_what_is_possible_is_no_error(writer):
    """OPTIONS and HEAD on every list."""
    from records.api.schema import document

    for path, item in document()["paths"].items():
        if "{" not in path and "get" in item:
            assert writer.options(path).status_code == 200, path
            assert writer.head(path).status_code == 200, path


def test_a_fault_of_the_server_is_a_problem_document_too(writer, monkeypatch, caplog):
    """500 without a word of what it was, which the log has."""

    def broken(*args):
        raise ZeroDivisionError("secret of the server")

    monkeypatch.setattr("records.api.views.visible", broken)
    response = writer.get("/api/v1/runs/")
    assert (response.status_code, response["Content-Type"]) == (500, "application/problem+json")
    assert "secret" not in response.content.decode()
    assert "secret of the server" in caplog.text
