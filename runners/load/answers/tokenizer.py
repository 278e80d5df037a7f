"""Counting the tokens of a whole answer, for servers that count none.

Needs the optional package `tokenizers`. A text is counted once and as a whole: counting
piece by piece would count borders, and a tokenizer's start token at each piece, too.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from records.errors import BadInput

CountTokens = Callable[[str], int]


def load_tokenizer(path: Path) -> CountTokens:
    """Text to number of tokens by a Hugging Face tokenizer.json; BadInput when it cannot be."""
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise BadInput(
            "--tokenizer needs a package that is not installed: pip install impakt[tokenizer]"
        ) from error
    try:
        tokenizer = Tokenizer.from_buffer(path.read_bytes())
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror})") from error
    except Exception as error:  # the package raises bare Exception for what it cannot read
        raise BadInput(f"{path}: not a tokenizer.json ({error})") from error

    def count(text: str) -> int:
        return len(tokenizer.encode(text, add_special_tokens=False).ids)

    return count
