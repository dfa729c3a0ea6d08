"""A model's own tokens, by its tokenizer.json; or, where there is none, an estimate."""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, takewhile
from pathlib import Path
from typing import Protocol

from tokenizers import Encoding, Tokenizer

from connectors.errors import AskTheOwner
from indexing.tokens import estimated_ends

_SURROGATE = re.compile(r"[\ud800-\udfff]")
_SPECIAL_TOKENS = 2
# A long text is read in windows, so that memory goes with the window and not with the text.
_WINDOW = re.compile(r".{1,50000}(?:\s|\Z)|.{1,50000}", re.DOTALL)


class Tokenization(Protocol):
    def counts(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, special tokens included, nothing cut off."""
        ...

    def ends(self, text: str) -> list[int]:
        """The end of each token in code points, ascending, without special tokens."""
        ...


class ModelTokenizer:
    """Thread-safe: nothing of the tokenizer is changed after it was made."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer
        added = tokenizer.encode("a").special_tokens_mask
        self._closing = sum(1 for _ in takewhile(bool, reversed(added)))

    @classmethod
    def from_file(cls, path: Path) -> "ModelTokenizer":
        """Raises AskTheOwner for a file that is not there or is no tokenizer."""
        if not path.is_file():
            raise AskTheOwner(f"No tokenizer at {path}: give the path of a tokenizer.json.")
        return cls(Tokenizer.from_file(str(path)))

    def counts(self, texts: Sequence[str]) -> list[int]:
        return [len(encoding.ids) for encoding in self._encode(texts)]

    def ends(self, text: str) -> list[int]:
        return list(accumulate(self._raw_ends(text), max))

    def ids(self, texts: Sequence[str], limit: int) -> list[list[int]]:
        """Token ids with special tokens; of a text with more than `limit` its beginning."""
        return [self._cut(encoding.ids, limit) for encoding in self._encode(texts)]

    def _encode(self, texts: Sequence[str]) -> list[Encoding]:
        return self._tokenizer.encode_batch_fast([well_formed(text) for text in texts])

    def _cut(self, ids: list[int], limit: int) -> list[int]:
        """What follows the text (a separator, an end of sequence) stays at the end."""
        if len(ids) <= limit:
            return ids
        closing = ids[len(ids) - self._closing :]
        return ids[: limit - len(closing)] + closing

    def _raw_ends(self, text: str) -> Iterator[int]:
        for window in _WINDOW.finditer(well_formed(text)):
            encoding = self._tokenizer.encode(window.group(), add_special_tokens=False)
            for _, end in encoding.offsets:
                yield window.start() + end


class EstimatedTokens:
    """For a model whose tokenizer is not at hand: rather too many than too few."""

    def counts(self, texts: Sequence[str]) -> list[int]:
        return [len(self.ends(text)) + _SPECIAL_TOKENS for text in texts]

    def ends(self, text: str) -> list[int]:
        return estimated_ends(text)


def well_formed(text: str) -> str:
    """Without lone surrogates, which no tokenizer takes; of the same length."""
    return _SURROGATE.sub("\ufffd", text)
