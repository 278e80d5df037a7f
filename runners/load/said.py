"""The text of an answer, kept until it is handed out or hashed."""

from __future__ import annotations

from io import StringIO

from runners.load.dialect import mended


class Said:
    """One channel (content or reasoning) of an answer: the first choice's text, and the others'."""

    __slots__ = ("_first", "_others", "_taken", "write")

    def __init__(self) -> None:
        self._first = StringIO()
        self._others: dict[int, StringIO] | None = None
        self._taken = False
        # Adds to the first choice's text; straight to the buffer, once a token.
        self.write = self._first.write

    def add(self, text: str, choice: int) -> None:
        """Adds to any choice's text."""
        if choice == 0:
            self.write(text)
            return
        if self._others is None:
            self._others = {}
        self._others.setdefault(choice, StringIO()).write(text)

    def take_first(self) -> str:
        """The first choice's text so far, which it forgets.

        Half a surrogate pair stays: a server may split one over two chunks.
        """
        text = self._first.getvalue()
        self._taken = self._taken or bool(text)
        self._first = StringIO()
        self.write = self._first.write
        if "\ud800" <= text[-1:] <= "\udbff":
            self.write(text[-1])
            text = text[:-1]
        return mended(text)

    def told(self) -> str | None:
        """What is kept: the first choice's text, then each other's on a line of its own."""
        first = self._first.getvalue()
        texts = [first] if first or self._taken else []
        others = self._others or {}
        texts += [others[choice].getvalue() for choice in sorted(others)]
        return mended("\n".join(texts)) or None
