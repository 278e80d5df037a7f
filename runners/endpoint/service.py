"""What the simulator does with a request: routes, admission, streaming, accounting."""

from __future__ import annotations

import asyncio
import hmac
import os
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from runners.endpoint.answers import Answer, answer_key, compose
from runners.endpoint.api import ApiError, Request, Sse, model_list, parse_request, whole_reply
from runners.endpoint.engine import Engine, Job, Step, engine_for
from runners.endpoint.http import Exchange, Headers
from runners.endpoint.metrics import Metrics
from runners.endpoint.pacer import Clock, Pacer
from runners.endpoint.profile import Profile, ProfileError
from runners.endpoint.truth import Truth, TruthLog

_JSON = "application/json"
_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
# How a refusal stands in the truth log.
_REFUSALS = {401: "unauthorized", 404: "not_found", 429: "rejected", 503: "rejected"}
_ROUTES = {
    "/health": "GET", "/metrics": "GET", "/v1/models": "GET",
    "/v1/completions": "POST", "/v1/chat/completions": "POST",
}  # fmt: skip


@dataclass(eq=False, slots=True, kw_only=True)
class Generation(Job):
    """A job with the request it answers. `sse` is None when the answer is not streamed.

    `sent` counts the tokens delivered; after a late wake-up `produced` is ahead of it.
    """

    exchange: Exchange
    request: Request
    answer: Answer
    reply_id: str
    truth: Truth
    sse: Sse | None = None
    sent: int = 0
    last_s: float | None = None


