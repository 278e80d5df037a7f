"""Creates: what they answer, what they refuse, and that a key makes them happen once."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from records.models import ApiToken, AuditEntry, Configuration, IdempotencyKey, Run, Workload
from records.services import tasks
from tests import factories
from tests.records.api.conftest import client_with

_CONFIGURATION = {"name": "batching on", "document": {"model": "m", "batching": "continuous"}}


@pytest.fixture
def sent(monkeypatch):
    """The tasks that would have been sent to the broker."""
    found = []
    monkeypatch.setattr(tasks, "enqueue", lambda name, *args, **kw: found.append((name, args)))
    return found


def _create(client, resource, body, key=None):
    headers = {} if key is None else {"Idempotency-Key": key}
    return client.post(f"/api/v1/{resource}/", body, format="json", headers=headers)


def test_a_configuration_is_made_once(writer):
    """201 for a new tuple; 200 with the same row for the same tuple in another key order."""
    first = _create(writer, "configurations", _CONFIGURATION)
    assert first.status_code == 201
    assert first["Location"] == first.json()["url"]
    turned = {"name": "again", "document": {"batching": "continuous", "model": "m"}}
    second = _create(writer, "configurations", turned)
    assert (second.status_code, second.json()) == (200, first.json())
    assert AuditEntry.objects.filter(action="configuration.create").count() == 1


def test_a_workload_and_its_next_version(writer):
    """Changed content under the same name is version 2."""
    first = _create(writer, "workloads", {"document": factories.WORKLOAD})
    assert (first.status_code, first.json()["version"]) == (201, 1)
    assert [c["name"] for c in first.json()["classes"]] == ["interactive", "background"]
    changed = factories.WORKLOAD | {"title": "Other"}
    second = _create(writer, "workloads", {"document": changed})
    assert (second.json()["version"], second.json()["replaces"]) == (2, first.json()["id"])


@pytest.mark.parametrize(
    ("resource", "body", "field"),
    [
        ("configurations", {"document": {"model": "m"}}, "name"),
        ("configurations", {"name": "x", "document": []}, "document"),
        ("configurations", {"name": "x", "document": {"runtime": "v"}}, "runtime"),
        ("configurations", {"name": "x", "document": {"a": {"b": "\0"}}}, "a.b"),
        ("workloads", {"document": {"name": "w", "classes": []}}, "classes"),
        ("runs", {"workload": 1, "endpoint": 1}, "trace"),
        ("runs", {"workload": 999, "endpoint": 999, "trace": 999}, "workload"),
        ("runs", {"workload": 10**30, "endpoint": 1, "trace": 1}, "workload"),
    ],
)
def test_a_wrong_field_is_named(writer, resource, body, field):
    """400 with the path of the field; nothing is made."""
    response = _create(writer, resource, body)
    assert response.status_code == 400
    assert response["Content-Type"] == "application/problem+json"
    assert field in [e["field"] for e in response.json()["errors"]]


@pytest.mark.parametrize(
    "body",
    [
        b'{"name": "x", "document": {"a": NaN}}',
        b'{"name": "x", "document": {"a": "\\ud800"}}',
        b'{"name": "x", "document": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"name": "\xff"}',
        b"[1]",
        b"{",
        b"",
    ],
    ids=["nan", "surrogate", "deep", "no UTF-8", "list", "torn", "empty"],
)
def test_what_is_not_json_is_refused(writer, body):
    """400, whatever it is that no JSON reader or database could keep."""
    response = writer.post("/api/v1/configurations/", body, content_type="application/json")
    assert response.status_code == 400
    assert not Configuration.objects.exists()


def test_a_body_beyond_the_limit_is_refused(writer, settings):
    """413 for JSON beyond DATA_UPLOAD_MAX_MEMORY_SIZE."""
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 100
    response = _create(writer, "configurations", {"name": "x" * 100, "document": {}})
    assert response.status_code == 413


def test_the_same_key_and_body_give_the_first_answer(writer, project):
    """Also where the service by itself would make a second row, as for runs."""
    body = _run_body(project) | {"launch": False}
    first = _create(writer, "runs", body, "k1")
    again = _create(writer, "runs", dict(reversed(body.items())), "k1")
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    assert again["Idempotent-Replayed"] == "true"
    assert Run.objects.count() == 1
    assert _create(writer, "runs", body, "k2").json()["number"] == 2


def test_the_same_key_with_another_body_is_refused(writer):
    """409, and nothing is made."""
    _create(writer, "configurations", _CONFIGURATION, "k")
    response = _create(writer, "configurations", _CONFIGURATION | {"name": "other"}, "k")
    assert response.status_code == 409
    assert response.json()["errors"][0]["field"] == "Idempotency-Key"
    assert Configuration.objects.count() == 1


def test_a_key_still_being_answered_is_refused(writer, alice, project):
    """409 that says when to come back; taken over once its process must be dead."""
    _create(writer, "configurations", _CONFIGURATION, "k")
    IdempotencyKey.objects.update(status=None, response=None)
    response = _create(writer, "configurations", _CONFIGURATION, "k")
    assert (response.status_code, response["Retry-After"]) == (409, "2")
    assert "still being answered" in response.json()["detail"]
    IdempotencyKey.objects.update(created_at=timezone.now() - timedelta(hours=1))
    assert _create(writer, "configurations", _CONFIGURATION, "k").status_code == 200


def test_a_failed_create_frees_its_key(writer):
    """Nothing was made, so the corrected body may use the key."""
    wrong = _create(writer, "configurations", {"name": "x", "document": {}}, "k")
    assert wrong.status_code == 400
    assert not IdempotencyKey.objects.exists()
    assert _create(writer, "configurations", _CONFIGURATION, "k").status_code == 201


def test_keys_of_two_people_are_two_keys(writer, viewer, project, token_of):
    """Another member using the same key learns nothing of the first answer."""
    _create(writer, "configurations", _CONFIGURATION, "k")
    carol = factories.make_user("operator", project, "carol")
    other = _create(
        client_with(token_of(carol, project)), "configurations",
        {"name": "c", "document": {"model": "other"}}, "k",
    )  # fmt: skip
    assert other.status_code == 201


@pytest.mark.parametrize("key", ["", " ", "x" * 201])
def test_a_key_has_a_form(writer, key):
    """1 to 200 characters."""
    assert _create(writer, "configurations", _CONFIGURATION, key).status_code == 400


def _run_body(project):
    endpoint = factories.make_endpoint(project)
    return {
        "workload": factories.make_workload(project).pk,
        "endpoint": endpoint.pk,
        "trace": factories.make_trace(project).pk,
    }


def test_a_run_is_made_and_launched(writer, project, sent, django_capture_on_commit_callbacks):
    """Queued with the endpoint's configuration; its task is sent once it is committed."""
    with django_capture_on_commit_callbacks(execute=True):
        response = _create(writer, "runs", _run_body(project) | {"policies": {"drain_s": 2}}, "k")
    assert response.status_code == 201
    body = response.json()
    assert (body["state"], body["policies"]["drain_s"]) == ("queued", 2)
    assert sent == [(tasks.RUN_LOAD, (body["id"],))]


