"""What a load run is asked to do, and what it answers with."""

from __future__ import annotations

import math
import re
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from records.errors import BadInput, ImpaktError
from records.evidence.workload import default_workload
from records.traces.reading import Trace
from records.traces.schema import TraceRequest
from runners.load.hiding import Hider, url_secrets
from runners.load.urls import public_url

Api = Literal["chat", "completions"]
APIS = ("chat", "completions")
CAPTURES = ("none", "hashes", "full")
TIMEOUT_S = 600.0
# Above this p99 schedule lag a run is invalid; CONTRACT "Record".
LAG_LIMIT_S = 0.010
MOST_RETRIES = 20
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
# What a request has of ours or of HTTP itself; a key there would break it.
_OUR_HEADERS = frozenset({
    "accept", "accept-encoding", "connection", "content-length", "content-type", "expect", "host",
    "te", "trailer", "transfer-encoding", "upgrade", "user-agent", "x-impakt-run", "x-request-id",
})  # fmt: skip


class Secret:
    """A credential that no repr, log or dump shows; `reveal` is the only way to it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The credential itself, for the request header."""
        return self._value

    def hide_in(self, value: Any) -> Any:
        """A text, or a JSON value of texts, with every occurrence of the credential struck out."""
        return Hider([self._value]).hide_in(value)

    def __repr__(self) -> str:
        return "Secret(***)"

    def __reduce__(self) -> str:
        raise TypeError("a Secret is never pickled")


