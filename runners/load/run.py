"""A load run from plan to sealed evidence; the one way in for terminal and web application."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import orjson

from records.errors import (
    BadInput,
    HostNotAllowed,
    OtherSideFailed,
    StorageFailed,
)
from records.evidence.writer import SpoolWriter
from runners.load.answers.tokenizer import CountTokens, load_tokenizer
from runners.load.describe import now_text, planned_rows, run_notes, run_of
from runners.load.ending import End, asked_to, never_started
from runners.load.following import Follower
from runners.load.monitor import Monitor
from runners.load.plan import (
    LoadOutcome,
    LoadPlan,
    OnNote,
    OnProgress,
    Progress,
    ShouldStop,
)
from runners.load.preflight import look, refusal_error
from runners.load.replay import Replay
from runners.load.schedule import Schedule
from runners.load.surroundings import (
    event_loop,
    in_main_thread,
    quiet_client,
    raise_file_limit,
    signals_restored,
    steady_interpreter,
)
from runners.load.transports.seam import Transport

# A line per way of sending, CONTRACT `--transport`; only the one that is used is imported.
TRANSPORTS = {
    "fast": "runners.load.transports.fast.client:FastClient",
    "httpx": "runners.load.transports.httpx.client:HttpxClient",
}
# Between the end of preparations and the first possible arrival.
_LEAD_S = 0.1
_PREPARE_S = 2.0


def make_transport(plan: LoadPlan, schedule: Schedule) -> Transport:
    """The transport that a plan names, on the running loop."""
    module, name = TRANSPORTS[plan.transport].split(":")
    made: Transport = getattr(import_module(module), name)(plan, schedule.now, schedule)
    return made


def run_load(
    plan: LoadPlan,
    folder: Path,
    on_progress: OnProgress | None = None,
    should_stop: ShouldStop | None = None,
    on_note: OnNote | None = None,
) -> LoadOutcome:
    """Replays a trace and leaves a sealed evidence folder, however the run ends.

    `on_progress` and `should_stop` are called about twice a second, always from
    the same thread of their own, so they may wait; `on_note` before any load is
    sent, with a line that a person should see. An endpoint that is unreachable or
    refuses everything is a failed run with its folder, told in `error`; so is a disk
    that refuses. BadInput before anything is written when the plan is wrong or
    `folder` holds something.
    """
    plan.check()
    if plan.transport not in TRANSPORTS:
        raise BadInput(f"transport: one of {', '.join(TRANSPORTS)}")
    count_tokens = None if plan.tokenizer is None else load_tokenizer(plan.tokenizer)
    run = run_of(plan)
    lines = (orjson.dumps(line).decode() for line in plan.trace.lines())
    writer = SpoolWriter.create(folder, run, plan.workload, lines, planned_rows(plan))
    follower = Follower(plan.run_id, on_progress, should_stop)
    load = _Load(plan, writer, follower, on_note, count_tokens)
    try:
        raise_file_limit()
        with signals_restored(), quiet_client(), steady_interpreter(), event_loop() as runner:
            end = runner.run(load.run())
    except BaseException as error:
        # A fault of ours: the evidence so far is kept, the fault is not hidden.
        with contextlib.suppress(StorageFailed):
            writer.close("failed", "internal_error", type(error).__name__, load.elapsed())
        raise
    return _closed(load, writer, end, folder)


def _closed(load: _Load, writer: SpoolWriter, end: End, folder: Path) -> LoadOutcome:
    outcomes = dict(load.outcomes)
    try:
        writer.close(end.state, end.reason, end.text, end.ended_s)
    except StorageFailed as error:
        return LoadOutcome(folder, "interrupted", outcomes, error)
    return LoadOutcome(folder, end.state, outcomes, end.error)


class _Load:
    """One run on its event loop."""

    def __init__(
        self,
        plan: LoadPlan,
        writer: SpoolWriter,
        follower: Follower,
        on_note: OnNote | None,
        count_tokens: CountTokens | None,
    ) -> None:
        self._plan, self._writer = plan, writer
        self._follower = follower
        self._on_note, self._count_tokens = on_note, count_tokens
        self._schedule: Schedule | None = None
        self._started = False
        self._replay: Replay | None = None
        self._monitor = Monitor(plan.lag_limit_s)
        self._stop = asyncio.Event()
        self._ending: End | None = None

    @property
    def outcomes(self) -> dict[str, int]:
        """Requests so far by outcome."""
        return {} if self._replay is None else dict(self._replay.tally.outcomes)

    def elapsed(self) -> float | None:
        """Seconds from run start; None when the run never started."""
        if self._schedule is None or not self._started:
            return None
        return max(0.0, self._schedule.now())

    async def run(self) -> End:
        self._listen_to_signals()
        schedule = self._schedule = Schedule()
        try:
            transport = make_transport(self._plan, schedule)
        except BadInput as error:
            # What only the transport knows of a URL, a key or a certificate.
            schedule.close()
            return never_started(error)
        try:
            found = await self._look(transport)
            return await self._measure(transport, schedule) if found is None else found
        finally:
            await transport.close()
            schedule.close()

    async def _look(self, transport: Transport) -> End | None:
        """The end of a run that cannot start, else None."""
        looking = asyncio.create_task(look(transport, self._plan))
        ending = await self._unless_stopped(looking)
        if ending is not None:
            return ending
        try:
            found = looking.result()
        except (OtherSideFailed, HostNotAllowed) as error:
            return never_started(error)
        # Names of models are the server's words, which may hold anything that was sent to it.
        warnings = self._plan.hider.hide_in(found.warnings)
        self._tell_notes(warnings)
        notes = [*run_notes(self._plan), *found.notes, *warnings]
        self._writer.update_run(simulated=found.simulated, notes=notes)
        return None

    def _tell_notes(self, notes: list[str]) -> None:
        for note in notes:
            if self._on_note is not None:
                self._on_note(note)

    async def _measure(self, transport: Transport, schedule: Schedule) -> End:
        replay = Replay(
            self._plan, transport, self._writer, self._monitor, schedule, self._count_tokens
        )
        self._replay = replay
        replay.on_crash = self._crashed
        replay.tally.on_refusal = self._refused
        replay.bodies.prepare(time.monotonic() + _PREPARE_S)
        self._begin(transport, schedule)
        async with self._follower.following(self._progress, self._asked_to_stop):
            end = await self._replay_until_end(replay)
        generator = {
            **self._monitor.stop(),
            "alarm": schedule.alarm,
            "stamp_source": transport.stamp_source,
            "transport": transport.told(),
        }
        self._writer.update_run(generator=generator, errors=replay.tally.errors)
        if self._plan.retries:
            self._writer.update_run(retries=replay.tally.retries())
        if replay.crash is not None:
            raise replay.crash
        return end

    def _begin(self, transport: Transport, schedule: Schedule) -> None:
        self._monitor.start()
        t0 = time.monotonic() + _LEAD_S
        clock = {"started_at": now_text(plus_s=_LEAD_S), "monotonic_s": t0}
        schedule.begin(t0)
        transport.begin()
        self._started = True
        self._writer.update_run(clock=clock)
        self._writer.start(schedule.now)

    async def _replay_until_end(self, replay: Replay) -> End:
        dispatching = asyncio.create_task(replay.dispatch())
        ending = await self._unless_stopped(dispatching)
        if ending is None:
            dispatching.result()
            finishing = asyncio.create_task(replay.finish(self._drain_left_s()))
            ending = await self._unless_stopped(finishing)
        if ending is None:
            await replay.cut("censored")
            return End("completed", "end_of_trace", None, self.elapsed())
        ended_s = self.elapsed()
        await replay.cut("interrupted")
        return replace(ending, ended_s=ended_s)

    async def _unless_stopped(self, work: asyncio.Task[Any]) -> End | None:
        """Waits for `work`; when the run is stopped first, cancels it and gives the end."""
        stopping = asyncio.create_task(self._stop.wait())
        await asyncio.wait({work, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if self._ending is not None:
            work.cancel()
        return self._ending

    def _drain_left_s(self) -> float | None:
        """What is left of the drain, which begins at the last arrival or the window's end."""
        drain_s = self._plan.drain_s
        if drain_s is None:
            return None
        ends_s = max(self._plan.end_s, self._last_arrival()) + drain_s
        return max(0.0, ends_s - (self.elapsed() or 0.0))

    def _last_arrival(self) -> float:
        assert self._replay is not None
        return self._replay.requests[-1].at_s

    def _end_as(self, end: End) -> None:
        """Ends the run like this, unless it is ending already."""
        if self._ending is None:
            self._ending = end
            self._stop.set()

    def _crashed(self) -> None:
        assert self._replay is not None
        self._end_as(End("failed", "internal_error", type(self._replay.crash).__name__))

    def _refused(self) -> None:
        """The first answers were all the same refusal: the rest would be no different."""
        assert self._replay is not None
        refusal = self._replay.tally.refusal
        assert refusal is not None
        error = refusal_error(refusal, self._plan)
        reason = "wrong_key" if refusal.is_key else "endpoint_refused"
        self._end_as(End("failed", reason, str(error), None, error))

    def _listen_to_signals(self) -> None:
        if not self._plan.handle_signals or not in_main_thread():
            return
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            name = signal.Signals(number).name
            end = End("interrupted", "signal", f"by {name}")
            loop.add_signal_handler(number, self._end_as, end)

    def _asked_to_stop(self, stop: bool | str) -> None:
        self._end_as(asked_to(stop))

    def _progress(self) -> Progress:
        """How the run stands, twice a second; a disk that refuses ends it then."""
        if self._writer.failed is not None:
            self._end_as(End("interrupted", "storage_failed", str(self._writer.failed)))
        replay = self._replay
        assert replay is not None
        tally = replay.tally
        return Progress(
            elapsed_s=self.elapsed() or 0.0,
            planned_s=max(self._plan.end_s, self._last_arrival()),
            due=tally.due,
            planned=len(replay.requests),
            sent=tally.sent,
            in_flight=tally.in_flight,
            outcomes=dict(tally.outcomes),
            lag_p99_s=self._monitor.lag_p99_s,
        )
