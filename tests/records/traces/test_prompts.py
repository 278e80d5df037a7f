"""Synthetic prompts have exactly the asked number of words and share exactly the asked prefix."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from records.traces.prompts import WORDS, chat_messages, prompt_of, synthesise
from records.traces.schema import TraceRequest

BLOCKS = st.lists(
    st.fixed_dictionaries({"id": st.sampled_from("abc"), "tokens": st.integers(0, 30)}), max_size=4
)


@settings(deadline=None)  # a loaded machine is slow, not wrong
@given(blocks=BLOCKS, own=st.integers(0, 200), seed=st.text(max_size=8))
def test_the_number_of_words_is_exact_and_the_text_repeatable(blocks, own, seed):
    """One word per token, the same text for the same arguments."""
    total = own + sum(block["tokens"] for block in blocks)
    text = synthesise(total, blocks, seed)
    assert len(text.split()) == total
    assert text == synthesise(total, blocks, seed)


def test_shared_blocks_are_shared_text_and_nothing_else_is():
    """Two requests with block a begin alike for 50 words and differ right after."""
    block = [{"id": "a", "tokens": 50}]
    one, two = (synthesise(90, block, seed).split() for seed in ("r1", "r2"))
    assert one[:50] == two[:50]
    assert one[50:] != two[50:]
    # Without a block no more than a word or two agree by chance (1 in 520 each).
    other = synthesise(90, None, "r1").split(), synthesise(90, None, "r2").split()
    assert other[0][:3] != other[1][:3]


def test_the_word_list_is_plain():
    """Distinct lower-case ASCII words."""
    assert len(set(WORDS)) == len(WORDS) > 500
    assert all(word.isascii() and word.isalpha() and word.islower() for word in WORDS)


def test_each_dialect_gets_its_form():
    """Completions get text, chat gets messages, whichever the trace gives."""
    text = TraceRequest(id="1", at_s=0, prompt="hi")
    chat = TraceRequest(id="2", at_s=0, messages=[{"role": "user", "content": "hi"}])
    length = TraceRequest(id="3", at_s=0, prompt_tokens=4)
    assert prompt_of(text, "completions") == "hi"
    assert prompt_of(text, "chat") == [{"role": "user", "content": "hi"}]
    assert prompt_of(chat, "chat") == chat.messages
    assert prompt_of(chat, "completions") == "user: hi"
    assert prompt_of(length, "completions") == synthesise(4, None, "3")
    assert chat_messages(length)[0]["content"] == synthesise(4, None, "3")


def test_a_prompt_is_the_same_in_another_process():
    """Pinned words: prompts do not depend on hash seeds or the platform."""
    assert synthesise(5, [{"id": "a", "tokens": 2}], "1") == "never lift value surface home"
