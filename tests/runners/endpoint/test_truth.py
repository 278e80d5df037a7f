"""The truth log, the metrics page and a client tell the same story."""

from __future__ import annotations

import statistics
import time
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from runners.endpoint.testing import Endpoint, serve

TEXT = "word " * 40


def one(http: httpx.Client, name: str, tokens: int) -> dict[str, Any]:
    """What a client sees of one streamed request, on CLOCK_MONOTONIC."""
    body = {"model": "reference-1", "prompt": TEXT, "max_tokens": tokens, "stream": True}
    headers = {"x-request-id": name, "x-impakt-run": "run-1"}
    seen: dict[str, Any] = {"id": name, "sent_s": time.monotonic(), "tokens_s": []}
    with http.stream("POST", "/completions", json=body, headers=headers) as reply:
        for line in reply.iter_lines():
            if '"finish_reason":null' in line:
                seen["tokens_s"].append(time.monotonic())
    return seen


def check_order(client: dict[str, Any], line: dict[str, Any]) -> None:
    """Nothing happens before what it follows from, on either side."""
    happened = [
        client["sent_s"], line["received_s"], line["admitted_s"], line["prefill_done_s"],
        line["first_token_s"], line["last_token_s"], line["end_s"],
    ]  # fmt: skip
    assert happened == sorted(happened)
    assert line["token_times_s"] == sorted(line["token_times_s"])
    assert line["token_times_s"][0] == line["first_token_s"]
    assert line["token_times_s"][-1] == line["last_token_s"]
    pairs = zip(line["token_times_s"], client["tokens_s"], strict=True)
    assert all(written <= read for written, read in pairs)


@pytest.mark.parametrize("profile", ["continuous", "static"])
def test_a_client_at_light_load_sees_what_the_truth_log_says(profile: str) -> None:
    medians = []
    with serve(profile, token_times=True) as running, httpx.Client(base_url=running.url) as http:
        # A machine busy with other work can only add lag: the best of three counts.
        for attempt in range(3):
            seen = [one(http, f"r{attempt}-{i}", 2 + i % 7) for i in range(15)]
            truth = {line["request_id"]: line for line in running.truth()}
            lags = []
            for client in seen:
                line = truth[client["id"]]
                check_order(client, line)
                assert line["output_tokens"] == len(client["tokens_s"])
                assert (line["run"], line["prompt_tokens"], line["stream"]) == ("run-1", 40, True)
                lags.append(client["tokens_s"][0] - line["first_token_s"])
                lags.append(client["tokens_s"][-1] - line["last_token_s"])
            medians.append(statistics.median(lags))
            if medians[-1] < 0.003:
                break
    assert min(medians) < 0.003


def test_the_header_maps_the_clock_to_utc(endpoint: Endpoint) -> None:
    header = endpoint.truth_header()
    assert header["schema"] == "impakt.truth/1"
    then = datetime.fromisoformat(header["epoch"]["utc"])
    ago_s = time.monotonic() - header["epoch"]["monotonic_s"]
    assert (datetime.now(UTC) - then).total_seconds() == pytest.approx(ago_s, abs=0.5)
    assert header["profile"]["decode_base_s"] == 0.001


def samples(page: str) -> dict[str, float]:
    """Each sample of a metrics page by its name and, where it has one, its reason."""
    found = {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            reason = sample.labels.get("finished_reason", "")
            if "le" not in sample.labels:
                assert sample.labels["model_name"] == "reference-1"
                found[sample.name + reason] = sample.value
    return found


def test_the_metrics_page_adds_up_to_the_truth_log() -> None:
    asks = [{"max_tokens": n, "prompt": "a b c", "stream": n % 2 == 0} for n in (1, 4, 9)]
    asks.append({"prompt": "in at most 10 words", "max_tokens": 50, "stream": True})
    with serve("continuous", overlong_share=0.0) as running:
        for ask in asks:
            httpx.post(f"{running.url}/completions", json={"model": "reference-1"} | ask)
        httpx.post(f"{running.url}/completions", json={"model": "nope", "prompt": "x"})
        truth = [line for line in running.truth() if line["outcome"] == "completed"]
        page = samples(httpx.get(f"{running.root}/metrics").text)
    outputs = [line["output_tokens"] for line in truth]
    assert len(truth) == 4
    assert page["vllm:prompt_tokens_total"] == sum(line["prompt_tokens"] for line in truth) == 14
    assert page["vllm:generation_tokens_total"] == sum(outputs)
    assert page["vllm:request_success_totallength"] == 3
    assert page["vllm:request_success_totalstop"] == 1
    assert page["vllm:request_success_totalabort"] == 0
    assert page["vllm:inter_token_latency_seconds_count"] == sum(n - 1 for n in outputs)
    queue = sum(line["admitted_s"] - line["received_s"] for line in truth)
    prefill = sum(line["prefill_done_s"] - line["admitted_s"] for line in truth)
    assert page["vllm:request_queue_time_seconds_sum"] == pytest.approx(queue)
    assert page["vllm:request_prefill_time_seconds_sum"] == pytest.approx(prefill)
    phases = ("queue", "prefill", "decode")
    parts = sum(page[f"vllm:request_{phase}_time_seconds_sum"] for phase in phases)
    assert page["vllm:e2e_request_latency_seconds_sum"] == pytest.approx(parts)
    for name in ("time_to_first_token_seconds", "e2e_request_latency_seconds"):
        assert page[f"vllm:{name}_count"] == 4
    assert page["vllm:num_requests_running"] == page["vllm:num_requests_waiting"] == 0
