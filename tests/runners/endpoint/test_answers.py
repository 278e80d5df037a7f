"""An answer has exactly the words it should, cites its evidence, and depends on nothing else."""

from __future__ import annotations

import re

import pytest

from runners.endpoint.answers import Answer, Ask, answer_key, compose
from runners.endpoint.profile import Profile

PACKET = """Summarise the case in at most 60 words and cite as in [E9].
[E1] Customer cannot log in since the Monday release
[E2] Support reset the password twice, which did not help [E7]
  [E3] Engineering rolled back the session service at 14:20
"""


def answer(
    text: str = PACKET, key: str = "id|r1", max_tokens: int | None = 200, ignore_eos: bool = False,
    **fields: object,
) -> Answer:  # fmt: skip
    return compose(Ask(text, max_tokens, ignore_eos), Profile(**fields), 1, key)


def citations(words: list[str]) -> list[str]:
    return [word for word in words if re.fullmatch(r"\[\w+\]", word)]


def test_a_summary_cites_each_evidence_line_and_nothing_else() -> None:
    words = answer().words
    # [E9] stands in a sentence and [E7] inside a line: neither begins a line.
    assert citations(words) == ["[E1]", "[E2]", "[E3]"]
    assert " ".join(words[:9]) == "Customer cannot log in since the Monday release the"
    assert words[-1] == "[E3]"


@pytest.mark.parametrize("key", [f"id|r{i}" for i in range(40)])
def test_an_asked_length_is_approached_to_between_70_and_95_percent(key: str) -> None:
    got = answer(key=key)
    # 60 words: .70 * 60 = 42, .95 * 60 = 57.
    assert 42 <= len(got.words) <= 57
    assert got.finish_reason == "stop"


def test_an_overlong_answer_exceeds_the_asked_words() -> None:
    lengths = [len(answer(key=f"id|r{i}", overlong_share=1.0).words) for i in range(40)]
    # 10 to 40 % more than 60.
    assert min(lengths) >= 66
    assert max(lengths) <= 84


def test_an_uncited_answer_has_the_same_length_and_no_citation() -> None:
    cited, uncited = answer(), answer(uncited_share=1.0)
    assert len(cited.words) == len(uncited.words)
    assert citations(uncited.words) == []


def test_the_shares_hold_over_many_answers_and_do_not_move_one_another() -> None:
    got = [answer(key=f"id|r{i}", uncited_share=0.2, overlong_share=0.1) for i in range(2000)]
    uncited = [not citations(a.words) for a in got]
    overlong = [len(a.words) > 60 for a in got]
    # Binomial, n = 2000: sd .0089 at .2 and .0067 at .1; four of them.
    assert sum(uncited) / 2000 == pytest.approx(0.2, abs=0.036)
    assert sum(overlong) / 2000 == pytest.approx(0.1, abs=0.027)
    alone = [not citations(answer(key=f"id|r{i}", uncited_share=0.2).words) for i in range(2000)]
    assert alone == uncited


@pytest.mark.parametrize("cap", [1, 5, 41])
def test_the_token_limit_cuts_and_says_so(cap: int) -> None:
    got = answer(max_tokens=cap)
    assert (len(got.words), got.finish_reason) == (cap, "length")


@pytest.mark.parametrize(
    ("max_tokens", "ignore_eos", "count", "reason"),
    [
        (16, False, 16, "length"),
        (None, False, 128, "stop"),
        (None, True, 128, "length"),
        (300, True, 300, "length"),
    ],
)
def test_without_an_asked_length_the_limit_is_the_length(
    max_tokens: int | None, ignore_eos: bool, count: int, reason: str
) -> None:
    got = answer("just words", max_tokens=max_tokens, ignore_eos=ignore_eos)
    assert (len(got.words), got.finish_reason) == (count, reason)


def test_ignore_eos_overrules_the_asked_words() -> None:
    assert len(answer(max_tokens=150, ignore_eos=True, overlong_share=1.0).words) == 150


@pytest.mark.parametrize("words", [1, 2, 3, 9, 17, 400])
def test_any_asked_length_gives_whole_words_and_a_citation_last(words: int) -> None:
    text = PACKET.replace("60 words", f"{words} words")
    got = answer(text, max_tokens=None).words
    assert max(1, round(0.7 * words)) <= len(got) <= max(1, round(0.95 * words))
    assert all(word == word.strip() and word for word in got)
    assert citations(got[-1:])


def test_the_same_request_gives_the_same_answer_and_another_gives_another() -> None:
    assert answer(key="id|a") == answer(key="id|a")
    assert answer(key="id|a") != answer(key="id|b")
    assert answer("filler", key="id|a").words != answer("filler", key="id|c").words


def test_a_retry_is_the_same_request() -> None:
    assert answer_key("r7#2", "x") == answer_key("r7", "y") != answer_key("r8", "x")


def test_without_a_request_id_the_prompt_fixes_the_answer() -> None:
    assert answer_key(None, "x") == answer_key("", "x") != answer_key(None, "y")
