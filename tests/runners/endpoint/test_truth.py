"""The truth log, the metrics page and a client tell the same story."""

from __future__ import annotations

import asyncio
import statistics
import time
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from runners.endpoint.testing import Endpoint, serve

TEXT = "word " * 40
N = 40


async def one(http: httpx.AsyncClient, i: int, start_s: float) -> dict[str, Any]:
    """What a client sees of one streamed request, on CLOCK_MONOTONIC."""
    await asyncio.sleep(max(0.0, start_s + 0.025 * i - time.monotonic()))
    body = {"model": "reference-1", "prompt": TEXT, "max_tokens": 8 + i % 9, "stream": True}
    headers = {"x-request-id": f"r{i}", "x-impakt-run": "run-1"}
    seen: dict[str, Any] = {"id": f"r{i}", "sent_s": time.monotonic(), "tokens": 0}
    async with http.stream("POST", "/completions", json=body, headers=headers) as reply:
        async for line in reply.aiter_lines():
            if '"finish_reason":null' in line:
                now_s = time.monotonic()
                seen.setdefault("first_s", now_s)
                seen["last_s"] = now_s
                seen["tokens"] += 1
    return seen


async def light_load(url: str) -> list[dict[str, Any]]:
    async with httpx.AsyncClient(base_url=url, timeout=20) as http:
        # The first request pays for imports and a connection on both sides.
        await one(http, 0, time.monotonic())
        start_s = time.monotonic() + 0.02
        return await asyncio.gather(*(one(http, i, start_s) for i in range(1, N + 1)))


@pytest.mark.parametrize("profile", ["continuous", "static"])
def test_a_client_at_light_load_sees_what_the_truth_log_says(profile: str) -> None:
    with serve(profile, token_times=True) as running:
        seen = asyncio.run(light_load(running.url))
        truth = {line["request_id"]: line for line in running.truth()}
    assert len(truth) == N + 1
    first, last = [], []
    for client in seen:
        line = truth[client["id"]]
        assert line["output_tokens"] == client["tokens"] == len(line["token_times_s"])
        order = [line[k] for k in ("received_s", "admitted_s", "prefill_done_s", "first_token_s")]
        assert [client["sent_s"], *order] == sorted([client["sent_s"], *order])
        assert line["token_times_s"] == sorted(line["token_times_s"])
        assert line["token_times_s"][0] == line["first_token_s"]
        assert line["token_times_s"][-1] == line["last_token_s"] <= line["end_s"]
        assert (line["run"], line["prompt_tokens"], line["stream"]) == ("run-1", 40, True)
        first.append(client["first_s"] - line["first_token_s"])
        last.append(client["last_s"] - line["last_token_s"])
    for lag in (first, last):
        # A client cannot see a token before it was written; 5 ms is a busy machine's scheduling.
        assert min(lag) > -0.001
        assert statistics.median(lag) < 0.005


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
