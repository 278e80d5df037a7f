"""An operator registers an endpoint in the browser; what is wrong is said beside its field."""

from __future__ import annotations

import json

import pytest
from django.urls import reverse

from records.models import Configuration, Endpoint
from tests import factories

TUPLE = {"model": "llama", "batching": "continuous", "runtime": {"name": "vllm", "version": "1"}}


@pytest.fixture
def address(project):
    return reverse("endpoints", args=[project.slug])


@pytest.fixture
def filled():
    return {
        "name": "GPU 1", "url": "http://10.0.0.5:8000/v1", "api": "chat", "model": "llama",
        "api_key_env": "IMPAKT_KEY_GPU", "metrics_url": "http://10.0.0.5:8000/metrics",
        "max_rate_per_s": "12.5", "max_concurrency": "64",
    }  # fmt: skip


def errors(page) -> dict[str, list[str]]:
    assert page.status_code == 422
    assert not Endpoint.objects.exists()
    return {k: list(v) for k, v in page.context["form"].errors.items()}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(TUPLE),
        'model = "llama"\nbatching = "continuous"\n[runtime]\nname = "vllm"\nversion = "1"',
    ],
)
def test_an_endpoint_with_a_new_configuration(as_alice, address, filled, text):
    form = filled | {"configuration_name": "vLLM, continuous", "configuration_tuple": text}
    page = as_alice.post(address, form, follow=True)
    made = Endpoint.objects.get()
    assert page.redirect_chain[-1][0].endswith(f"/endpoints/{made.pk}/")
    assert (made.url, made.api_key_env) == ("http://10.0.0.5:8000/v1", "IMPAKT_KEY_GPU")
    assert (made.max_rate_per_s, made.max_concurrency) == (12.5, 64)
    assert made.configuration.document == TUPLE
    assert made.configuration.name == "vLLM, continuous"
    assert made.simulated is False


def test_a_configuration_that_is_there_is_chosen_and_campaigns_can_use_it(
    as_alice, address, filled, project
):
    known = factories.make_configuration(project, simulated=False)
    work = factories.make_workload(project)
    factories.make_trace(project)
    factories.make_endpoint(project, name="before", configuration=known)
    as_alice.post(address, filled | {"configuration": known.pk})
    assert Endpoint.objects.get(name="GPU 1").configuration == known
    page = as_alice.get(reverse("workload", args=[project.slug, work.pk]))
    assert "GPU 1" in [str(e) for e in page.context["form"].fields["baseline"].queryset]


@pytest.mark.parametrize(
    ("change", "field", "said"),
    [
        ({"url": "ftp://x/v1"}, "url", "http:// or https://"),
        ({"url": "http://me:secret@x/v1"}, "url", "no user or password"),
        ({"url": "http://169.254.169.254/latest"}, "url", "the metadata service of a cloud"),
        ({"api_key_env": "sk-very-secret"}, "api_key_env", "IMPAKT_KEY_"),
        ({"metrics_url": "nonsense"}, "metrics_url", "http:// or https://"),
        ({"max_rate_per_s": "0"}, "max_rate_per_s", "above 0"),
        ({"max_concurrency": "1.5"}, "max_concurrency", "whole number"),
        ({"name": ""}, "name", "required"),
        ({"api": "carrier pigeon"}, "api", "valid choice"),
        ({"configuration_tuple": "{1"}, "configuration_tuple", "This is not JSON"),
        ({"configuration_tuple": "a ="}, "configuration_tuple", "This is not TOML"),
        ({"configuration_tuple": "a = 1"}, "configuration_name", "needs a name"),
        ({"configuration_name": "new"}, "configuration_tuple", "needs its fields"),
        (
            {"configuration_name": "new", "configuration_tuple": '{"runtime": "vllm"}'},
            "configuration_tuple", "runtime: Needed is an object",
        ),
        ({"configuration_name": "new", "configuration_tuple": "{}"}, "configuration_tuple", "one"),
    ],
)  # fmt: skip
def test_what_is_wrong_stands_at_its_field(as_alice, address, filled, change, field, said):
    page = as_alice.post(address, filled | change)
    assert said in " ".join(errors(page)[field])
    assert f'id="id_{field}-error"' in page.content.decode()
    # Neither in the message nor back in the field: it may be a real one.
    assert "secret" not in page.content.decode()


def test_a_configuration_is_chosen_or_new_not_both(as_alice, address, filled, project):
    known = factories.make_configuration(project)
    form = filled | {
        "configuration": known.pk, "configuration_name": "n", "configuration_tuple": "a = 1",
    }  # fmt: skip
    assert "not both" in errors(as_alice.post(address, form))["configuration"][0]


def test_another_projects_configuration_cannot_be_chosen(as_alice, address, filled):
    strange = factories.make_configuration(factories.make_project())
    assert "configuration" in errors(as_alice.post(address, filled | {"configuration": strange.pk}))


def test_a_taken_name_leaves_no_configuration_behind(as_alice, address, filled, project):
    factories.make_endpoint(project, name="GPU 1")
    before = Configuration.objects.count()
    page = as_alice.post(
        address, filled | {"configuration_name": "n", "configuration_tuple": "a = 1"}
    )
    assert "has this name" in page.content.decode()
    assert (Endpoint.objects.count(), Configuration.objects.count()) == (1, before)


def test_a_viewer_sees_the_list_and_no_form(as_bob, address, filled):
    page = as_bob.get(address)
    assert page.status_code == 200
    assert b'id="new"' not in page.content
    assert as_bob.post(address, filled).status_code == 403
    assert not Endpoint.objects.exists()


def test_all_that_is_wrong_is_said_at_once(as_alice, address, filled):
    form = filled | {"url": "ftp://x/v1", "metrics_url": "x", "configuration_tuple": "a ="}
    page = as_alice.post(address, form)
    assert set(errors(page)) == {"url", "metrics_url", "configuration_tuple"}
    assert b"3 fields below need a change" in page.content
