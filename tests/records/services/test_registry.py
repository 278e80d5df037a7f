"""Projects, workloads, configurations, endpoints and traces: found again, never mixed up."""

from __future__ import annotations

import pytest
from django.db import transaction

from records.errors import (
    BadConfiguration,
    BadInput,
    BadTrace,
    BadWorkload,
    Conflict,
    FieldError,
    NotPermitted,
)
from records.evidence.canonical import sha256_of
from records.models import AuditEntry, CaseSet, Endpoint, Membership, Project, Rubric, Workload
from records.services import configuration, endpoint, numbers, trace, workload
from records.services import project as projects
from tests import factories


def test_a_project_belongs_to_whoever_made_it(db):
    """Its owner is its admin, and the audit tells of it."""
    alice = factories.make_person("alice")
    made = projects.project_create(slug="support", name="Support", owner=alice)
    assert Membership.objects.get(project=made).role == "admin"
    assert AuditEntry.objects.get(project=made).action == "project.create"
    with pytest.raises(Conflict):
        projects.project_create(slug="support", name="Other", owner=alice)
    with pytest.raises(FieldError, match="slug"):
        projects.project_create(slug="with space", name="Other", owner=alice)


def test_only_an_admin_changes_roles_and_one_always_remains(project, alice, bob):
    """A role is given, changed and taken; the last admin cannot leave."""
    with pytest.raises(NotPermitted):
        projects.member_set(project=project, user=bob, role="admin", actor=bob)
    projects.member_set(project=project, user=bob, role="operator", actor=alice)
    assert project.memberships.get(user=bob).role == "operator"
    for role in ("viewer", None):
        with pytest.raises(Conflict, match="admin"):
            projects.member_set(project=project, user=alice, role=role, actor=alice)
    assert project.memberships.get(user=alice).role == "admin"
    assert projects.member_set(project=project, user=bob, role=None, actor=alice) is None
    with pytest.raises(BadInput, match="no member"):
        projects.member_set(project=project, user=bob, role=None, actor=alice)


@pytest.mark.django_db(transaction=True)
def test_a_number_is_drawn_only_inside_a_transaction():
    """Outside one the lock would be gone before the number is used."""
    project = factories.make_project()
    with pytest.raises(RuntimeError, match="transaction"):
        numbers.next_number(project, "decision")
    with transaction.atomic():
        assert numbers.next_number(project, "decision") == 1


def test_the_same_workload_is_one_row_and_changed_content_the_next_version(project):
    """Key order and 1.0 for 1 change nothing; a new objective is version 2, replacing 1."""
    first = factories.make_workload(project)
    again = factories.make_workload(project)
    reordered = dict(reversed(list(factories.WORKLOAD.items())))
    assert first == again
    assert first == workload.workload_create(
        project=project, document=reordered, user=factories.owner_of(project)
    )
    classes = {"interactive": {"objective": {"ttft_s": 0.4}}}
    second = factories.make_workload(project, classes=classes)
    assert (second.version, second.replaces) == (2, first)
    assert [c.name for c in second.classes.all()] == ["interactive"]
    assert first.classes.count() == 2
    assert first.sha256 == first.document["hashes"]["workload"]


def test_rubric_and_packet_are_shared_by_versions_that_did_not_change_them(project):
    """A new objective leaves the rubric's row alone; a new rubric is its version 2."""
    first = factories.make_workload(project)
    second = factories.make_workload(project, classes={})
    assert (second.rubric, second.evidence_packet) == (first.rubric, first.evidence_packet)
    assert first.case_set is None
    changed = {"criteria": [{"id": "length", "check": "length", "params": {"max_words": 9}}]}
    third = factories.make_workload(project, rubric=changed, case_set={"cases": []})
    assert (third.rubric.version, third.rubric.replaces) == (2, first.rubric)
    assert (Rubric.objects.count(), CaseSet.objects.count()) == (2, 1)
    assert first.rubric.sha256 == first.document["hashes"]["rubric"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": None}, "name"),
        ({"name": "x" * 121}, "name"),
        ({"classes": {"a": {"share": 1.5}}}, r"classes\.a\.share"),
        ({"classes": {"a": {"objective": {"ttft_s": -1}}}}, r"objective\.ttft_s"),
        ({"rubric": {"criteria": [{"id": "a", "check": "magic"}]}}, r"criteria\[0\]\.check"),
        ({"title": "with \0"}, "title"),
        ({"prices": {"gpu": float("nan")}}, "prices"),
    ],
)
def test_a_wrong_workload_names_its_field_and_leaves_nothing(project, change, field):
    """The error says which field; no version was written."""
    with pytest.raises(BadWorkload, match=field):
        factories.make_workload(project, **change)
    assert not Workload.objects.exists()


