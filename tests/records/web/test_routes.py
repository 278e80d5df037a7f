"""Every page asks for sign-in, hides projects from outsiders and holds nothing inline."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.urls import reverse

from records.models import Comparison
from records.services import access, alert, comparison
from records.web.urls import urlpatterns
from tests import factories

OPEN = {"sign_in", "sign_in_link", "sign_out"}
WITHOUT_PROJECT = OPEN | {"home"}
# Pages that show a list and take a form for a new one.
BOTH = {"comparisons", "endpoints"}
POSTS = {
    "alert_resolve", "run_stop", "run_verify", "campaign_launch", "token_revoke", "comparisons",
    "endpoints", "campaign_longer", "comparison_stop",
}  # fmt: skip
# What a viewer may do: look, check evidence, and take back a token of their own.
VIEWER_MAY = {"run_verify"}
NAMES = [p.name for p in urlpatterns]
INLINE = re.compile(
    r"<style|\sstyle=|\son[a-z]+=|<script(?![^>]*(?:\ssrc=|type=\"application/json\"))",
    re.IGNORECASE,
)


@pytest.fixture
def addresses(project, run, tmp_path, alice):
    """The address of every named route, with objects of `project` behind it."""
    other = factories.make_run(
        project,
        folder=factories.sample_folder(tmp_path, name="other", run_id="other"),
        endpoint=factories.make_endpoint(
            project,
            configuration=factories.make_configuration(project, "static", batching="static"),
        ),
    )
    compared = comparison.comparison_create(
        project=project, user=alice, title="static against continuous", baselines=[run],
        candidates=[other], workload=run.workload,
    )  # fmt: skip
    token, _ = access.token_create(project=project, user=alice, name="ci")
    raised = alert.alert_raise(project=project, kind="run_failed", title="R-1 failed", run=run)
    own = {
        "alert_resolve": {"pk": raised.pk},
        "configuration": {"pk": run.configuration_id},
        "trace": {"pk": run.trace_id},
        "endpoint": {"pk": run.endpoint_id},
        "workload": {"pk": run.workload_id},
        "campaign_launch": {"pk": run.workload_id},
        "comparison": {"number": compared.number},
        "comparison_stop": {"number": compared.number},
        "campaign_longer": {"pk": run.workload_id},
        "comparison_json": {"number": compared.number},
        "token_revoke": {"pk": token.pk},
        "evidence": {"number": run.number, "pk": run.evidence.first().pk},
        "run_chart": {"number": run.number, "name": "ttft"},
        "run_chart_csv": {"number": run.number, "name": "ttft"},
    }
    out = {}
    for name in NAMES:
        kwargs = dict(own.get(name, {}))
        if name not in WITHOUT_PROJECT:
            kwargs["slug"] = project.slug
        if name == "sign_in_link":
            kwargs["token"] = access.link_create(user=alice)
        if name == "run" or name.startswith("run_"):
            kwargs.setdefault("number", run.number)
        out[name] = reverse(name, kwargs=kwargs)
    return out


def test_every_route_has_a_name_of_its_own():
    assert None not in NAMES
    assert len(set(NAMES)) == len(NAMES)


def test_anonymous_readers_are_sent_to_sign_in(addresses):
    client = Client()
    for name in sorted(set(NAMES) - OPEN):
        ask = client.post if name in POSTS - BOTH else client.get
        response = ask(addresses[name])
        assert response.status_code == 302, name
        assert response["Location"].startswith(reverse("sign_in")), name


def test_outsiders_find_nothing_in_a_project(addresses, as_mallory):
    for name in sorted(set(NAMES) - WITHOUT_PROJECT):
        for ask in (as_mallory.get, as_mallory.post) if name in POSTS else (as_mallory.get,):
            if ask == as_mallory.get and name in POSTS - BOTH:
                continue
            assert ask(addresses[name]).status_code == 404, name


def test_members_reach_every_page(addresses, as_alice, as_bob):
    for name in sorted(set(NAMES) - OPEN):
        for client in (as_alice, as_bob):
            response = client.get(addresses[name])
            wanted = 405 if name in POSTS - BOTH else 302 if name == "home" else 200
            assert response.status_code == wanted, name
            if response.streaming and name != "run_events":
                b"".join(response.streaming_content)


def test_a_viewer_may_look_but_not_act(addresses, as_bob):
    for name in sorted(POSTS - VIEWER_MAY):
        response = as_bob.post(addresses[name])
        assert response.status_code == 403, name
        assert b"This needs one of the roles" in response.content, name
    assert as_bob.post(addresses["run_verify"]).status_code == 302
    assert Comparison.objects.count() == 1


def test_pages_hold_no_inline_script_style_or_handler(addresses, as_alice):
    """The content security policy would refuse them; each page also carries that policy."""
    client, seen = Client(), 0
    pages = [(client, "sign_in"), (client, "sign_in_link")]
    shown = set(NAMES) - WITHOUT_PROJECT - POSTS - {"evidence", "run_events"} | BOTH
    pages += [(as_alice, n) for n in sorted(shown)]
    for reader, name in pages:
        response = reader.get(addresses[name])
        if not response["Content-Type"].startswith("text/html"):
            continue
        text = response.content.decode()
        assert INLINE.search(text) is None, (name, INLINE.search(text))
        assert "script-src 'self'" in response["Content-Security-Policy"], name
        seen += 1
    assert seen >= 15


def test_the_inline_check_finds_what_it_looks_for():
    for bad in ('<p style="x">', "<style>", '<a onclick="x">', "<script>1</script>"):
        assert INLINE.search(bad)
    assert not INLINE.search(
        '<script src="/a.js" defer></script><script id="x" type="application/json">'
    )


def test_what_is_not_there_is_404_with_a_page(as_alice, project):
    for path in (f"/p/{project.slug}/runs/999/", "/p/nowhere/", "/nothing"):
        response = as_alice.get(path)
        assert response.status_code == 404
        assert b"There is nothing at this address" in response.content


def test_a_person_in_no_project_is_told_so(db):
    client = Client()
    client.force_login(factories.make_person("newcomer"))
    response = client.get("/")
    assert response.status_code == 200
    assert b"You are in no project yet" in response.content
