"""The run page says who read the clock, how late it was, and what the host is known to do."""

from __future__ import annotations

import pytest
from django.urls import reverse

from records.web.pages.run_timing import timing
from tests import factories
from tests.records.analysis.test_generator import CALIBRATION, STALL


def page_of(client, project, folder):
    run = factories.make_run(project, folder=folder)
    return client.get(reverse("run", args=[project.slug, run.number]))


def test_a_calibrated_host_shows_its_errors_with_their_n(as_alice, project, tmp_path):
    """0.00008 s is 0.08 ms over 400 answers; the level that did not hold says so."""
    generator = {"loop_stall_max_s": 0.03, "loop_stall_s": STALL, "lag_limit_s": 0.01}
    folder = factories.sample_folder(
        tmp_path, calibration=CALIBRATION, transport="fast", generator=generator
    )
    page = page_of(as_alice, project, folder)
    card = page.context["timing"]
    light, half, _ = card.levels
    assert card.heads[:2] == [("TTFT error median", "ms"), ("TTFT error p99", "ms")]
    assert (light.cells[1].text, light.cells[1].n) == ("0.0800", "400")
    assert (half.cells, half.events.word) == ([], "did not hold")
    assert card.ceiling.with_unit.replace("\u00a0", " ") == "20,000 events/s"
    facts = {f.label: f for f in card.facts}
    assert facts["Transport"].value.text == "fast"
    assert facts["Longest loop stall"].value.with_unit.replace("\u00a0", " ") == "30.0 ms"
    assert facts["Schedule lag p99"].n
    text = page.content.decode()
    assert "1 Jan 2026" in text
    assert "what ended the search: its core" in text


def test_a_host_that_was_not_calibrated_says_what_to_do(as_alice, project, tmp_path):
    page = page_of(as_alice, project, factories.sample_folder(tmp_path))
    assert page.context["timing"].levels == []
    assert "run impakt calibrate" in page.content.decode()


@pytest.mark.parametrize(
    "record",
    [{}, {"generator": None}, {"generator": {"calibration": {}}},
     {"generator": {"calibration": {"date": "once", "levels": {"full": {}}}}},
     {"generator": {"schedule_lag_s": {"reason": "no request was sent"}}}],
)  # fmt: skip
def test_a_record_of_another_version_is_shown_as_far_as_it_goes(record):
    """Records from elsewhere lack keys: unknown with a reason, no error."""
    card = timing(record)
    assert card.date is None
    assert all(f.value.word and f.value.reason for f in card.facts)
    assert not card.ceiling.known
