"""Invented support cases: an evidence packet of numbered lines, and the request to summarise it.

All text is our own. A case of a given number, length and seed is always the
same; one word (between white space) stands for one token.
"""

from __future__ import annotations

import random

SHORTEST_PROMPT_WORDS = 80

_PRODUCTS = ("Orion Mail", "Harbor Sync", "Lumen Reports", "Quarry Backup", "Fathom Chat")
_SPEAKERS = ("Customer:", "Agent:", "System:", "Engineer:", "Customer:", "Agent:")
_OPENINGS = (
    "reports that", "confirms that", "notes that", "adds that", "sees in the log that",
    "says on the phone that", "writes by mail that",
)  # fmt: skip
_THINGS = (
    "the monthly export", "the shared inbox", "the mobile client", "the nightly backup",
    "the search index", "the invoice page", "the single sign-on", "the calendar sync",
    "the attachment preview", "the webhook to the ticket system",
)  # fmt: skip
_EVENTS = (
    "stopped at 80 percent", "answered with error 502", "took more than four minutes",
    "showed yesterday's data", "sent every message twice", "lost its connection twice",
    "asked for the password again", "ran without any error", "came back after a restart",
    "was slow for all users in one office",
)  # fmt: skip
_CIRCUMSTANCES = (
    "after the update on Tuesday", "since the certificate was renewed", "only on the second node",
    "when more than fifty users were online", "during the maintenance window",
    "although the quota was not reached", "before the cache was cleared",
    "while the replica was catching up", "from two different networks", "in the test tenant too",
)  # fmt: skip
_FOLLOW_UPS = (
    "A restart of the service did not change it.", "The log of that minute is attached.",
    "A colleague could repeat it.", "The rollback removed it.", "No data was lost.",
    "The customer agreed to close the case.", "A fix is planned for the next release.",
    "The timeout was raised to sixty seconds.",
)  # fmt: skip


def case_prompt(case: str, words: int, summary_words: int, seed: str) -> str:
    """The prompt of one case: exactly `words` words, asking for at most `summary_words`.

    ValueError below `SHORTEST_PROMPT_WORDS`, which the frame and two lines need.
    """
    if words < SHORTEST_PROMPT_WORDS:
        raise ValueError(f"a case needs {SHORTEST_PROMPT_WORDS} words, not {words}")
    rng = random.Random(seed)  # noqa: S311  text, not a secret
    head = f"Support case {case} about {rng.choice(_PRODUCTS)} is closed.\nEvidence:"
    tail = (
        f"Summarise the case in at most {summary_words} words and cite the evidence lines as [E1]."
    )
    room = words - len(head.split()) - len(tail.split())
    return "\n".join([head, *_evidence(room, rng), tail])


def _evidence(room: int, rng: random.Random) -> list[str]:
    """Numbered lines of exactly `room` words in all, each with its id as its first word."""
    lines: list[str] = []
    while room > 0:
        said = _line(rng)
        # The last line takes what is left, lest a stump of two words remain.
        if room < 2 * len(said):
            while len(said) < room - 1:
                said += _line(rng)
            said = said[: room - 1]
        lines.append(" ".join([f"[E{len(lines) + 1}]", *said]))
        room -= 1 + len(said)
    return lines


def _line(rng: random.Random) -> list[str]:
    said = (
        f"{rng.choice(_SPEAKERS)} {rng.choice(_OPENINGS)} {rng.choice(_THINGS)} "
        f"{rng.choice(_EVENTS)} {rng.choice(_CIRCUMSTANCES)}."
    )
    if rng.random() < 0.5:
        said += f" {rng.choice(_FOLLOW_UPS)}"
    return said.split()