@dataclass(frozen=True, kw_only=True)
class LoadPlan:
    """One replay of one trace on one endpoint.

    Seconds throughout. `window_s` None measures through the last arrival;
    otherwise nothing that arrives after the window is sent. `drain_s` None
    waits for every open request, which its own timeout ends.
    """

    url: str
    model: str
    trace: Trace
    run_id: str
    workload: Mapping[str, Any] = field(default_factory=default_workload)
    configuration: Mapping[str, Any] = field(default_factory=dict)
    api: Api = "chat"
    max_concurrency: int | None = None
    timeout_s: float = TIMEOUT_S
    warmup_s: float = 0.0
    window_s: float | None = None
    drain_s: float | None = None
    cache_state: Literal["warm", "cold"] | None = None
    capture: Literal["none", "hashes", "full"] = "full"
    # "fast" or "httpx", see run.TRANSPORTS.
    transport: str = "fast"
    retries: int = 0
    # httpx only: a proxy's URL, HTTP/2.
    proxy: str | None = None
    http2: bool = False
    # PEM file of the authorities to trust instead of the machine's.
    ca_file: Path | None = None
    # A Hugging Face tokenizer.json, for servers that count no tokens.
    tokenizer: Path | None = None
    # False: addresses of private ranges are refused (the web application's runs).
    allow_private: bool = True
    api_key: Secret | None = None
    # None: `Authorization: Bearer KEY`; otherwise the header that carries the bare key.
    api_key_header: str | None = None
    owner: str | None = None
    replicate: int | None = None
    lag_limit_s: float = LAG_LIMIT_S
    # The web application stops runs through `should_stop`; a terminal through signals.
    handle_signals: bool = True

    def check(self) -> None:
        """BadInput for a plan that cannot be run, before anything is written or sent."""
        for name, allowed in (("api", APIS), ("capture", CAPTURES)):
            if getattr(self, name) not in allowed:
                raise BadInput(f"{name}: one of {', '.join(allowed)}")
        if not self.trace.requests:
            raise BadInput("trace: at least one request")
        if self.max_concurrency is not None and self.max_concurrency < 1:
            raise BadInput("max concurrency: at least 1")
        for name, above_zero in (
            ("timeout_s", True), ("window_s", True), ("warmup_s", False), ("drain_s", False),
            ("lag_limit_s", True),
        ):  # fmt: skip
            value = getattr(self, name)
            if value is not None and not _seconds(value, above_zero):
                wanted = "above 0" if above_zero else "0 or more"
                raise BadInput(f"{name}: seconds, {wanted}, not {value}")
        self._check_transport()
        if not self.requests():
            raise BadInput(f"warm-up and window: no request arrives before {self.end_s:g} s")

    def _check_transport(self) -> None:
        if not 0 <= self.retries <= MOST_RETRIES:
            raise BadInput(f"retries: 0 to {MOST_RETRIES}, not {self.retries}")
        if self.transport != "httpx" and (self.proxy is not None or self.http2):
            wanted = "a proxy" if self.proxy is not None else "HTTP/2"
            raise BadInput(f"transport: {wanted} needs httpx, not {self.transport}")
        if self.proxy is not None:
            public_url(self.proxy, "proxy")
        self._check_header()
        for name in ("ca_file", "tokenizer"):
            path = getattr(self, name)
            if path is not None:
                _check_readable(name, path)

    def _check_header(self) -> None:
        name = self.api_key_header
        if name is None:
            return
        if not _HEADER.fullmatch(name):
            # Not shown: it may be the whole header, key and all.
            raise BadInput("api key header: the name of a header, such as X-API-Key")
        if name.lower() in _OUR_HEADERS:
            raise BadInput(f"api key header: not {name}, which a request has anyway")

    @cached_property
    def hider(self) -> Hider:
        """What strikes every credential of this plan out of what is kept or shown."""
        key = [] if self.api_key is None else [self.api_key.reveal()]
        return Hider([*key, *url_secrets(self.url), *url_secrets(self.proxy)])

    @property
    def start_s(self) -> float:
        """Where the measurement window opens, from run start."""
        return self.warmup_s

    @property
    def end_s(self) -> float:
        """Where the measurement window closes."""
        if self.window_s is not None:
            # Nanoseconds: 0.1 + 0.2 must not let an arrival at 0.3 in.
            return round(self.warmup_s + self.window_s, 9)
        return max(self.warmup_s, self.trace.requests[-1].at_s)

    def in_window(self, intended_s: float) -> bool:
        """Half open when the window has a length, through the last arrival when it has none."""
        if self.window_s is None:
            return intended_s >= self.start_s
        return self.start_s <= intended_s < self.end_s

    def requests(self) -> list[TraceRequest]:
        """The requests that will be sent, in order of arrival."""
        if self.window_s is None:
            return self.trace.requests
        return [r for r in self.trace.requests if r.at_s < self.end_s]

    def timeout_of(self, request: TraceRequest) -> float:
        """Seconds an attempt may take from its send: the trace's word, its class's, the plan's."""
        if request.timeout_s is not None:
            return request.timeout_s
        classes = self.workload.get("classes") or {}
        stated = (classes.get(request.service_class) or {}).get("timeout_s")
        return self.timeout_s if stated is None else float(stated)


def _check_readable(name: str, path: Path) -> None:
    try:
        with path.open("rb") as handle:
            handle.read(1)
        if name == "ca_file":
            ssl.create_default_context(cafile=str(path))
    except ssl.SSLError as error:
        raise BadInput(f"{name} {path}: no certificates in PEM form ({error})") from error
    except OSError as error:
        raise BadInput(f"{name} {path}: cannot be read ({error.strerror})") from error


def _seconds(value: float, above_zero: bool) -> bool:
    return math.isfinite(value) and (value > 0 if above_zero else value >= 0)


@dataclass(frozen=True)
class Progress:
    """How a run stands, about twice a second."""

    elapsed_s: float
    planned_s: float
    due: int
    planned: int
    sent: int
    in_flight: int
    outcomes: Mapping[str, int]
    lag_p99_s: float | None


@dataclass(frozen=True)
class LoadOutcome:
    """How a run ended. `error` is what a person must hear of, with its exit code; often None."""

    folder: Path
    state: Literal["completed", "stopped", "interrupted", "failed"]
    outcomes: Mapping[str, int]
    error: ImpaktError | None = None


OnProgress = Callable[[Progress], None]
# A line that a person should see before load is sent.
OnNote = Callable[[str], None]
# True: a person stopped the run. "interrupted": who runs it must end.
ShouldStop = Callable[[], bool | str]