def test_a_draft_is_launched_and_cancelled(writer, project, sent):
    """Launching twice is a conflict, so is cancelling what has ended."""
    run = _create(writer, "runs", _run_body(project) | {"launch": False}).json()
    assert run["state"] == "draft"
    assert writer.post(f"{run['url']}launch/").json()["state"] == "queued"
    assert writer.post(f"{run['url']}launch/").status_code == 409
    assert writer.post(f"{run['url']}cancel/").json()["state"] == "stopped"
    assert writer.post(f"{run['url']}cancel/").status_code == 409


def test_a_run_takes_no_parts_of_another_project(writer, project, elsewhere):
    """The id of another project's endpoint is as unknown as none."""
    body = _run_body(project) | {"endpoint": factories.make_endpoint(elsewhere).pk}
    response = _create(writer, "runs", body)
    assert response.status_code == 400
    assert response.json()["errors"] == [
        {"field": "endpoint", "detail": "No such id in this project"}
    ]


def test_an_outsider_cannot_stop_a_run(outsider, project):
    """404, and the run goes on."""
    run = factories.make_run(project)
    assert outsider.post(f"/api/v1/runs/{run.pk}/cancel/").status_code == 404
    run.refresh_from_db()
    assert run.state == "queued"


def test_a_token_is_made_by_a_signed_in_administrator(signed_in, project):
    """Its secret works and is shown once: neither in the list nor when asked again."""
    body = {"name": "ci", "scope": "write", "project": project.slug}
    first = _create(signed_in, "tokens", body, "k")
    assert first.status_code == 201
    secret = first.json()["secret"]
    assert client_with(secret).get("/api/v1/runs/").status_code == 200
    again = _create(signed_in, "tokens", body, "k")
    assert again.json() == first.json() | {"secret": None}
    assert ApiToken.objects.count() == 1
    assert secret not in str(list(IdempotencyKey.objects.values_list("response", flat=True)))
    assert secret not in signed_in.get("/api/v1/tokens/").content.decode()


