"""The simulated engine: which tokens are ready when. No HTTP, no clock of its own.

Time is a number handed in, so the same code runs on the wall clock and on a
virtual one. The engine is idle or inside one step. A step ends at an absolute
time and the next begins at that same time, whenever the caller looks: a late
caller gets late deliveries, never a slower engine.

    prefill step   prefill_base_s + prefill_per_token_s * prompt tokens of those admitted
    decode step    decode_base_s + decode_per_sequence_s * sequences in the batch

Each step yields one token for each of its sequences; a prefill step yields the
first. Prefill goes before decode and holds it up while it lasts.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass
from typing import Generic, TypeVar

from runners.endpoint.profile import Profile


@dataclass(eq=False, slots=True)
class Job:
    """One sequence: what it costs, and when the engine did what with it (seconds).

    `batch_size` is how many sequences ran right after this one was admitted.
    Times are None until they happen.
    """

    prompt_tokens: int
    output_tokens: int
    arrived_s: float | None = None
    admitted_s: float | None = None
    prefill_done_s: float | None = None
    finished_s: float | None = None
    batch_size: int | None = None
    produced: int = 0
    cancelled: bool = False

    @property
    def complete(self) -> bool:
        """Whether every token has been produced."""
        return self.produced >= self.output_tokens


J = TypeVar("J", bound=Job)


@dataclass(slots=True)
class Step(Generic[J]):
    """What one step, ended at `at_s`, made: a token each for `emitted`; `finished` left."""

    at_s: float
    emitted: list[J]
    finished: list[J]


class Engine(ABC, Generic[J]):
    """First come, first served; at most `slots` sequences at a time."""

    def __init__(self, profile: Profile, seed: int) -> None:
        self._profile = profile
        self._rng = random.Random(f"steps|{seed}")  # noqa: S311  # simulation, not secrecy
        self.waiting: deque[J] = deque()
        self.running: list[J] = []
        self._members: list[J] = []
        self._due_s: float | None = None

    @property
    def due_s(self) -> float | None:
        """When the current step ends; None while idle."""
        return self._due_s

    def queue_full(self) -> bool:
        """Whether one more would wait behind `queue_limit` others without a slot in sight."""
        limit = self._profile.queue_limit
        return limit is not None and len(self.waiting) - self._room() >= limit

    def submit(self, job: J, now_s: float) -> bool:
        """Queue a job; False when the queue is full. Call `advance(now_s)` first."""
        if self.queue_full():
            return False
        job.arrived_s = now_s
        self.waiting.append(job)
        if self._due_s is None:
            self._begin(now_s)
        return True

    def cancel(self, job: J) -> None:
        """Take a job out, freeing its slot for the next step; the step under way goes on."""
        job.cancelled = True
        if job.admitted_s is None:
            self.waiting.remove(job)
        elif job in self.running:
            self.running.remove(job)

    def advance(self, now_s: float) -> list[Step[J]]:
        """Every step that has ended by `now_s`, oldest first."""
        steps = []
        while self._due_s is not None and self._due_s <= now_s:
            at_s = self._due_s
            steps.append(self._end(at_s))
            self._begin(at_s)
        return steps

    def _end(self, at_s: float) -> Step[J]:
        emitted = [job for job in self._members if not job.cancelled]
        for job in emitted:
            if job.produced == 0:
                job.prefill_done_s = at_s
            job.produced += 1
        finished = self._release()
        for job in finished:
            job.finished_s = at_s
        return Step(at_s, emitted, finished)

    def _begin(self, at_s: float) -> None:
        admitted = self._admit()
        if admitted:
            self._members = admitted
            self.running += admitted
            for job in admitted:
                job.admitted_s, job.batch_size = at_s, len(self.running)
            self._due_s = at_s + self._prefill_s(admitted)
        elif self.running:
            self._members = [job for job in self.running if not job.complete]
            self._due_s = at_s + self._decode_s(self._width())
        else:
            self._members, self._due_s = [], None

    def _prefill_s(self, jobs: list[J]) -> float:
        tokens = sum(job.prompt_tokens for job in jobs)
        cost = self._profile.prefill_base_s + self._profile.prefill_per_token_s * tokens
        return cost * self._jitter()

    def _decode_s(self, width: int) -> float:
        cost = self._profile.decode_base_s + self._profile.decode_per_sequence_s * width
        return cost * self._jitter()

    def _jitter(self) -> float:
        j = self._profile.jitter
        return self._rng.uniform(1 - j, 1 + j) if j else 1.0

    @abstractmethod
    def _room(self) -> int:
        """How many more could start at the next step."""

    @abstractmethod
    def _admit(self) -> list[J]:
        """Those that start now, taken from the head of the queue."""

    @abstractmethod
    def _width(self) -> int:
        """How many sequences a decode step pays for."""

    @abstractmethod
    def _release(self) -> list[J]:
        """Those that leave now, taken out of `running`."""


class ContinuousEngine(Engine[J]):
    """Iteration-level batching (Orca, OSDI'22): join and leave between any two steps."""

    def _room(self) -> int:
        return self._profile.slots - len(self.running)

    def _admit(self) -> list[J]:
        admitted: list[J] = []
        tokens = 0
        while self.waiting and len(admitted) < self._room():
            tokens += self.waiting[0].prompt_tokens
            # A prompt above the limit still goes, alone: it would wait for ever otherwise.
            if admitted and tokens > self._profile.max_prefill_tokens:
                break
            admitted.append(self.waiting.popleft())
        return admitted

    def _width(self) -> int:
        return len(self.running)

    def _release(self) -> list[J]:
        done = [job for job in self.running if job.complete]
        if done:
            self.running = [job for job in self.running if not job.complete]
        return done


class StaticEngine(Engine[J]):
    """Request-level batching: all of a batch start together and leave together.

    Tokens are handed out as they are made, but an answer is closed only when
    the longest of its batch is done, and places given up early are padding
    that is still paid for.
    """

    def __init__(self, profile: Profile, seed: int) -> None:
        super().__init__(profile, seed)
        self._formed = 0

    def _room(self) -> int:
        return 0 if self.running else self._profile.slots

    def _admit(self) -> list[J]:
        admitted = [self.waiting.popleft() for _ in range(min(self._room(), len(self.waiting)))]
        if admitted:
            self._formed = len(admitted)
        return admitted

    def _width(self) -> int:
        return self._formed

    def _release(self) -> list[J]:
        if not all(job.complete for job in self.running):
            return []
        done, self.running = self.running, []
        return done


def engine_for(profile: Profile, seed: int) -> Engine[J]:
    """The engine that a profile's `batching` names."""
    if profile.batching == "static":
        return StaticEngine(profile, seed)
    return ContinuousEngine(profile, seed)
