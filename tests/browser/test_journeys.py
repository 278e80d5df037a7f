"""What people do with the product, in a real browser against a real server."""

from __future__ import annotations

import hashlib
import uuid

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.urls import reverse
from django.utils import timezone

from records.models import Campaign, Run
from records.services import access, comparison, example_campaign
from tests import factories
from tests.conftest import wait_for

PAGES = (
    "project", "runs", "run", "configuration", "trace", "endpoints", "endpoint", "workloads",
    "workload", "comparisons", "comparison", "tokens",
)  # fmt: skip


@pytest.fixture
def addresses(run, alice, tmp_path):
    """Every page of a project that has something on each."""
    static = factories.make_configuration(run.project, "static", batching="static")
    other = factories.make_run(
        run.project, workload=run.workload, trace=run.trace,
        endpoint=factories.make_endpoint(run.project, configuration=static),
        folder=factories.sample_folder(
            tmp_path, requests=60, name="other", run_id="other", configuration=static.document
        ),
    )  # fmt: skip
    made = comparison.comparison_create(
        project=run.project, user=alice, title="static against continuous", baselines=[run],
        candidates=[other], workload=run.workload,
    )  # fmt: skip
    own = {
        "run": run.number, "configuration": run.configuration_id, "trace": run.trace_id,
        "endpoint": run.endpoint_id, "workload": run.workload_id, "comparison": made.number,
    }  # fmt: skip
    return [
        reverse(name, args=[run.project.slug, *([own[name]] if name in own else [])])
        for name in PAGES
    ]


def test_a_one_time_link_signs_in_and_the_list_leads_to_the_evidence(reader, run, alice):
    """Link, home, runs, run, a file: the downloaded bytes have the hash that the page names."""
    person = reader()
    person.open(reverse("sign_in_link", args=[access.link_create(user=alice)]))

    def journey(page):
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("link", name="Runs", exact=True).click()
        page.get_by_role("rowheader").get_by_role("link", name=str(run)).click()
        page.wait_for_selector("body[data-ready]")
        with page.expect_download() as started:
            page.get_by_role("link", name="requests.parquet").click()
        return started.value.path().read_bytes()

    data = person.do(journey)
    assert hashlib.sha256(data).hexdigest() == run.evidence.get(name="requests.parquet").sha256
    assert person.complaints == []


def test_a_password_signs_in(reader, project, alice):
    """Hashed as in earnest: the tests' own fast hash is none that the server knows."""
    alice.password = PBKDF2PasswordHasher().encode("correct horse", "salt", iterations=1000)
    alice.save(update_fields=["password"])
    person = reader()
    person.open("/sign-in/")

    def fill(page):
        page.get_by_label("User name").fill("alice")
        page.get_by_label("Password").fill("correct horse")
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(f"**/p/{project.slug}/")
        return page.get_by_role("heading", level=1).inner_text()

    assert person.do(fill) == "What needs you"
    assert person.complaints == []


def test_charts_are_drawn_with_their_exports(reader, run, alice):
    person = reader()
    person.sign_in(alice)
    person.open(reverse("run", args=[run.project.slug, run.number]))
    assert person.do(lambda page: page.locator(".plot .main-svg").count()) >= 5

    def exports(page):
        chart = page.locator("figure", has=page.locator('[data-chart="chart-ttft"]'))
        with page.expect_download() as picture:
            chart.get_by_role("button", name="PNG").click()
        with page.expect_download() as drawing:
            chart.get_by_role("button", name="SVG").click()
        chart.get_by_role("button", name="Table").click()
        rows = page.locator("dialog tbody tr").count()
        return picture.value.path().read_bytes(), drawing.value.path().read_text(), rows

    picture, drawing, rows = person.do(exports)
    assert picture.startswith(b"\x89PNG")
    assert "<svg" in drawing
    assert rows > 10
    assert person.complaints == []


def test_the_theme_is_switched_kept_and_redraws_the_charts(reader, run, alice):
    person = reader()
    person.sign_in(alice)
    address = reverse("run", args=[run.project.slug, run.number])
    person.open(address)
    look = "() => getComputedStyle(document.body).backgroundColor"
    line = "[data-chart=chart-backlog] .scatterlayer .js-line"
    ink = f"() => document.querySelector('{line}').style.stroke"
    before = person.do(lambda page: (page.evaluate(look), page.evaluate(ink)))
    person.do(lambda page: page.get_by_role("button", name="Switch between light and dark").click())
    wait_for(lambda: person.do(lambda page: page.evaluate(ink)) != before[1], 10)
    after = person.do(lambda page: page.evaluate(look))
    assert (before[0], after) == ("rgb(245, 246, 248)", "rgb(14, 17, 20)")
    person.open(address)
    assert person.do(lambda page: page.evaluate(look)) == after


WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def test_no_page_makes_the_browser_complain_or_scrolls_sideways_on_a_phone(
    reader, addresses, alice
):
    """In light, in dark and at 390 px; what the content security policy refuses is a complaint."""
    for width, dark in ((1280, False), (1280, True), (390, False)):
        person = reader(width=width, dark=dark)
        person.sign_in(alice)
        for address in addresses:
            person.open(address)
            assert person.complaints == [], (address, width, dark)
            assert width > 390 or person.do(lambda page: page.evaluate(WIDE)) == 0, address


