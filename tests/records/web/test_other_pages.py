"""Home, configuration, trace, endpoint and workload pages show what is theirs."""

from __future__ import annotations

from django.urls import reverse

from records.models import Alert
from records.services import alert
from tests import factories


def place(name, run, *more):
    return reverse(name, args=[run.project.slug, *more])


def test_home_tells_what_needs_a_person_and_what_is_newest(as_alice, run):
    alert.alert_raise(project=run.project, kind="run_failed", title="R-9 failed", run=run)
    page = as_alice.get(place("project", run))
    assert [n.alert.title for n in page.context["needs"]] == ["R-9 failed"]
    (line,) = page.context["workloads"]
    assert (line.run, line.rate.known) == (run, True)
    assert line.trend is None


def test_an_alert_is_seen_to_once(as_alice, run, alice):
    raised = alert.alert_raise(project=run.project, kind="run_failed", title="R-9 failed", run=run)
    page = as_alice.post(place("alert_resolve", run, raised.pk), follow=True)
    assert Alert.objects.get().resolved_by == alice
    assert page.context["needs"] == []


def test_a_quiet_home_says_so(as_alice, project):
    page = as_alice.get(reverse("project", args=[project.slug]))
    assert b"Nothing needs you" in page.content
    assert b"No run has been measured yet" in page.content


def test_configurations_differ_field_by_field(as_alice, run):
    other = factories.make_configuration(
        run.project, "static", batching="static", scheduler={"wait_ms": 50}
    )
    page = as_alice.get(place("configuration", run, other.pk), {"against": run.configuration_id})
    rows = {r.field: (r.a, r.b) for r in page.context["differing"]}
    assert rows == {"batching": ("continuous", "static"), "scheduler.wait_ms": (None, 50)}
    assert b"not declared" in page.content
    assert other.fingerprint.encode() in page.content


def test_a_trace_shows_its_rate_mix_and_hashes(as_alice, run):
    """20 requests 0.5 s apart: 19 gaps in 9.5 s, 2 per second, 120 per minute."""
    page = as_alice.get(place("trace", run, run.trace_id))
    facts = dict(page.context["facts"])
    assert (facts["Requests"].text, facts["Rate"].text, facts["per minute"].text) == (
        "20", "2.00", "120",
    )  # fmt: skip
    assert [c[0] for c in page.context["classes"]] == ["interactive", "background"]
    for digest in (run.trace.trace_hash, run.trace.demand_hash, run.trace.prompt_hash):
        assert digest.encode() in page.content
    assert all(c.figure for c in page.context["charts"])


def test_an_endpoint_never_shows_a_key(as_alice, project):
    endpoint = factories.make_endpoint(project, api_key_env="IMPAKT_KEY_VENDOR")
    page = as_alice.get(reverse("endpoint", args=[project.slug, endpoint.pk]))
    assert b"IMPAKT_KEY_VENDOR" in page.content
    assert b"environment" in page.content


def test_a_workload_shows_objectives_as_they_were_set(as_alice, run):
    page = as_alice.get(place("workload", run, run.workload_id))
    interactive = page.context["classes"][0]
    shown = [t.text.replace("\u00a0", " ") if t.known else t.word for t in interactive["targets"]]
    assert shown == ["500 ms", "no target", "no target", "2,000 ms"]
    assert interactive["attainment"].text == "90"
    assert [c[0] for c in page.context["criteria"]] == ["length", "citations"]
    assert b"example objectives" in page.content
