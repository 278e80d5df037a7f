"""Server-sent events out of bytes that arrive in any pieces.

Follows the WHATWG event stream grammar (CRLF, LF or CR, comments, several data
lines, an optional space after the colon), with one leniency: an event that the
stream's end cuts short of its blank line still counts.
"""

from __future__ import annotations

from typing import NamedTuple

# A line longer than this is no event of a language model.
MAX_LINE = 16 << 20


class LineTooLong(ValueError):
    """A line above MAX_LINE bytes."""


class Event(NamedTuple):
    """The data of one event, and its name when it has one."""

    data: bytes
    name: bytes | None = None


class EventParser:
    """Takes bytes as they arrive, gives the events that became whole with them."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self._name: bytes | None = None
        self._after_cr = False
        self._begun = False

    def feed(self, data: bytes) -> list[Event]:
        """The events that end within `data`."""
        if not data:
            return []
        if self._after_cr:
            # A CR ended the last line; an LF that follows belongs to it.
            self._after_cr = False
            data = data.removeprefix(b"\n")
        text = self._rest + data
        if not self._begun and len(text) >= 3:
            text, self._begun = text.removeprefix(b"\xef\xbb\xbf"), True
        self._after_cr = text.endswith(b"\r")
        lines = _lines(text)
        self._rest = lines.pop()
        if len(self._rest) > MAX_LINE:
            raise LineTooLong(f"a line of more than {MAX_LINE} bytes")
        return self._events(lines)

    def end(self) -> list[Event]:
        """The event that the end of the stream left without its blank line, if any."""
        lines = [self._rest.removeprefix(b"\xef\xbb\xbf") if not self._begun else self._rest, b""]
        self._rest = b""
        return self._events(lines)

    def _events(self, lines: list[bytes]) -> list[Event]:
        events = []
        for line in lines:
            if not line:
                if self._data:
                    events.append(Event(b"\n".join(self._data), self._name))
                self._data, self._name = [], None
                continue
            field, _, value = line.partition(b":")
            if field == b"data":
                self._data.append(value.removeprefix(b" "))
            elif field == b"event":
                self._name = value.removeprefix(b" ")
        return events


def _lines(text: bytes) -> list[bytes]:
    """Lines without their ends; the last is what has no end yet."""
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return text.split(b"\n")