def test_a_revoked_token_stays_on_the_list(signed_in, project):
    """DELETE revokes; the row tells when."""
    made = _create(signed_in, "tokens", {"name": "ci"}).json()
    assert signed_in.delete(made["url"]).status_code == 204
    assert client_with(made["secret"]).get("/api/v1/runs/").status_code == 401
    assert signed_in.get(made["url"]).json()["revoked_at"] is not None
    assert signed_in.get("/api/v1/tokens/", {"revoked": "false"}).json()["results"] == []


def test_neither_tokens_nor_viewers_make_tokens(writer, bob, project):
    """403; a viewer sees only the tokens that are his."""
    assert _create(writer, "tokens", {"name": "more"}).status_code == 403
    from rest_framework.test import APIClient

    client = APIClient()
    client.force_login(bob)
    assert _create(client, "tokens", {"name": "mine"}).status_code == 403
    assert client.get("/api/v1/tokens/").json()["results"] == []


def test_a_trace_is_made_from_a_file(writer, tmp_path):
    """Raw or multipart; a line at fault is named without a path of the server."""
    lines = b'{"at_s": 0, "prompt": "a"}\n{"at_s": 1, "prompt": "b"}\n'
    url = "/api/v1/traces/?name=two"
    first = writer.post(url, lines, content_type="application/jsonl")
    assert (first.status_code, first.json()["requests"]) == (201, 2)
    second = writer.post(url, lines, content_type="application/jsonl")
    assert (second.status_code, second.json()) == (200, first.json())
    torn = tmp_path / "torn.jsonl"
    torn.write_bytes(b'{"at_s": 1}\n{"at_s": 0}\n')
    with torn.open("rb") as handle:
        wrong = writer.post("/api/v1/traces/", {"file": handle}, format="multipart")
    assert wrong.status_code == 400
    assert wrong.json()["detail"].startswith("torn.jsonl:")
    assert "/tmp" not in wrong.json()["detail"]


def test_only_known_media_types_are_taken(writer):
    """415 names what was sent."""
    response = writer.post("/api/v1/traces/", b"x", content_type="text/html")
    assert response.status_code == 415
    assert Workload.objects.count() == 0


def test_ceilings_are_told_at_their_fields(writer, project, settings):
    """20 requests, 2 in any second, at an endpoint without ceilings of its own."""
    settings.MAX_RATE_PER_S, settings.MAX_CONCURRENCY = 1.5, 8
    body = _run_body(project)
    response = _create(writer, "runs", body)
    assert response.status_code == 400
    (error,) = response.json()["errors"]
    assert error["field"] == "trace"
    assert "2 requests/s" in error["detail"]
    assert "at most 1.5" in error["detail"]
    settings.MAX_RATE_PER_S = 100.0
    response = _create(writer, "runs", body | {"policies": {"max_concurrency": 9}})
    assert response.json()["errors"][0]["field"] == "policies.max_concurrency"
    assert "9 asked for" in response.json()["errors"][0]["detail"]


@pytest.mark.parametrize("transport", ["fast", "httpx"])
def test_the_way_of_sending_is_a_policy(writer, project, sent, transport):
    response = _create(writer, "runs", _run_body(project) | {"policies": {"transport": transport}})
    assert response.json()["policies"]["transport"] == transport
    assert _create(writer, "runs", _run_body(project)).json()["policies"]["transport"] == "fast"
    response = _create(writer, "runs", _run_body(project) | {"policies": {"transport": "pigeon"}})
    assert response.json()["errors"][0]["field"] == "policies.transport"
