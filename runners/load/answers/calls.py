"""The tool calls of an answer, put together from their pieces."""

from __future__ import annotations

from typing import Any

from runners.load.answers.dialect import Call, Delta, count_of, mended
from runners.load.answers.said import decoded, encoded

# Choice, then the server's index, its id, or the place in the list.
Key = tuple[int, int | str]


class _Kept:
    """One call so far."""

    __slots__ = ("arguments", "id", "name")

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments = bytearray()


class Calls:
    """Calls by choice and index. Without `keep` they are only told apart and counted."""

    __slots__ = ("_keep", "_kept", "_last")

    def __init__(self, keep: bool) -> None:
        self._keep = keep
        self._kept: dict[Key, _Kept] = {}
        self._last: dict[int, Key] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def take(self, delta: Delta, choice: int) -> bool:
        """Takes in a delta's pieces of calls; whether any was generated."""
        calls = delta.tool_calls or [Call(index=0, function=delta.function_call)]
        generated = False
        for position, call in enumerate(calls):
            function = call.function
            if function is None or not (function.name or function.arguments):
                continue
            key = self._key(call, choice, position, len(calls) == 1)
            self._add(key, call, function.name or "", function.arguments or "")
            self._last[choice] = key
            generated = True
        return generated

    def _key(self, call: Call, choice: int, position: int, alone: bool) -> Key:
        """Servers that leave out the index give an id to the first piece of each call."""
        index = count_of(call.index)
        if index is not None:
            return choice, index
        if call.id:
            return choice, call.id
        if alone and choice in self._last:
            return self._last[choice]
        return choice, position

    def _add(self, key: Key, call: Call, name: str, arguments: str) -> None:
        kept = self._kept.get(key)
        if kept is None:
            kept = self._kept[key] = _Kept()
        if not self._keep:
            return
        kept.id = kept.id or call.id or ""
        kept.name += name
        kept.arguments += encoded(arguments)

    def told(self) -> list[dict[str, Any]]:
        """The calls by choice and index, where they have one, else as they came."""
        order = sorted(
            enumerate(self._kept.items()),
            key=lambda at: (at[1][0][0], at[1][0][1] if isinstance(at[1][0][1], int) else at[0]),
        )
        return [
            {
                "id": mended(kept.id),
                "name": mended(kept.name),
                "arguments": decoded(kept.arguments),
            }
            for _, (_, kept) in order
        ]
