"""Server-sent events out of bytes that arrive in any pieces.

Follows the WHATWG event stream grammar (CRLF, LF or CR, comments, several data
lines, an optional space after the colon), with one leniency: an event that the
stream's end cuts short of its blank line still counts.
"""

from __future__ import annotations

from typing import NamedTuple

# A line longer than this is no event of a language model, nor is an event of several such.
MAX_LINE = 16 << 20
MAX_EVENT = 64 << 20
_BOM = b"\xef\xbb\xbf"


class LineTooLong(ValueError):
    """A line above MAX_LINE bytes, or an event above MAX_EVENT."""


class Event(NamedTuple):
    """The data of one event, and its name when it has one."""

    data: bytes
    name: bytes | None = None


class EventParser:
    """Takes bytes as they arrive, gives the events that became whole with them."""

    __slots__ = ("_after_cr", "_begun", "_data", "_name", "_pieces", "_size", "_waiting")

    def __init__(self) -> None:
        # The line that has no end yet, in the pieces it came in: joined once, when it has.
        self._pieces: list[bytes] = []
        self._waiting = 0
        self._data: list[bytes] = []
        self._size = 0
        self._name: bytes | None = None
        self._after_cr = False
        self._begun = False

    @property
    def between_events(self) -> bool:
        """Whether the next byte begins an event, with nothing of an earlier one waiting."""
        return not (self._pieces or self._data or self._after_cr or self._name is not None)

    def feed(self, data: bytes) -> list[Event]:
        """The events that end within `data`."""
        if self._after_cr and data:
            # A CR ended the last line; an LF that follows belongs to it.
            self._after_cr = False
            data = data.removeprefix(b"\n")
        if not data:
            return []
        if b"\n" not in data and b"\r" not in data:
            self._wait(data)
            return []
        if self._pieces:
            data = b"".join((*self._pieces, data))
            self._pieces = []
        self._waiting = 0
        self._after_cr = data.endswith(b"\r")
        lines = _lines(data)
        rest = lines.pop()
        if rest:
            self._wait(rest)
        return self._events(lines)

    def end(self) -> list[Event]:
        """The event that the end of the stream left without its blank line, if any."""
        lines = [b"".join(self._pieces), b""]
        self._pieces = []
        return self._events(lines)

    def _wait(self, data: bytes) -> None:
        self._pieces.append(data)
        self._waiting += len(data)
        if self._waiting > MAX_LINE:
            raise LineTooLong(f"a line of more than {MAX_LINE} bytes")

    def _events(self, lines: list[bytes]) -> list[Event]:
        if not self._begun:
            lines[0], self._begun = lines[0].removeprefix(_BOM), True
        events = []
        for line in lines:
            if not line:
                if self._data:
                    events.append(Event(b"\n".join(self._data), self._name))
                self._data, self._name, self._size = [], None, 0
                continue
            field, _, value = line.partition(b":")
            if field == b"data":
                self._keep(value.removeprefix(b" "))
            elif field == b"event":
                self._name = value.removeprefix(b" ")
        return events

    def _keep(self, value: bytes) -> None:
        self._data.append(value)
        self._size += len(value) + 1
        if self._size > MAX_EVENT:
            raise LineTooLong(f"an event of more than {MAX_EVENT} bytes")


def _lines(text: bytes) -> list[bytes]:
    """Lines without their ends; the last is what has no end yet."""
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return text.split(b"\n")