class Service:
    """The endpoint behind the HTTP server. `fail` is called when the truth log cannot be kept."""

    def __init__(
        self, profile: Profile, seed: int, clock: Clock, truth: TruthLog,
        fail: Callable[[OSError], None],
    ) -> None:  # fmt: skip
        self._profile, self._seed, self._clock = profile, seed, clock
        self._truth, self._fail = truth, fail
        self._key = _api_key(profile)
        self._created = int(time.time())
        self._engine: Engine[Generation] = engine_for(profile, seed)
        self._pacer: Pacer[Generation] = Pacer(self._engine, clock, self._deliver)
        self._open: set[Generation] = set()
        self._metrics = Metrics(
            profile.model, lambda: len(self._engine.running), lambda: len(self._engine.waiting)
        )
        self.stopping = False
        # Set while no answer is open.
        self.idle = asyncio.Event()
        self.idle.set()

    def handle(self, exchange: Exchange) -> None:
        """Answer a request, or refuse it with OpenAI's error body."""
        headers = exchange.headers
        truth = Truth(headers.get("x-request-id"), headers.get("x-impakt-run"), exchange.received_s)
        try:
            self._route(exchange, truth)
        except ApiError as error:
            self._refuse(exchange, truth, error)

    def interrupt(self) -> None:
        """Cut every answer that is still open: the server stops."""
        for job in list(self._open):
            job.exchange.abort()
            self._engine.cancel(job)
            self._close(job, "interrupted", None)

    def _route(self, exchange: Exchange, truth: Truth) -> None:
        path, method = exchange.path, exchange.method
        wanted = _ROUTES.get(path)
        if wanted is None:
            raise ApiError(404, f"no such path: {method} {path}", code="not_found")
        if method != wanted and not (wanted == "GET" and method == "HEAD"):
            raise ApiError(405, f"{path} takes {wanted}, not {method}", code="method_not_allowed")
        if path == "/health":
            exchange.reply(200, b"", "text/plain", [])
        elif path == "/metrics":
            exchange.reply(200, self._metrics.page(), _PROMETHEUS, [])
        else:
            self._check_key(exchange)
            self._answer(exchange, truth)

    def _answer(self, exchange: Exchange, truth: Truth) -> None:
        if exchange.path == "/v1/models":
            exchange.reply(200, model_list(self._profile.model, self._created), _JSON, [])
            return
        request = parse_request(exchange.body, chat=exchange.path == "/v1/chat/completions")
        if request.model != self._profile.model:
            text = f"The model `{request.model}` does not exist; there is `{self._profile.model}`."
            raise ApiError(404, text, code="model_not_found", param="model")
        self._admit(exchange, request, truth)

    def _check_key(self, exchange: Exchange) -> None:
        if self._key is None:
            return
        given = exchange.headers.get("authorization", "")
        if not hmac.compare_digest(given.encode(), f"Bearer {self._key}".encode()):
            raise ApiError(401, "Incorrect API key provided.", code="invalid_api_key")

    def _admit(self, exchange: Exchange, request: Request, truth: Truth) -> None:
        truth.stream, truth.prompt_tokens = request.stream, request.prompt_tokens
        job = self._generation(exchange, request, truth)
        if self.stopping:
            raise ApiError(503, "The server is stopping.", code="stopping", kind="server_error")
        if not self._pacer.submit(job):
            self._metrics.rejected()
            raise ApiError(
                429, f"The queue is full ({self._profile.queue_limit} waiting).",
                code="queue_full", kind="rate_limit_error",
                retry_after_s=self._profile.retry_after_s,
            )  # fmt: skip
        self._open.add(job)
        self.idle.clear()
        exchange.on_gone = lambda: self._gone(job)
        if job.sse is not None:
            # Headers and the role-only chunk go out before any token, as OpenAI's do.
            exchange.open_stream(_echo(exchange), job.sse.opening())

    def _generation(self, exchange: Exchange, request: Request, truth: Truth) -> Generation:
        key = answer_key(exchange.headers.get("x-request-id"), request.ask.text)
        answer = compose(request.ask, self._profile, self._seed, key)
        reply_id = ("chatcmpl-" if request.chat else "cmpl-") + uuid.uuid4().hex
        if self._profile.token_times and request.stream:
            truth.token_times_s = []
        return Generation(
            prompt_tokens=request.prompt_tokens,
            output_tokens=len(answer.words),
            exchange=exchange, request=request, answer=answer, reply_id=reply_id, truth=truth,
            sse=Sse(request, reply_id, int(time.time())) if request.stream else None,
        )  # fmt: skip

    def _deliver(self, step: Step[Generation]) -> None:
        for job in step.emitted:
            self._send_token(job)
        self._metrics.tokens(len(step.emitted))
        for job in step.finished:
            self._finish(job)

    def _send_token(self, job: Generation) -> None:
        truth = job.truth
        # Read before the write: a client never sees a token before the log's time of it.
        now_s = self._clock.now()
        if job.sse is not None:
            word = job.answer.words[job.sent]
            job.exchange.write(job.sse.token(f" {word}" if job.sent else word))
            truth.last_token_s = now_s
            if truth.token_times_s is not None:
                truth.token_times_s.append(now_s)
        job.sent += 1
        truth.output_tokens = job.sent
        if job.last_s is None:
            truth.first_token_s = truth.last_token_s
            self._metrics.first_token(job.prompt_tokens, now_s - truth.received_s)
        else:
            self._metrics.gap(now_s - job.last_s)
        job.last_s = now_s

    def _finish(self, job: Generation) -> None:
        # Accounts first: whoever has read the end of an answer finds it in log and metrics.
        reason, words = job.answer.finish_reason, job.answer.words
        self._close(job, "completed", reason)
        self._metrics.finished(job.truth, reason, job.last_s or self._clock.now())
        if job.sse is not None:
            job.exchange.close_stream(job.sse.closing(reason, len(words)))
        else:
            body = whole_reply(job.request, job.reply_id, int(time.time()), words, reason)
            job.exchange.reply(200, body, _JSON, _echo(job.exchange))

    def _gone(self, job: Generation) -> None:
        self._pacer.cancel(job)
        if job in self._open:
            self._close(job, "cancelled", None)
            self._metrics.aborted()

    def _close(self, job: Generation, outcome: str, finish_reason: str | None) -> None:
        self._open.discard(job)
        if not self._open:
            self.idle.set()
        truth = job.truth
        truth.admitted_s, truth.prefill_done_s = job.admitted_s, job.prefill_done_s
        truth.batch_size = job.batch_size
        answered = outcome == "completed" or job.sse is not None
        truth.status = 200 if answered else None
        truth.finish_reason = finish_reason
        self._record(truth, outcome)

    def _refuse(self, exchange: Exchange, truth: Truth, error: ApiError) -> None:
        headers = _echo(exchange)
        if error.retry_after_s is not None:
            headers.append(("retry-after", str(error.retry_after_s)))
        if exchange.method == "POST":
            truth.status = error.status
            self._record(truth, _REFUSALS.get(error.status, "bad_request"))
        exchange.reply(error.status, error.body(), _JSON, headers)

    def _record(self, truth: Truth, outcome: str) -> None:
        truth.outcome, truth.end_s = outcome, self._clock.now()
        try:
            self._truth.write(truth)
        except OSError as error:
            self._fail(error)


def _echo(exchange: Exchange) -> Headers:
    """The request id, sent back as vLLM does with --enable-request-id-headers."""
    request_id = exchange.headers.get("x-request-id")
    return [("x-request-id", request_id)] if request_id else []


def _api_key(profile: Profile) -> str | None:
    """The key that the profile's environment variable holds; None when no key is asked for."""
    if profile.api_key_env is None:
        return None
    key = os.environ.get(profile.api_key_env)
    if not key:
        text = f"the name of an environment variable that is set; {profile.api_key_env} is not"
        raise ProfileError(profile.name, "api_key_env", text)
    return key
