"""A check passes exactly what its parameters allow, and says why it fails the rest."""

from __future__ import annotations

import pytest

from records.acceptance.checks import CHECKS, Context
from records.acceptance.rubric import automatic_criteria
from records.errors import BadWorkload

PROMPT = Context(
    "Support case C1 is closed.\nEvidence:\n[E1] Customer: it broke.\n[E2] Agent: fixed.\n"
    "Summarise in at most 5 words and cite the evidence lines as [E9]."
)


def run(name, output, context=PROMPT, **params):
    check, check_params = CHECKS[name]
    check_params(params)
    return check(output, context, params)


@pytest.mark.parametrize(
    ("output", "params", "passed", "reason"),
    [
        ("one two three", {"max_words": 3}, True, None),
        ("one two three four", {"max_words": 3}, False, "4 words, at most 3"),
        ("one", {"max_words": 3, "min_words": 2}, False, "1 words, at least 2"),
        ("", {"max_words": 3}, True, None),
        ("a\nb\t c  d e", {"max_words_from_prompt": r"at most (\d+) words"}, True, None),
        ("a b c d e f", {"max_words_from_prompt": r"at most (\d+) words"}, False,
         "6 words, at most 5"),
        ("a", {"max_words_from_prompt": r"up to (\d+)"}, False, "the prompt names no word limit"),
    ],
)  # fmt: skip
def test_length_counts_words_against_its_limits(output, params, passed, reason):
    result = run("length", output, **params)
    assert (result.passed, result.reason) == (passed, reason)


@pytest.mark.parametrize("limit", ["\u00b2", "9" * 5000, "many", ""])
def test_a_limit_that_is_no_number_of_words_fails_the_answer(limit):
    """A superscript two is a digit to Python but no number; 5,000 digits are none either."""
    prompt = Context(f"at most {limit} words")
    result = run("length", "a", prompt, max_words_from_prompt=r"at most (\S*) words")
    assert (result.passed, result.reason) == (False, "the prompt names no word limit")


def test_length_fails_when_the_prompt_is_not_known():
    result = run("length", "a", Context(None), max_words_from_prompt=r"(\d+)")
    assert not result.passed


@pytest.mark.parametrize(
    ("output", "params", "passed", "reason"),
    [
        ("It broke [E1].", {}, True, None),
        ("It broke [E1, E2].", {"min": 2}, True, None),
        ("It broke [E1] [E1].", {"min": 2}, False, "1 citations, at least 2"),
        ("It broke.", {}, False, "0 citations, at least 1"),
        ("It broke.", {"min": 0}, True, None),
        ("It broke [E1] [E7].", {}, False, "[E7] is not in the evidence of the prompt"),
        # [E9] stands in the prompt, but in the instruction: it opens no line.
        ("It broke [E9].", {}, False, "[E9] is not in the evidence of the prompt"),
        ("It broke E1 (1).", {}, False, "0 citations, at least 1"),
    ],
)
def test_citations_must_resolve_to_a_line_of_the_prompt(output, params, passed, reason):
    result = run("citations", output, **params)
    assert (result.passed, result.reason) == (passed, reason)


@pytest.mark.parametrize(
    ("criterion", "field"),
    [
        ({"check": "lenght"}, "rubric.criteria[0].check"),
        ({"check": "length"}, "rubric.criteria[0].params.max_words"),
        ({"check": "length", "params": {"max_words": -1}}, "params.max_words"),
        ({"check": "length", "params": {"max_words": True}}, "params.max_words"),
        ({"check": "length", "params": {"max_words": 2, "min_words": 3}}, "params.min_words"),
        ({"check": "length", "params": {"max_words": 2, "max": 3}}, "params.max"),
        ({"check": "length", "params": {"max_words_from_prompt": "("}}, "max_words_from_prompt"),
        ({"check": "length", "params": {"max_words_from_prompt": "a"}}, "max_words_from_prompt"),
        ({"check": "length", "params": {"max_words_from_prompt": 7}}, "max_words_from_prompt"),
        ({"check": "citations", "params": {"min": "one"}}, "params.min"),
        ({"check": "citations", "params": [1]}, "rubric.criteria[0].params"),
    ],
)
def test_a_rubric_that_cannot_be_run_names_file_and_field(criterion, field):
    rubric = {"criteria": [{"id": "a", **criterion}]}
    with pytest.raises(BadWorkload) as caught:
        automatic_criteria(rubric, "w.toml")
    assert "w.toml" in str(caught.value)
    assert field in str(caught.value)


def test_criteria_that_people_judge_are_left_to_them():
    assert automatic_criteria({"criteria": [{"id": "a", "check": "human"}]}, "w") == []
    assert automatic_criteria(None, "w") == []