def test_a_configuration_is_its_fingerprint(project):
    """The same tuple in another order is the same row; another value another."""
    first = factories.make_configuration(project)
    twin = configuration.configuration_create(
        project=project,
        name="twin",
        document=dict(reversed(list(factories.CONFIGURATION.items()))),
        user=factories.owner_of(project),
    )
    assert (twin, twin.name) == (first, "continuous")
    assert first.fingerprint == sha256_of(factories.CONFIGURATION)
    assert first.simulated
    assert factories.make_configuration(project, batching="static") != first
    assert AuditEntry.objects.filter(action="configuration.create").count() == 2


@pytest.mark.parametrize(
    "document", [{}, [], {"runtime": "vllm"}, {"simulated": 1}, {"a": float("inf")}, {"a": "\0"}]
)
def test_a_wrong_configuration_is_refused(project, document):
    """What is no tuple is said to be none."""
    with pytest.raises(BadConfiguration):
        configuration.configuration_create(
            project=project, name="x", document=document, user=factories.owner_of(project)
        )


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"url": "ftp://host/v1"}, "url"),
        ({"url": "host/v1"}, "url"),
        ({"url": "http://"}, "url"),
        ({"url": "http://host:99999/v1"}, "url"),
        ({"url": "http://host/v1?key=abc"}, "url"),
        ({"url": None}, "url"),
        ({"metrics_url": "file:///etc/passwd"}, "metrics_url"),
        ({"api": "grpc"}, "api"),
        ({"model": ""}, "model"),
        ({"api_key_env": "sk-12 34"}, "api_key_env"),
        ({"api_key_env": "IMPAKT_SECRET_KEY"}, "api_key_env"),
        ({"max_rate_per_s": 0}, "max_rate_per_s"),
        ({"max_concurrency": 10**40}, "max_concurrency"),
        ({"max_concurrency": -1}, "max_concurrency"),
        ({"url": "http://169.254.169.254/v1"}, "url"),
        ({"url": "http://2852039166/v1"}, "url"),
        ({"url": "http://[::ffff:169.254.169.254]/v1"}, "url"),
        ({"url": "http://[fe80::1]/v1"}, "url"),
        ({"url": "http://0.0.0.0:8000/v1"}, "url"),
        ({"url": "http://169.254.169.254./v1"}, "url"),
        ({"url": "http://[fe80::1%25eth0]/v1"}, "url"),
        ({"url": "http://metadata.google.internal/v1"}, "url"),
        ({"url": "http://a..b/v1"}, "url"),
        ({"url": "http://169.254.169.254%2f/v1"}, "url"),
        ({"url": f"http://{'a' * 64}.example/v1"}, "url"),
        ({"metrics_url": "http://100.100.100.200/metrics"}, "metrics_url"),
    ],
)
def test_a_wrong_endpoint_names_its_field(project, fields, field):
    """The error names the field and no endpoint is there."""
    with pytest.raises(FieldError, match=field):
        factories.make_endpoint(project, **fields)
    assert not Endpoint.objects.exists()


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "10.1.2.3", "0x7f.1", "[::1]", "[fd12::1]", "100.64.0.1"]
)
def test_private_ranges_are_for_installations_that_allow_them(project, settings, host):
    """Whoever may register an endpoint must not reach into the workers' network by it."""
    url = f"http://{host}:8000/v1"
    settings.PRIVATE_ENDPOINTS = False
    with pytest.raises(FieldError, match=r"url.*not allowed here"):
        factories.make_endpoint(project, url=url)
    # The supervisor's own reference endpoints are on loopback.
    factories.make_endpoint(project, url="http://127.0.0.1:1/v1", reference_profile="continuous")
    settings.PRIVATE_ENDPOINTS = True
    assert factories.make_endpoint(project, url=url).url == url


