"""Do megabyte prompts and endless answers change the times of the other streams?"""

from __future__ import annotations

import numpy as np

from benchmarks.load import print_part
from benchmarks.load.measure import FAST, Ask, default_transport, run_ours
from benchmarks.load.stamps import joined_ms
from benchmarks.table import Row, row

STREAMS, TOKENS, REPEATS = 50, 500, 2
LONG_PROMPT, LONG_ANSWER = 200_000, 32_000


def rows() -> list[Row]:
    """Time-stamp error of 50 usual streams, alone and with the long ones among them."""
    name = default_transport()
    alone, among, shares = [], [], {"alone": 0.0, "among": 0.0}
    for _ in range(REPEATS):
        errors, shares["alone"] = _errors_ms(name, usual())
        alone.append(errors)
        errors, shares["among"] = _errors_ms(name, usual() + long_ones(name))
        among.append(errors)
    found = []
    for at, said in ((50, "median"), (99, "p99")):
        quiet = [float(np.percentile(errors, at)) for errors in alone]
        mixed = [float(np.percentile(errors, at)) for errors in among]
        found += [
            row(f"impakt, {name}: {STREAMS} streams alone, error {said}", quiet, "ms",
                note=f"{shares['alone']:.1%} of tokens shared a receive"),
            row(f"impakt, {name}: the same among long ones, error {said}", mixed, "ms",
                ("alone", quiet), note=f"{shares['among']:.1%} of tokens shared a receive"),
        ]  # fmt: skip
    return found


def usual() -> list[Ask]:
    return [Ask(f"usual-{i}", at_s=i / 200, tokens=TOKENS) for i in range(STREAMS)]


def long_ones(name: str) -> list[Ask]:
    """Four prompts of about a megabyte and two answers of 32,000 tokens, in the same seconds."""
    # What a slow transport cannot take in anyway would only make this slow.
    answer = LONG_ANSWER if name == FAST else LONG_ANSWER // 16
    prompts = [
        Ask(f"prompt-{i}", at_s=0.5 * (i + 1), prompt_tokens=LONG_PROMPT, tokens=20)
        for i in range(4)
    ]
    answers = [Ask(f"answer-{i}", at_s=0.1, tokens=answer, itl_ms=2400 / answer) for i in range(2)]
    return sorted(prompts + answers, key=lambda ask: ask.at_s)


def _errors_ms(name: str, asks: list[Ask]) -> tuple[np.ndarray, float]:
    run = run_ours(sorted(asks, key=lambda ask: ask.at_s), name)
    errors, shared = joined_ms(run, "usual")
    return errors, float(shared.mean())


if __name__ == "__main__":
    print_part("mixed")
