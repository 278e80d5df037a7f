"""Scripted streams, each made from a fault met in the field, are read as what they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.runners.load.conftest import rows

CASES = json.loads(
    (Path(__file__).parents[2] / "samples" / "streams" / "cases.json").read_text(encoding="utf-8")
)
# Retries come in a later version.
PLAYED = {c["id"]: c for c in CASES if "options" not in c}
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
# What the server writes on time may reach us later on a busy machine, but not as late
# as its next write, 100 ms on: the time still tells which event counted.
LATE_S = 0.095


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """Every case played once, all in one run per API: case id -> attempt, request, chunks."""
    from records.evidence.folder import EvidenceFolder
    from runners.load.run import run_load
    from tests.runners.load.conftest import plan_of
    from tests.runners.load.server import ScriptedServer

    server = ScriptedServer(lambda r: PLAYED[r["headers"]["x-request-id"]]["responses"][0])
    found = {}
    for api in ("chat", "completions"):
        cases = [c for c in PLAYED.values() if c.get("api", "chat") == api]
        lines = [
            {"id": c["id"], "at_s": i * 0.02, "max_output_tokens": 64, **c.get("trace", {})}
            for i, c in enumerate(cases)
        ]
        folder = tmp_path_factory.mktemp("streams") / api
        run_load(plan_of(server.url, *lines, api=api), folder)
        evidence = EvidenceFolder.open(folder)
        for table in ("attempts", "requests", "chunks"):
            for row in rows(evidence, table):
                found.setdefault(row["request_id"], {})[table] = row
    server.close()
    return found


@pytest.mark.parametrize("name", sorted(PLAYED))
def test_the_case_is_read_as_it_should_be(played, name):
    attempt, request = played[name]["attempts"], played[name]["requests"]
    expected = PLAYED[name]["expect"]
    assert request["outcome"] == attempt["outcome"]
    for key in AS_IS & set(expected):
        assert attempt[key] == expected[key], key
    for key in TIMES.keys() & set(expected):
        at = attempt[TIMES[key]]
        if expected[key] is None:
            assert at is None, key
        else:
            want = expected[key] / 1e3
            assert -0.003 <= at - attempt["sent_s"] - want <= LATE_S, key


def test_the_other_cases_wait_for_a_later_version():
    assert {c["id"] for c in CASES} - set(PLAYED) == {"retry-after"}


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
    assert played["role-first"]["attempts"]["token_count_source"] == "usage"
    assert played["cut-mid-stream"]["attempts"]["token_count_source"] == "chunks"
    assert played["http-500"]["attempts"]["token_count_source"] is None
