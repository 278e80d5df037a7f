"""A tokenizer counts whole texts, only where the server does not."""

from __future__ import annotations

import sys

import orjson
import pytest

from records.errors import BadInput
from runners.load.answers.answer import Answer
from runners.load.answers.tokenizer import load_tokenizer
from tests.runners.load.answers.test_answer import delta


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """A tokenizer.json of whole words that puts a start token before every text."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import WhitespaceSplit
    from tokenizers.processors import TemplateProcessing

    made = Tokenizer(WordLevel({"<s>": 0, "<unk>": 1, "one": 2, "two": 3}, unk_token="<unk>"))
    made.pre_tokenizer = WhitespaceSplit()
    made.post_processor = TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    made.save(str(path))
    return path


def answer_of(count, *chunks):
    answer = Answer("none", count)
    for i, chunk in enumerate(chunks):
        answer.event(orjson.dumps(chunk), float(i))
    return answer


def test_the_start_token_is_not_counted(words):
    assert load_tokenizer(words)("one two three") == 3


def test_a_whole_answer_is_counted_not_its_pieces(words):
    """ "on", "e tw", "o" are three chunks and, as pieces, five words; the whole is two."""
    count = load_tokenizer(words)
    counts = answer_of(count, *(delta(content=c) for c in ("on", "e tw", "o"))).counts()
    assert (counts["output_tokens"], counts["token_count_source"]) == (2, "tokenizer")


def test_reasoning_and_tool_calls_are_counted_with_the_text(words):
    """Reasoning 2, text 1, the call's name 1 and arguments 2: 6, of which 2 reasoning."""
    call = [{"index": 0, "id": "i", "function": {"name": "f", "arguments": "one two"}}]
    chunks = delta(reasoning="one two"), delta(content="one"), delta(tool_calls=call)
    counts = answer_of(load_tokenizer(words), *chunks).counts()
    assert (counts["output_tokens"], counts["reasoning_tokens"]) == (6, 2)


def test_the_servers_count_goes_first(words):
    usage = {"choices": [], "usage": {"completion_tokens": 9}}
    stop = {"choices": [{"delta": {}, "finish_reason": "stop"}]}
    counts = answer_of(load_tokenizer(words), delta(content="one"), stop, usage).counts()
    assert (counts["output_tokens"], counts["token_count_source"]) == (9, "usage")


def test_what_is_no_tokenizer_is_named(tmp_path):
    bad = tmp_path / "tokenizer.json"
    bad.write_text("{}")
    with pytest.raises(BadInput, match=r"tokenizer\.json: not a tokenizer\.json"):
        load_tokenizer(bad)
    with pytest.raises(BadInput, match=r"none\.json: cannot be read"):
        load_tokenizer(tmp_path / "none.json")


def test_the_missing_package_is_named(words, monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(BadInput, match=r"pip install impakt\[tokenizer\]"):
        load_tokenizer(words)
