"""The text of an answer, kept until it is handed out or hashed."""

from __future__ import annotations

from runners.load.answers.dialect import mended


class Said:
    """One channel (content or reasoning) of an answer: the first choice's text, and the others'.

    Kept as UTF-8, at one byte a letter: a list of the pieces would take fifty a token.
    """

    __slots__ = ("_first", "_others", "_taken")

    def __init__(self) -> None:
        self._first = bytearray()
        self._others: dict[int, bytearray] | None = None
        self._taken = False

    def write(self, text: str) -> None:
        """Adds to the first choice's text. Once a token."""
        self._first += encoded(text)

    def add(self, text: str, choice: int) -> None:
        """Adds to another choice's text."""
        if self._others is None:
            self._others = {}
        self._others.setdefault(choice, bytearray()).extend(encoded(text))

    def take_first(self) -> str:
        """The first choice's text so far, which it forgets.

        Half a surrogate pair stays: a server may split one over two chunks.
        """
        text = self._first.decode("utf-8", "surrogatepass")
        self._taken = self._taken or bool(text)
        self._first = bytearray()
        if "\ud800" <= text[-1:] <= "\udbff":
            self.write(text[-1])
            text = text[:-1]
        return mended(text)

    def told(self) -> str | None:
        """What is kept: the first choice's text, then each other's on a line of its own."""
        texts = [decoded(self._first)] if self._first or self._taken else []
        others = self._others or {}
        texts += [decoded(others[choice]) for choice in sorted(others)]
        return "\n".join(texts) or None


def encoded(text: str) -> bytes:
    """UTF-8, in which half a surrogate pair may stand alone."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def decoded(data: bytes | bytearray) -> str:
    """The text, its surrogate pairs put together."""
    return mended(data.decode("utf-8", "surrogatepass"))
