"""The fast transport: HTTP/1.1 and TLS on sockets of our own, times by the kernel's stamps.

Nothing of the environment is used, no redirect is followed, TLS is verified. The host is
resolved once; every connection of the run goes to the address that answered first.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Mapping
from functools import partial

from runners.load.answers.body import PATHS
from runners.load.attempt import Attempt, Broken
from runners.load.places import addresses
from runners.load.plan import LoadPlan
from runners.load.transports.fast.endpoint import Endpoint, head_of
from runners.load.transports.fast.exchange import Exchange
from runners.load.transports.fast.http1 import ResponseReader
from runners.load.transports.fast.hub import Hub
from runners.load.transports.fast.line import Line, Place
from runners.load.transports.fast.tls import TlsLine, context_of
from runners.load.transports.seam import Gate, Timers

# Below the 5 s after which common servers close an idle connection.
_KEEP_IDLE_S = 4.0
_MAX_MODELS = 4 << 20
# How long the tail of a finished stream may take, for the connection's reuse.
_TAIL_S = 1.0
_SWEEP_S = 0.25
# Smaller bodies go out in one piece with their head.
_JOIN_BYTES = 64 << 10
# How long receives in the middle of an answer may wait to be understood, and how many answers
# are gone through before the sockets and the schedule have their turn again.
_HELD_S = 0.1
_AT_ONCE = 8


class FastClient:
    """Sends attempts to one endpoint. `now` gives seconds from run start."""

    def __init__(self, plan: LoadPlan, now: Callable[[], float], timers: Timers) -> None:
        self._plan, self.now = plan, now
        self._loop = asyncio.get_running_loop()
        self._endpoint = Endpoint(plan)
        self._post = self._endpoint.post(PATHS[plan.api])
        self._tls = context_of(plan.ca_file) if self._endpoint.secure else None
        self._places: list[Place] = []
        self._pinned = False
        self._readying = asyncio.Lock()
        self._lines: set[Line] = set()
        # The one used last is the least likely to have been closed.
        self._idle: list[Line] = []
        self._tails: deque[_Tail] = deque()
        self._counts: Counter[str] = Counter()
        self._hub = Hub(self._loop, now, timers)
        self.stamp_source = "kernel" if self._hub.kernel else "user"
        self._sweeping: asyncio.TimerHandle | None = None
        # Answers with receives that wait to be understood, since when.
        self._holding: deque[tuple[float, Exchange]] = deque()
        self._settling: asyncio.Handle | None = None

    async def get_models(self, timeout_s: float) -> tuple[int, bytes]:
        """Status and body of GET /models; Broken when no answer came."""
        attempt = Attempt("models", 1)
        try:
            async with asyncio.timeout(timeout_s):
                exchange = await self._exchange(
                    attempt, (self._endpoint.get("/models"),), _Open(self.now), _MAX_MODELS
                )
        except TimeoutError:
            raise Broken("timeout", f"no answer within {timeout_s:g} s") from None
        assert attempt.http_status is not None
        return attempt.http_status, bytes(exchange.kept or b"")

    def begin(self) -> None:
        """Run start has just been set: `now` counts from it from here on."""
        self._hub.begin()
        self._counts.clear()
        now_s = self.now()
        for line in self._idle:
            line.since_s = now_s
        for tail in self._tails:
            tail.until_s = now_s + _TAIL_S

    async def send(
        self, attempt: Attempt, body: bytes, headers: Mapping[str, str], gate: Gate
    ) -> None:
        """Sends one attempt and reads its answer to the end, filling in `attempt`.

        Everything is made ready before the gate opens. Broken for every failure of
        the transport. May be cancelled at any time.
        """
        head = head_of(self._post, headers, len(body))
        parts = (head + body,) if len(body) < _JOIN_BYTES else (head, body)
        # The caller's copy is all that is kept of a long prompt.
        del head, body
        exchanging = self._exchange(attempt, parts, gate)
        # Held by the exchange alone, for as long as it may have to be sent again.
        del parts
        await exchanging

    async def _exchange(
        self, attempt: Attempt, parts: tuple[bytes, ...], gate: Gate, keep: int | None = None
    ) -> Exchange:
        if not self._places:
            await self._make_ready()
        future = self._loop.create_future()
        attempt.stamp_source = self.stamp_source
        exchange = Exchange(attempt, parts, self, future, self.now, self._endpoint.hide, keep)
        del parts
        gate.call(partial(exchange.fire, gate))
        try:
            await future
        except asyncio.CancelledError:
            gate.cancel()
            exchange.cut()
            raise
        return exchange

    async def _make_ready(self) -> None:
        """What is done once, before the first request."""
        async with self._readying:
            if self._places:
                return
            if not await self._hub.prove():
                self.stamp_source = "user"
            end = self._endpoint
            found = await addresses(end.host, end.port, allow_private=self._plan.allow_private)
            self._places = list(found)

    def serve(self, exchange: Exchange, gate: Gate) -> None:
        """Finds a connection for an exchange and sends it. OSError when there can be none."""
        line = self._idle_line()
        if line is not None:
            exchange.attempt.connection = "reused"
            exchange.attempt.sent_s = sent_s = gate.opened()
            exchange.send_on(line, sent_s)
        else:
            line = self._new_line()
            exchange.attempt.connection = "new"
            exchange.attempt.sent_s = sent_s = gate.opened()
            self._connect(line, exchange, sent_s)
        self._counts[exchange.attempt.connection] += 1

    def serve_again(self, exchange: Exchange) -> None:
        """Sends it on a fresh connection."""
        line = self._new_line()
        exchange.attempt.connection = "resent"
        self._counts["resent"] += 1
        self._connect(line, exchange, self.now())

    def _connect(self, line: Line, exchange: Exchange, at_s: float) -> None:
        self._lines.add(line)
        exchange.send_on(line, at_s)
        line.connect()
        self._sweep_soon()

    def give_back(self, line: Line, reader: ResponseReader) -> None:
        """The exchange has read all it needs; the answer may have a tail."""
        if not line.open or line.sending:
            self.discard(line)
        elif reader.over:
            self.settle(line, reader)
        else:
            tail = _Tail(self, line, reader, self.now() + _TAIL_S)
            line.work_for(tail, line.last_s)
            self._tails.append(tail)

    def settle(self, line: Line, reader: ResponseReader) -> None:
        """The answer is over: the connection is kept for another when both sides can."""
        if reader.reusable and line.open:
            line.park(self.now())
            self._idle.append(line)
        else:
            self.discard(line)

    def hold(self, exchange: Exchange) -> None:
        """Receives of an answer wait to be understood, from now on."""
        self._holding.append((self.now(), exchange))
        if self._settling is None:
            self._settling = self._loop.call_later(_HELD_S, self._settle)

    def _settle(self) -> None:
        """Has those understood that waited long enough, a few at a time."""
        holding, old_s = self._holding, self.now() - _HELD_S
        for _ in range(_AT_ONCE):
            if not holding or holding[0][0] > old_s:
                break
            holding.popleft()[1].settle()
            self._hub.give_way()
        if not holding:
            self._settling = None
        elif holding[0][0] > old_s:
            self._settling = self._loop.call_later(_HELD_S / 2, self._settle)
        else:
            self._settling = self._loop.call_soon(self._settle)

    def opened(self, place: Place) -> None:
        """A connection to this address stands: all others go there, too."""
        if not self._pinned:
            self._places, self._pinned = [place], True

    def gone(self, line: Line) -> None:
        """A connection that worked for nobody is closed."""
        self._lines.discard(line)
        if line in self._idle:
            self._idle.remove(line)

    def told(self) -> dict[str, object]:
        """How the transport went, for run.json."""
        return {
            "stamp_source": self.stamp_source,
            "clock": self._hub.clock.told(),
            "connections": {name: self._counts[name] for name in ("new", "reused", "resent")},
            "address": self._places[0].sockaddr[0] if self._pinned else None,
        }

    async def close(self) -> None:
        """Closes every connection."""
        for handle in (self._sweeping, self._settling):
            if handle is not None:
                handle.cancel()
        for line in self._lines:
            line.close()
        self._lines.clear()
        self._idle.clear()
        self._tails.clear()
        self._holding.clear()
        self._hub.close()

    def _new_line(self) -> Line:
        line = self._make()
        line.prepare(self._places)
        return line

    def _make(self) -> Line:
        if self._tls is None:
            return Line(self._hub, self._loop, self)
        return TlsLine(self._hub, self._loop, self, self._tls, self._endpoint.host)

    def _idle_line(self) -> Line | None:
        idle = self._idle
        if idle and self.now() - idle[-1].since_s <= _KEEP_IDLE_S:
            return idle.pop()
        # When the youngest is too old all are; the sweep closes them.
        return None

    def discard(self, line: Line) -> None:
        """Closes a connection for good."""
        line.close()
        self._lines.discard(line)

    def _sweep_soon(self) -> None:
        if self._sweeping is None:
            self._sweeping = self._loop.call_later(_SWEEP_S, self._sweep)

    def _sweep(self) -> None:
        """Closes what idles too long, and tails that do not end."""
        self._sweeping = None
        now_s = self.now()
        old = [line for line in self._idle if now_s - line.since_s > _KEEP_IDLE_S]
        for line in old:
            self.discard(line)
        if old:
            self._idle = [line for line in self._idle if line.open]
        while self._tails and self._tails[0].until_s <= now_s:
            tail = self._tails.popleft()
            if tail.line.user is tail:
                self.discard(tail.line)
        # Those that an exchange closed itself.
        self._lines = {line for line in self._lines if line.open}
        if self._lines:
            self._sweep_soon()


class _Tail:
    """What follows after the end of an answer, read so that the connection can be used again."""

    __slots__ = ("_client", "_reader", "line", "until_s")

    def __init__(
        self, client: FastClient, line: Line, reader: ResponseReader, until_s: float
    ) -> None:
        self._client, self.line, self._reader, self.until_s = client, line, reader, until_s

    def take(self, data: bytes, at_s: float) -> None:
        self._reader.feed(data)
        if self._reader.over:
            self._client.settle(self.line, self._reader)

    def ended(self, fault: Broken | None, at_s: float) -> None:
        self._client.discard(self.line)

    def unstamped(self) -> None:
        return None


class _Open:
    """A gate that stands open, for what is no part of the load."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now

    def call(self, fire: Callable[[], None]) -> None:
        fire()

    async def wait(self) -> None:
        self.opened()

    def opened(self) -> float:
        return self._now()

    def cancel(self) -> None:
        return None
