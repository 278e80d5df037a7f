"""The /metrics page, with vLLM's names, units and buckets (vLLM 0.32).

Kept in a registry of its own: nothing of the Python process is on the page.
"""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from runners.endpoint.truth import Truth

_LABELS = ("engine", "model_name")
_TTFT = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40,
    80, 160, 640, 2560,
)  # fmt: skip
_PER_TOKEN = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80,
)  # fmt: skip
_REQUEST = (
    0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680,
)  # fmt: skip
FINISH_REASONS = ("stop", "length", "abort", "error")


class Metrics:
    """What the engine did so far, as vLLM would tell it."""

    def __init__(
        self, model: str, running: Callable[[], float], waiting: Callable[[], float]
    ) -> None:
        self._registry = CollectorRegistry()
        self._model = model
        self._gauge(
            "num_requests_running", "Number of requests in model execution batches.", running
        )
        self._gauge("num_requests_waiting", "Number of requests waiting to be processed.", waiting)
        self._prompt = self._counter("prompt_tokens", "Number of prefill tokens processed.")
        self._generated = self._counter(
            "generation_tokens", "Number of generation tokens processed."
        )
        self._success = self._success_counter()
        self._rejected = Counter(
            "vllm:admission_rejections",
            "Number of admission attempts rejected by a queue limit, by reason.",
            ("model_name", "reason"), registry=self._registry,
        ).labels(model, "max_num_queued_reqs")  # fmt: skip
        h = self._histogram
        self._ttft = h("time_to_first_token_seconds", "time to first token in seconds.", _TTFT)
        self._itl = h("inter_token_latency_seconds", "inter-token latency in seconds.", _PER_TOKEN)
        self._tpot = h(
            "request_time_per_output_token_seconds",
            "time_per_output_token_seconds per request.", _PER_TOKEN,
        )  # fmt: skip
        self._e2e = h("e2e_request_latency_seconds", "e2e request latency in seconds.", _REQUEST)
        self._queue = h(
            "request_queue_time_seconds", "time spent in WAITING phase for request.", _REQUEST
        )
        self._inference = h(
            "request_inference_time_seconds", "time spent in RUNNING phase for request.", _REQUEST
        )
        self._prefill = h(
            "request_prefill_time_seconds", "time spent in PREFILL phase for request.", _REQUEST
        )
        self._decode = h(
            "request_decode_time_seconds", "time spent in DECODE phase for request.", _REQUEST
        )

    def _gauge(self, name: str, text: str, read: Callable[[], float]) -> None:
        gauge = Gauge(f"vllm:{name}", text, _LABELS, registry=self._registry)
        gauge.labels("0", self._model).set_function(read)

    def _counter(self, name: str, text: str) -> Counter:
        counter = Counter(f"vllm:{name}", text, _LABELS, registry=self._registry)
        return counter.labels("0", self._model)

    def _success_counter(self) -> dict[str, Counter]:
        counter = Counter(
            "vllm:request_success", "Count of successfully processed requests.",
            ("engine", "finished_reason", "model_name"), registry=self._registry,
        )  # fmt: skip
        return {reason: counter.labels("0", reason, self._model) for reason in FINISH_REASONS}

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
        histogram = Histogram(
            f"vllm:{name}", f"Histogram of {text}", _LABELS,
            registry=self._registry, buckets=buckets,
        )  # fmt: skip
        return histogram.labels("0", self._model)

    def tokens(self, count: int) -> None:
        """Count the tokens that one step made."""
        self._generated.inc(count)

    def first_token(self, prompt_tokens: int, ttft_s: float) -> None:
        """Count a prefill and the time from receiving the request to its first token."""
        self._prompt.inc(prompt_tokens)
        self._ttft.observe(ttft_s)

    def gap(self, seconds: float) -> None:
        """Count the time between two tokens of one sequence."""
        self._itl.observe(seconds)

    def rejected(self) -> None:
        """Count a request that the queue limit refused."""
        self._rejected.inc()

    def aborted(self) -> None:
        """Count a request whose client left."""
        self._success["abort"].inc()

    def finished(self, truth: Truth, finish_reason: str, last_s: float) -> None:
        """Count a request that was answered in full, `last_s` being its last token's time."""
        self._success[finish_reason].inc()
        admitted_s, first_s = truth.admitted_s, truth.prefill_done_s
        if admitted_s is None or first_s is None:
            return
        self._e2e.observe(last_s - truth.received_s)
        self._queue.observe(admitted_s - truth.received_s)
        self._inference.observe(last_s - admitted_s)
        self._prefill.observe(first_s - admitted_s)
        self._decode.observe(last_s - first_s)
        if truth.output_tokens > 1:
            self._tpot.observe((last_s - first_s) / (truth.output_tokens - 1))

    def page(self) -> bytes:
        """The page in Prometheus' text format."""
        return generate_latest(self._registry)
