"""Scripted streams, each made from a fault met in the field, are read as what they are."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from records.analysis.record import analyze_folder
from records.evidence.folder import EvidenceFolder
from runners.load.run import TRANSPORTS, run_load
from tests.runners.load.conftest import plan_of, rows
from tests.runners.load.server import ScriptedServer

CASES = {
    case["id"]: case
    for case in json.loads(
        (Path(__file__).parents[2] / "samples" / "streams" / "cases.json").read_text("utf-8")
    )
}
TIMES = {
    "first_token_ms": "first_token_s",
    "first_visible_token_ms": "first_visible_token_s",
    "last_token_ms": "last_token_s",
    "end_ms": "end_s",
}
AS_IS = {
    "outcome", "error_kind", "output_tokens", "reasoning_tokens", "finish_reason",
    "http_status", "tool_calls", "cached_tokens",
}  # fmt: skip
FIGURES = {"tpot_ms", "itl_mean_ms", "itl_n", "itl_basis"}
RETRIED = {"attempts", "second_attempt_sent_after_ms", "logical_e2e_min_ms"}
# What the server writes on time may reach us later on a busy machine, but not as late
# as its next write, 100 ms on: the time still tells which event counted.
LATE_S = 0.095


@pytest.fixture(scope="module", params=sorted(TRANSPORTS))
def played(request, tmp_path_factory):
    """Every case played once, a run per API and options: case id -> its rows and figures.

    A case is a class of its own, so that the record has its figures apart.
    """
    tries: Counter[str] = Counter()

    def script(incoming):
        case = CASES[incoming["headers"]["x-request-id"].split("#")[0]]
        tries[case["id"]] += 1
        return case["responses"][min(tries[case["id"]], len(case["responses"])) - 1]

    server = ScriptedServer(script)
    found = {}
    folder = tmp_path_factory.mktemp("streams")
    for number, group in enumerate(groups()):
        found |= played_on_time(server, folder / str(number), group, request.param, tries)
    server.close()
    return found


def played_on_time(server, folder, group, transport, tries):
    """Plays the cases of one run; those that a busy machine made late, up to three times."""
    found = {}
    for number in range(3):
        tries.clear()
        path = folder / str(number)
        lines = [
            {"id": c["id"], "class": c["id"], "at_s": i * 0.02, "max_output_tokens": 64}
            | c.get("trace", {})
            for i, c in enumerate(group)
        ]
        options = {"api": group[0].get("api", "chat"), **group[0].get("options", {})}
        run_load(plan_of(server.url, *lines, transport=transport, **options), path)
        found |= rows_of(path, group)
        group = [c for c in group if is_late(c["expect"], found[c["id"]]["attempts"][-1])]
        if not group:
            break
    return found


def is_late(expected, attempt):
    """Whether any time of a case is off by more than what still tells which event counted."""
    return any(
        not -0.003 <= attempt[column] - attempt["sent_s"] - expected[key] / 1e3 <= LATE_S
        for key, column in TIMES.items()
        if expected.get(key) is not None and attempt[column] is not None
    )


def groups():
    """Cases that one run can play together."""
    out = {}
    for case in CASES.values():
        key = case.get("api", "chat"), json.dumps(case.get("options"))
        out.setdefault(key, []).append(case)
    return out.values()


def rows_of(path, group):
    """Request, attempts in order, chunks of the last attempt and figures of each case."""
    evidence = EvidenceFolder.open(path)
    classes = analyze_folder(path)["classes"]
    found = {c["id"]: {"attempts": [], "latency": classes[c["id"]]["latency"]} for c in group}
    for row in sorted(rows(evidence, "attempts"), key=lambda r: r["attempt"]):
        found[row["request_id"]]["attempts"].append(row)
    for table in ("requests", "chunks"):
        for row in rows(evidence, table):
            found[row["request_id"]][table] = row
    return found


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_case_is_read_as_it_should_be(played, name):
    request, attempt = played[name]["requests"], played[name]["attempts"][-1]
    expected = CASES[name]["expect"]
    assert request["outcome"] == attempt["outcome"]
    known = AS_IS | set(TIMES) | FIGURES | RETRIED | {"e2e_ms"}
    assert set(expected) <= known, "the case file expects what no test here checks"
    for key in AS_IS & set(expected):
        assert attempt[key] == expected[key], key
    for key in TIMES.keys() & set(expected):
        at = attempt[TIMES[key]]
        if expected[key] is None:
            assert at is None, key
        else:
            on_time(at - attempt["sent_s"], expected[key], key)
    if "e2e_ms" in expected:
        # The reader has the whole answer with its last token; one without token times, at its end.
        at = attempt["end_s"] if attempt["last_token_s"] is None else attempt["last_token_s"]
        on_time(at - attempt["sent_s"], expected["e2e_ms"], "e2e_ms")


def on_time(seconds, wanted_ms, key):
    assert -0.003 <= seconds - wanted_ms / 1e3 <= LATE_S, key


@pytest.mark.parametrize("name", sorted(n for n, c in CASES.items() if FIGURES & set(c["expect"])))
def test_the_figures_of_the_record_follow(played, name):
    expected, latency = CASES[name]["expect"], played[name]["latency"]
    attempt = played[name]["attempts"][-1]
    if expected.get("tpot_ms", 0) is None:
        assert latency["tpot_s"]["n"] == 0
    elif "tpot_ms" in expected:
        # (last - first token) / (tokens - 1), from the times as they were on this machine; the
        # case's own figure holds to what a late write may add to one of both ends.
        steps = attempt["output_tokens"] - 1
        own = (attempt["last_token_s"] - attempt["first_token_s"]) / steps
        assert latency["tpot_s"]["mean"] == pytest.approx(own, rel=1e-6)
        assert own == pytest.approx(expected["tpot_ms"] / 1e3, abs=LATE_S / steps)
    if "itl_mean_ms" in expected:
        wanted = expected["itl_mean_ms"] / 1e3
        late = LATE_S / expected["itl_n"]
        assert latency["itl_s"]["mean"] == pytest.approx(wanted, abs=late)
    if "itl_n" in expected:
        assert latency["itl_s"]["n"] == expected["itl_n"]
    if "itl_basis" in expected:
        assert latency["itl_basis"] == expected["itl_basis"]


@pytest.mark.parametrize("name", sorted(n for n, c in CASES.items() if "options" in c))
def test_attempts_of_a_retried_request_are_apart_and_its_clock_is_one(played, name):
    expected, request = CASES[name]["expect"], played[name]["requests"]
    attempts = played[name]["attempts"]
    assert len(attempts) == request["attempts"] == expected["attempts"]
    waited = attempts[1]["sent_s"] - attempts[0]["sent_s"]
    assert waited >= expected["second_attempt_sent_after_ms"] / 1e3
    logical = request["last_token_s"] - request["intended_s"]
    assert logical >= expected["logical_e2e_min_ms"] / 1e3


def tokens(played, name):
    found = played[name]["chunks"]["tokens"]
    return None if found is None else list(found)


def test_running_usage_tells_the_tokens_of_each_chunk(played):
    assert tokens(played, "many-tokens-a-chunk") == [4, 4, 4]


def test_a_final_count_above_the_chunks_leaves_their_tokens_unknown(played):
    assert tokens(played, "many-tokens-unknown-split") is None
    assert len(played["many-tokens-unknown-split"]["chunks"]["gap_us"]) == 2


def test_as_many_tokens_as_chunks_means_one_for_each(played):
    assert tokens(played, "role-first") == [1, 1, 1]


def test_coalesced_events_are_separate_chunks_without_a_gap(played):
    # Six tokens in two segments of three, 100 ms apart.
    gaps = list(played["coalesced"]["chunks"]["gap_us"])
    assert len(gaps) == 5
    assert sorted(gap > 50_000 for gap in gaps) == [False] * 4 + [True]


def test_counts_say_who_counted(played):
    def source(name):
        return played[name]["attempts"][-1]["token_count_source"]

    assert source("role-first") == "usage"
    assert source("cut-mid-stream") == "chunks"
    assert source("http-500") is None