def test_credentials_in_an_address_are_refused_and_not_repeated(project):
    """The error helps without showing the secret."""
    with pytest.raises(FieldError, match="api_key_env") as caught:
        factories.make_endpoint(project, url="https://user:hunter2@host/v1")
    assert "hunter2" not in str(caught.value)


def test_an_endpoint_name_is_taken_once_and_its_address_may_move(project):
    """Moving is told in the audit with both addresses; to the same place it is nothing."""
    made = factories.make_endpoint(project, name="one", url="http://127.0.0.1:1/v1/")
    assert made.url == "http://127.0.0.1:1/v1"
    with pytest.raises(Conflict):
        factories.make_endpoint(project, name="one")
    for _ in range(2):
        endpoint.endpoint_move(endpoint=made, url="http://127.0.0.1:2/v1", actor_name="supervisor")
    entry = AuditEntry.objects.get(action="endpoint.move")
    assert entry.before == {"url": "http://127.0.0.1:1/v1"}
    assert (entry.after, entry.actor_name) == ({"url": "http://127.0.0.1:2/v1"}, "supervisor")


def test_an_endpoint_serves_a_configuration_of_its_own_project(project):
    """Another project's configuration is refused."""
    foreign = factories.make_configuration(factories.make_project())
    with pytest.raises(FieldError, match="configuration"):
        factories.make_endpoint(project, configuration=foreign)


def test_a_trace_is_stored_once_and_read_back_the_same(project, tmp_path):
    """The same requests, from memory or from a file, are one row with the trace's hashes."""
    from records.traces.reading import write_trace

    sample = factories.sample_trace()
    first = factories.make_trace(project, sample)
    path = tmp_path / "trace.jsonl.gz"
    write_trace(path, {"note": "another header"}, sample.requests)
    assert factories.make_trace(project, path, name="again") == first
    assert trace.trace_load(first).trace_hash == sample.trace_hash == first.trace_hash
    assert (first.demand_hash, first.prompt_hash) == (sample.demand_hash, sample.prompt_hash)
    # 20 requests 0.5 s apart: 19 gaps, 9.5 s, 2 requests/s.
    assert (first.requests, first.span_s) == (20, 9.5)
    assert first.description["rate_per_s"] == 2
    # The preview's bins hold every request: rates times width add up to 20.
    rate = first.description["preview"]["rate"]
    assert sum(rate["rate_per_s"]) * rate["width_s"] == pytest.approx(20)


def test_a_wrong_trace_names_line_and_field(project, tmp_path):
    """Going back in time is refused and nothing is stored."""
    path = tmp_path / "bad.jsonl"
    path.write_text('{"at_s":1,"prompt":"a"}\n{"at_s":0.5,"prompt":"b"}\n')
    with pytest.raises(BadTrace, match=r"line 2.*at_s"):
        factories.make_trace(project, path)


@pytest.mark.parametrize("who", ["bob", "mallory"])
def test_only_those_who_launch_prepare_what_is_launched(project, who, request):
    """A viewer and an outsider make none of these objects."""
    person = request.getfixturevalue(who)
    calls = [
        lambda: workload.workload_create(project=project, document=factories.WORKLOAD, user=person),
        lambda: configuration.configuration_create(
            project=project, name="x", document=factories.CONFIGURATION, user=person
        ),
        lambda: trace.trace_store(
            project=project, user=person, name="x", source=factories.sample_trace()
        ),
        lambda: endpoint.endpoint_register(
            project=project, user=person, name="x", url="http://h/v1", api="chat", model="m"
        ),
    ]
    for call in calls:
        with pytest.raises(NotPermitted):
            call()
    assert Project.objects.get(pk=project.pk) == project
