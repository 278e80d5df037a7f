"""Keeping credentials out of evidence, also where a server echoes it piece by piece."""

from __future__ import annotations

from typing import Any

from runners.load.answers.answer import Part
from runners.load.hiding import Hider


class Redactor:
    """Strikes credentials out of one answer that is handed over in parts.

    The end of each part waits for the next, as it may be the beginning of one.
    """

    def __init__(self, hider: Hider) -> None:
        self._hider, self._most = hider, max(0, hider.longest - 1)
        self._text = self._reasoning = ""

    def part(self, part: Part) -> Part:
        """The part as it may be kept, less its last characters, which the next one has."""
        text, self._text = self._split(self._text + part.text)
        reasoning, self._reasoning = self._split(self._reasoning + part.reasoning)
        return part._replace(text=text, reasoning=reasoning)

    def _split(self, text: str) -> tuple[str, str]:
        text = self._hider.hide_in(text)
        at = max(0, len(text) - self._most)
        return text[:at], text[at:]

    def rest(self, output: dict[str, Any] | None) -> dict[str, Any] | None:
        """The last of the answer with what waited of the parts before it."""
        if output is None:
            return None
        for name, held in (("text", self._text), ("reasoning", self._reasoning)):
            if held:
                output[name] = held + (output[name] or "")
        hidden: dict[str, Any] = self._hider.hide_in(output)
        return hidden
