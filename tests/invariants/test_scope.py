"""No project's row, known by id, number or name, reaches anyone outside that project.

Walks every address there is, of the API and of the pages, with the ids of one
project's objects in every place that takes an id, as a member of another.
"""

from __future__ import annotations

import re
from itertools import product

import pytest
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from rest_framework.test import APIClient

from records.api.urls import router
from records.models import AuditEntry, Judgment, Run
from records.services import access, alert, comparison
from tests import factories

MARK = "only-for-members"


@pytest.fixture
def rows(project, alice, tmp_path):
    """One object of each kind in alice's project, all told apart by MARK, by model name."""
    parts = {
        "workload": factories.make_workload(project, title=MARK),
        "configuration": factories.make_configuration(project, MARK),
        "trace": factories.make_trace(project, name=MARK),
    }
    parts["endpoint"] = factories.make_endpoint(
        project, name=MARK, configuration=parts["configuration"]
    )
    folder = factories.sample_folder(tmp_path)
    run = factories.make_run(project, folder=folder, title=MARK, **parts)
    draft = factories.make_run(project, state="draft", title=MARK, **parts)
    made = comparison.comparison_create(
        project=project, user=alice, title=MARK, baselines=[run], candidates=[draft],
        workload=parts["workload"],
    )  # fmt: skip
    return parts | {
        "project": project, "run": run, "comparison": made, "evidence": run.evidence.first(),
        "record": run.measurement_records.get(),
        "judgment": Judgment.objects.filter(judgment_set__run=run).first(),
        "alert": alert.alert_raise(project=project, kind="run_failed", title=MARK, run=run),
        "token": access.token_create(project=project, user=alice, name=MARK)[0],
        "audit": AuditEntry.objects.filter(project=project).first(),
    }  # fmt: skip


@pytest.fixture
def strangers(mallory, rows):
    """Mallory, admin of a project of her own, in a browser and as a program."""
    browser, program = APIClient(), APIClient()
    browser.force_login(mallory)
    own = mallory.memberships.get().project
    _, secret = access.token_create(project=own, user=mallory, name="m", scope="write")
    program.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    return browser, program


def _patterns(found=None, prefix=""):
    """Every address of the site as its pattern."""
    for one in get_resolver().url_patterns if found is None else found:
        text = prefix + str(one.pattern)
        if isinstance(one, URLResolver):
            yield from _patterns(one.url_patterns, text)
        elif isinstance(one, URLPattern):
            yield text


def test_every_resource_of_the_api_is_walked(rows):
    """A new resource needs an object here, or nobody would notice that it leaks."""
    without = {basename for _, _, basename in router.registry} - set(rows)
    assert without == {"upload", "decision"}, "give `rows` one of each new kind"
    assert rows["judgment"] is not None


def test_no_detail_or_action_answers_a_stranger(strangers, rows):
    """404, or 405 where the method does not exist, on every address with an id."""
    walked = 0
    for _, viewset, basename in router.registry:
        row = rows.get(basename)
        if row is None:
            continue
        names = ["detail", *(action.url_name for action in viewset.get_extra_actions())]
        names += ["content"] if basename == "evidence" else []
        methods = ("get", "post", "put", "patch", "delete", "head")
        for stranger, name, method in product(strangers, names, methods):
            url = reverse(f"api:{basename}-{name}", args=[row.pk])
            response = getattr(stranger, method)(url)
            assert response.status_code in (404, 405), (method, url, response.status_code)
            assert MARK not in response.content.decode(), (method, url)
            walked += response.status_code == 404 and (name, method) == ("detail", "get")
    # Every kind, by both clients.
    assert walked == 2 * len(rows)


def test_no_list_shows_a_stranger_anything(strangers, rows):
    """Not by itself, and not when it is narrowed to another project or its objects."""
    for _, viewset, basename in router.registry:
        url = reverse(f"api:{basename}-list")
        queries = [{}]
        known = viewset.filterset_class.base_filters if viewset.filterset_class else {}
        for name in known:
            row = rows["project"] if name == "project" else rows.get(name)
            if row is not None:
                queries.append({name: rows["project"].slug if name == "project" else row.pk})
        for stranger, query in product(strangers, queries):
            response = stranger.get(url, query)
            assert response.status_code == 200, (url, query)
            text = response.content.decode()
            assert MARK not in text, (url, query)
            assert f'"{rows["project"].slug}"' not in text, (url, query)
            assert str(rows["run"].uid) not in text, (url, query)


def test_no_body_can_name_another_project_s_object(strangers, rows, mallory):
    """A run of Mallory's with one part of alice's: refused as if that id did not exist."""
    own = factories.make_run(mallory.memberships.get().project)
    fields = ("workload", "configuration", "endpoint", "trace")
    hers = {name: getattr(own, f"{name}_id") for name in fields} | {"launch": False}
    before = Run.objects.count()
    for stranger, field in product(strangers, fields):
        answers = []
        for pk in (rows[field].pk, 10**9):
            response = stranger.post("/api/v1/runs/", hers | {field: pk}, format="json")
            assert response.status_code == 400
            answers.append(response.json())
        assert answers[0]["errors"] == [{"field": field, "detail": "No such id in this project"}]
        assert answers[0] == answers[1]
    assert Run.objects.count() == before


def test_no_page_of_her_own_project_takes_another_s_ids(rows, mallory):
    """The pages of Mallory's project with alice's ids and numbers in addresses and forms."""
    client = APIClient()
    client.force_login(mallory)
    own = mallory.memberships.get().project
    numbers = {row.pk for row in rows.values() if row is not None} | {rows["run"].number}
    walked = 0
    for text in _patterns():
        if not text.startswith("p/<slug:slug>/") or "<int:" not in text:
            continue
        for number, method in product(sorted(numbers), ("get", "post")):
            url = "/" + text.replace("<slug:slug>", own.slug).replace("<slug:name>", "ttft")
            url = re.sub(r"<int:\w+>", str(number), url)
            response = getattr(client, method)(url, follow=True)
            assert response.status_code in (404, 405), (method, url, response.status_code)
            walked += 1
    assert walked > 50
    response = client.post(f"/p/{own.slug}/comparisons/", {"run": [1, 2]}, follow=True)
    assert "Select runs of exactly two configurations" in response.content.decode()
    assert MARK not in response.content.decode()
