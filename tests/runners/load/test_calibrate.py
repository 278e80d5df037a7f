"""A calibration holds evidence against the log of a server that knows the truth."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from impakt_web.cli.main import run
from records.errors import OtherSideFailed
from runners.load.calibrate import level as level_module
from runners.load.calibrate import measure
from runners.load.calibrate.level import Level, Seen, compared, run_level, served, spread
from runners.load.calibrate.text import calibration_text
from runners.load.calibrate.truth import Told, known_truth

SHORT = measure.Profile("test", span_s=0.4, light_s=0.4, budget_s=0.0, tokens=20, short_per_s=50.0)


def told(received_ms, *sent_ms, cpu_s=0.0, wide=()):
    """What the server says of one answer, in milliseconds of CLOCK_MONOTONIC."""
    sent = np.array([round(ms * 1e6) for ms in sent_ms], dtype=np.int64)
    unknown = np.isin(np.arange(sent.size), wide)
    return Told(round(received_ms * 1e6), sent, unknown, 0, cpu_s, int(sent[-1]))


def test_errors_are_what_the_client_says_minus_the_truth():
    """Run start is at 1,000 ms of the clock; all in ms.

    arrival 100 (clock 1,100), read by the server at 1,103: 3 after it was due.
    truth   first 1,120, then 1,125 and 1,130; client 120.2, 125.3, 130.6 from run start.
    TTFT error 0.2, E2E error 0.6, gaps 5.1 - 5 = 0.1 and 5.3 - 5 = 0.3.
    """
    attempts = pd.DataFrame(
        {"request_id": ["a"], "first_token_s": [0.1202], "last_token_s": [0.1306]}
    )
    chunks = pd.DataFrame({"request_id": ["a"], "gap_us": [np.array([5100, 5300])]})
    requests = pd.DataFrame({"request_id": ["a"], "intended_s": [0.1]})
    found = compared(attempts, chunks, requests, {"a": told(1103, 1120, 1125, 1130)}, 1.0)
    assert found.arrived == pytest.approx([0.003])
    assert found.first == pytest.approx([0.0002])
    assert found.last == pytest.approx([0.0006])
    assert found.gaps == pytest.approx([0.0001, 0.0003])
    assert (found.tokens, found.other) == (3, 0)


def test_a_token_that_the_server_cannot_date_proves_nothing():
    """The second of four: two of three gaps lean on it, so that one gap is left."""
    attempts = pd.DataFrame({"request_id": ["a"], "first_token_s": [0.1], "last_token_s": [0.4]})
    chunks = pd.DataFrame({"request_id": ["a"], "gap_us": [np.array([100_000] * 3)]})
    requests = pd.DataFrame({"request_id": ["a"], "intended_s": [0.0]})
    log = {"a": told(50, 100, 150, 300, 400, wide=[1])}
    found = compared(attempts, chunks, requests, log, 0.0)
    assert found.unknown == 1
    assert spread(found.gaps)["n"] == 1
    assert spread(found.gaps)["max"] == pytest.approx(0, abs=1e-12)
    assert spread(found.first)["n"] == spread(found.last)["n"] == 1


def test_an_answer_of_another_number_of_tokens_has_no_error_and_is_counted():
    """Two tokens where the server sent three, and an answer the server does not know."""
    attempts = pd.DataFrame(
        {"request_id": ["a", "b"], "first_token_s": [0.1, 0.1], "last_token_s": [0.2, 0.2]}
    )
    chunks = pd.DataFrame({"request_id": ["a", "b"], "gap_us": [np.array([5]), np.array([5])]})
    requests = pd.DataFrame({"request_id": ["a", "b"], "intended_s": [0.0, 0.0]})
    found = compared(attempts, chunks, requests, {"a": told(1, 2, 3, 4)}, 0.0)
    assert found.other == 2
    assert spread(found.first) == {"n": 0, "median": None, "p99": None, "max": None}


def test_the_median_keeps_its_sign_and_the_p99_is_of_sizes():
    """-3, -1, -1 ms: median -1, the greatest size 3."""
    found = spread(np.array([-0.003, -0.001, -0.001, np.nan]))
    assert (found["n"], found["median"], found["max"]) == (3, -0.001, 0.003)


def test_the_load_is_what_the_server_sent_while_it_was_even():
    """Answers of 1 s over 3 s of arrivals: even from 1 to 3 s, 4 tokens in it are 2 a second."""
    level = Level(rate_per_s=1, tokens=2, span_s=3, first_s=0.5, gap_s=0.5)
    log = {"a": told(0, 500, 1000, cpu_s=0.1), "b": told(1000, 1500, 2000, cpu_s=0.3),
           "c": told(2000, 2500, 3000, cpu_s=0.5)}  # fmt: skip
    found = served(level, log, 0.0)
    assert found["served_per_s"] == 2.0
    # 0.4 CPU s between the first and the last end, 2 s apart.
    assert found["server_cpu_fraction"] == pytest.approx(0.2)


def seen(events_per_s, **over):
    """A level that held, but for what `over` says."""
    figures = {
        "served_per_s": events_per_s, "server_cpu_fraction": 0.3, "cpu_fraction": 0.5,
        "reasons_invalid": [], "ttft_error_s": {"n": 10},
    }  # fmt: skip
    level = Level(events_per_s / 100, 100, 2.0, 0.02, 0.005)
    base = Seen(level, figures, True, 0.0001, 1.0, 2.0, 1000, 10, "kernel")
    figures |= {k: over.pop(k) for k in list(over) if k in figures}
    return replace(base, **over)


def climbed(monkeypatch, answer):
    """The search over levels that `answer` makes up from their rate."""
    search = measure._Search(replace(measure.FULL, budget_s=60.0), None, "fast", None, None)
    monkeypatch.setattr(search, "at", lambda _name, rate: answer(rate))
    tried, best = measure._climb(search)
    return [s.level.events_per_s for s in tried], best and best.level.events_per_s


def test_the_search_doubles_until_a_level_fails_and_tries_once_between(monkeypatch):
    """Up to 35,000 holds: 5, 10, 20 held, 40 failed twice, 30 between them held."""

    def answer(rate):
        return seen(rate, error_p99_s=0.0001 if rate <= 35_000 else 0.1)

    tried, best = climbed(monkeypatch, answer)
    assert tried == [5_000, 10_000, 20_000, 40_000, 40_000, 30_000]
    assert best == 30_000


def test_the_search_goes_down_where_the_first_level_fails(monkeypatch):
    """Up to 2,000 holds, and a full core is not tried twice: 5 and 2.5 failed, 1.25 held."""

    def answer(rate):
        return seen(rate, valid=rate <= 2_000, cpu_s=2.0 if rate > 2_000 else 1.0)

    tried, best = climbed(monkeypatch, answer)
    assert tried == [5_000, 2_500, 1_250, 1_875]
    assert best == 1_875


def test_nothing_holds_where_every_level_fails(monkeypatch):
    """The ceiling is then unknown, not 0."""
    _, best = climbed(monkeypatch, lambda rate: seen(rate, valid=False, cpu_s=2.0))
    assert best is None
    told_of = measure._ceiling([seen(100, valid=False)], None, 2)
    assert told_of["events_per_s"] is None


@pytest.mark.parametrize(
    ("over", "cores", "by"),
    [
        ({"cpu_s": 1.9, "valid": False}, 2, "client_cpu"),
        ({"server_cpu_fraction": 0.97, "served_per_s": 1.0}, 2, "server"),
        ({"server_cpu_fraction": 0.45, "error_p99_s": 0.2}, 1, "one_core"),
        ({"error_p99_s": 0.2}, 2, "error"),
        ({"error_p99_s": 0.2, "cpu_s": 0.1}, 2, "other_work"),
    ],
)
def test_what_ended_the_search_is_said(over, cores, by):
    """The client's core, the server's, one core for both, or an error."""
    assert (
        measure._ceiling([seen(5_000), seen(10_000, **over)], seen(5_000), cores)["bounded_by"]
        == by
    )


def test_a_level_that_held_when_tried_again_ended_nothing():
    """5,000 failed once and then held; nothing above it was tried."""
    tried = [seen(5_000, error_p99_s=0.2), seen(5_000)]
    assert measure._ceiling(tried, tried[1], 2)["bounded_by"] == "search"


def test_the_load_must_really_have_been_there():
    """A server that sent 90 % of the load proves nothing about that load."""
    assert measure.holds(seen(1000))
    assert not measure.holds(seen(1000, served_per_s=900.0))
    # 2 ms off: too much for kernel stamps, not for those of user space.
    assert not measure.holds(seen(1000, error_p99_s=0.002))
    assert measure.holds(seen(1000, error_p99_s=0.002, stamp_source="user"))


def test_cpu_costs_come_from_levels_that_differ():
    """cpu = 0.01 wall + 50 us per request + 8 us per token, over three levels."""
    levels = [(2.0, 100, 500), (2.0, 100, 20_000), (3.0, 600, 1_200)]
    made = [
        replace(seen(1000), wall_s=w, requests=r, tokens=t, cpu_s=0.01 * w + 50e-6 * r + 8e-6 * t)
        for w, r, t in levels
    ]
    found = measure.cpu_costs(made)
    assert found["us_per_token"] == pytest.approx(8)
    assert found["us_per_request"] == pytest.approx(50)
    short = measure.cpu_costs(made[:2])
    assert short["us_per_token"] is None
    assert "three are needed" in short["reason"]


def test_a_level_against_the_known_truth(tmp_path):
    """Eight answers of five tokens: every one compared, no time before the server's own."""
    with known_truth(tmp_path, 0.02, 0.005) as truth:
        found = run_level(Level(20.0, 5, 0.4, 0.02, 0.005), truth, "httpx", tmp_path)
    errors = found.figures
    unknown = errors["truth_unknown"]
    assert errors["ttft_error_s"]["n"] >= 8 - unknown
    assert errors["itl_error_s"]["n"] >= 32 - 2 * unknown
    assert found.tokens == 40
    # Bytes cannot come before they were sent; a microsecond for the rounding of chunk times.
    assert errors["ttft_error_s"]["median"] > -1e-6
    assert errors["e2e_error_s"]["median"] > -1e-6
    assert errors["request_at_server_s"]["median"] > 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["truth.jsonl"]