def test_selected_runs_are_compared(reader, addresses, run, alice):
    person = reader()
    person.sign_in(alice)
    person.open(reverse("runs", args=[run.project.slug]))

    def choose(page):
        bar = page.locator("[data-selection]")
        hidden = bar.is_hidden()
        boxes = page.locator("[data-select]")
        boxes.nth(0).check()
        alone = bar.get_by_role("button", name="Compare").is_disabled()
        boxes.nth(1).check()
        bar.get_by_role("button", name="Compare").click()
        page.wait_for_url("**/comparisons/*/")
        return hidden, alone, page.locator(".verdict .word").inner_text()

    hidden, alone, word = person.do(choose)
    assert (hidden, alone) == (True, True)
    assert word.strip() == "Not enough evidence"


def test_a_run_in_progress_is_followed_to_its_end(reader, project, alice):
    """Events bring each change; when the run ends the page shows what came of it."""
    made = factories.make_run(project)
    told = {"planned": 20, "due": 4, "sent": 4, "in_flight": 1, "outcomes": {}, "elapsed_s": 2.0}
    rows = Run.objects.filter(pk=made.pk)
    now = timezone.now()
    rows.update(
        state="running", lease=uuid.uuid4(), started_at=now, heartbeat_at=now, progress=told
    )
    person = reader()
    person.sign_in(alice)
    person.open(reverse("run", args=[project.slug, made.number]))
    person.do(lambda page: page.wait_for_selector('[data-live="events"]'))
    rows.update(progress=told | {"sent": 17})
    person.do(lambda page: page.wait_for_selector("dd:text-is('17')"))
    rows.update(state="failed", lease=None, failure="the endpoint went away")
    person.do(lambda page: page.wait_for_selector("text=the endpoint went away"))
    assert person.complaints == []


def test_without_events_the_page_polls(reader, project, alice):
    """The first stream ends and asks for the next at once, which never comes."""
    made = factories.make_run(project)
    rows = Run.objects.filter(pk=made.pk)
    now = timezone.now()
    rows.update(state="running", lease=uuid.uuid4(), started_at=now, heartbeat_at=now)
    person = reader()
    asked = []

    def answer(route):
        asked.append(route)
        if len(asked) > 1:
            return route.abort()
        return route.fulfill(content_type="text/event-stream", body="retry: 10\n\n")

    person.do(lambda page: page.route("**/events", answer))
    person.sign_in(alice)
    person.open(reverse("run", args=[project.slug, made.number]))
    person.do(lambda page: page.wait_for_selector('[data-live="polling"]'))
    assert len(asked) == 3
    rows.update(progress={"planned": 20, "due": 19, "sent": 19, "elapsed_s": 3.0})
    person.do(lambda page: page.wait_for_selector("dd:text-is('19')"))


def test_keys(reader, run, alice):
    person = reader()
    person.sign_in(alice)

    def press(page):
        page.keyboard.press("g")
        page.keyboard.press("r")
        page.wait_for_url("**/runs/")
        page.wait_for_selector("body[data-ready]")
        page.keyboard.press("j")
        page.keyboard.press("x")
        chosen = page.locator("[data-select]:checked").count()
        page.keyboard.press("?")
        return chosen, page.locator("#keys").is_visible()

    assert person.do(press) == (1, True)


def test_one_button_queues_the_longer_campaign_and_its_page_follows_it(reader, run, alice):
    """No worker runs here, so the ten runs stay queued until the same page stops them."""
    project = run.project
    for name in example_campaign.CONFIGURATIONS:
        factories.make_endpoint(
            project, name=f"{name.capitalize()} batching",
            reference_profile=example_campaign.PROFILE_PREFIX + name,
            configuration=factories.make_configuration(
                project, f"{name} batching", batching=name, kernels="example"
            ),
        )  # fmt: skip
    person = reader()
    # The page's clock goes by itself, and ahead where its next look would be waited for.
    person.do(lambda page: page.clock.install())
    person.sign_in(alice)
    person.open(reverse("workload", args=[project.slug, run.workload_id]))

    def launch(page):
        page.get_by_role("button", name="Run the longer campaign").click()
        page.wait_for_url("**/comparisons/*/")
        page.wait_for_selector("text=0 of 10 measured, 10 queued")
        return page.get_by_role("heading", level=1).inner_text()

    assert person.do(launch) == "Continuous batching against static batching"
    campaign = Campaign.objects.get()
    first = campaign.runs.order_by("number").first()
    Run.objects.filter(pk=first.pk).update(state="completed", valid=True)
    person.do(lambda page: page.clock.fast_forward(60_000))
    person.do(lambda page: page.wait_for_selector("text=1 of 10 measured, 9 queued"))
    person.do(lambda page: page.get_by_role("button", name="Stop 9 runs").click())
    person.do(lambda page: page.wait_for_selector("text=This comparison cannot be computed."))
    assert campaign.runs.filter(state="stopped").count() == 9
    assert person.complaints == []


def test_the_search_key_reaches_the_search_and_names_the_first_match(reader, run, alice):
    person = reader()
    person.sign_in(alice)

    def search(page):
        page.keyboard.press("/")
        page.keyboard.type(str(run))
        page.keyboard.press("Enter")
        page.wait_for_url("**/runs/?q=*")
        return page.get_by_role("rowheader").all_inner_texts()

    assert person.do(search) == [str(run)]
