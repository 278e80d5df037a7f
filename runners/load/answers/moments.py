"""When the token-bearing chunks of an answer came, and in which receives."""

from __future__ import annotations

from array import array


class Moments:
    """Times from run start. What shares a time came in one receive."""

    __slots__ = (
        "_before_s", "_quiet_s", "_taken_chunks", "_times", "_totals", "first_token_s",
        "first_token_shared", "first_visible_token_s", "last_token_s", "receives",
    )  # fmt: skip

    def __init__(self) -> None:
        self.first_token_s: float | None = None
        self.first_visible_token_s: float | None = None
        self.last_token_s: float | None = None
        # Receives that brought token-bearing chunks.
        self.receives = 0
        # Whether a later token came in the receive of the first.
        self.first_token_shared = False
        self._times = array("q")
        # Running totals at each of them; None as long as no chunk in `_times` came with one.
        self._totals: array[int] | None = None
        self._taken_chunks = 0
        # The last receive before the first token, and the one before it.
        self._quiet_s: float | None = None
        self._before_s: float | None = None

    @property
    def chunk_count(self) -> int:
        """Token-bearing chunks so far, those handed out included."""
        return self._taken_chunks + len(self._times)

    @property
    def first_token_after_s(self) -> float | None:
        """Time of the receive before the first token's, where a later token came with the first.

        None when the first came alone, or when nothing of the body had come before.
        """
        return self._before_s if self.first_token_shared else None

    def quiet(self, at_s: float) -> None:
        """Notes that bytes came at `at_s` which bore no token; matters before the first."""
        if at_s != self._quiet_s:
            self._before_s, self._quiet_s = self._quiet_s, at_s

    def _mark(self, at_s: float, visible: bool) -> None:
        """Notes a token-bearing chunk."""
        if at_s != self.last_token_s:
            self.last_token_s = at_s
            self.receives += 1
        elif self.receives == 1:
            self.first_token_shared = True
        if self.first_visible_token_s is None:
            if visible:
                self.first_visible_token_s = at_s
            if self.first_token_s is None:
                self.first_token_s = at_s
                if self._quiet_s != at_s:
                    self._before_s = self._quiet_s
        self._times.append(round(at_s * 1e6))

    def _mark_many(self, times: list[float]) -> None:
        """Notes visible token-bearing chunks after the first two receives."""
        last = self.last_token_s
        for at_s in times:
            if at_s != last:
                self.receives += 1
                last = at_s
        self.last_token_s = last
        self._times.extend([round(at_s * 1e6) for at_s in times])

    def _take_times(self) -> tuple[array[int], array[int]]:
        """Times in microseconds and running totals (-1 unknown) so far, which it forgets."""
        times, totals = self._times, self._totals
        self._taken_chunks += len(times)
        self._times, self._totals = array("q"), None
        return times, array("q", (-1,)) * len(times) if totals is None else totals