def test_a_server_that_ends_is_an_error_in_one_line(tmp_path):
    """Its end is seen before a level is read as one without answers."""
    with known_truth(tmp_path, 0.02, 0.005) as truth:
        truth._process.kill()
        truth._process.wait()
        with pytest.raises(OtherSideFailed, match="ended with -9"):
            truth.take()


def test_the_command_prints_one_document_and_keeps_it(tmp_path, monkeypatch, capsys):
    """`--json`: the document and nothing else; the same bytes lie in the documented place."""
    place = tmp_path / "calibration.json"
    monkeypatch.setenv("IMPAKT_CALIBRATION", str(place))
    monkeypatch.setattr(measure, "QUICK", SHORT)
    assert run(["calibrate", "--quick", "--json", "--transport", "httpx"]) == 3
    out = capsys.readouterr()
    document = json.loads(out.out)
    assert document["schema"] == "impakt.calibration/1"
    light = document["levels"]["light"]
    assert light["requests"] == 10
    # No time for a search: nothing held, and nothing is made up.
    assert document["levels"]["full"] is None
    assert document["ceiling"]["events_per_s"] is None
    assert json.loads(place.read_bytes()) == document
    assert "light: 500 events/s, 10 requests" in calibration_text(document)


def test_a_failed_level_leaves_no_evidence_behind(tmp_path, monkeypatch):
    """The folder of a level is removed whatever comes of it."""

    def fail(*_):
        raise RuntimeError("as a test")

    monkeypatch.setattr(level_module, "_seen", fail)
    with (
        known_truth(tmp_path, 0.01, 0.005) as truth,
        pytest.raises(RuntimeError, match="as a test"),
    ):
        run_level(Level(20.0, 2, 0.1, 0.01, 0.005), truth, "httpx", tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["truth.jsonl"]
