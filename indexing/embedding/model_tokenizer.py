"""A model's own tokens, by its tokenizer.json; or, where there is none, an estimate."""

import re
import threading
from collections.abc import Sequence
from itertools import accumulate, takewhile
from pathlib import Path
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from connectors.errors import ActionRequiredError
from indexing.embedding.token_counting import estimated_ends

_SURROGATE = re.compile(r"[\ud800-\udfff]")
_SPECIAL_TOKENS = 2
# A long text is read in windows, so that memory goes with the window and not with the text.
_WINDOW = re.compile(r".{1,50000}(?:\s|\Z)|.{1,50000}", re.DOTALL)

MOST_REMEMBERED = 4_096
"""Texts; more than two batches of documents have chunks, as a rule."""
REMEMBERED = range(100, 10_000)
"""Characters; what is shorter is read again in no time, what is longer is no chunk."""

Ids: TypeAlias = NDArray[np.int32]


class Tokenization(Protocol):
    def counts(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, special tokens included, nothing cut off."""
        ...

    def ends(self, text: str) -> list[int]:
        """The end of each token in code points, ascending, without special tokens."""
        ...


class Counted:
    """The tokens of texts that were counted, until the call that embeds them takes them. Thread-safe.

    To read tokens is a tenth of the work of embedding them, and a chunk is counted right before.
    """

    def __init__(self) -> None:
        self._ids: dict[str, Ids] = {}
        self._lock = threading.Lock()

    def keep(self, text: str, ids: Ids) -> None:
        if len(text) not in REMEMBERED:
            return
        with self._lock:
            self._ids[text] = ids
            if len(self._ids) > MOST_REMEMBERED:
                del self._ids[next(iter(self._ids))]

    def known(self, text: str) -> Ids | None:
        return self._ids.get(text)

    def taken(self, text: str) -> Ids | None:
        """The same, and forgotten."""
        with self._lock:
            return self._ids.pop(text, None)


class ModelTokenizer:
    """Thread-safe: nothing of the tokenizer is changed after it was made."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer
        added = tokenizer.encode("a").special_tokens_mask
        self._closing = sum(1 for _ in takewhile(bool, reversed(added)))
        self._counted = Counted()

    @classmethod
    def from_file(cls, path: Path) -> "ModelTokenizer":
        """Raises ActionRequiredError for a file that is not there or is no tokenizer."""
        if not path.is_file():
            raise ActionRequiredError(f"No tokenizer at {path}: give the path of a tokenizer.json.")
        return cls(Tokenizer.from_file(str(path)))

    def counts(self, texts: Sequence[str]) -> list[int]:
        found = self._ids(texts, [self._counted.known(text) for text in texts])
        for text, ids in zip(texts, found, strict=True):
            self._counted.keep(text, ids)
        return [len(ids) for ids in found]

    def ends(self, text: str) -> list[int]:
        found: list[int] = []
        for window in _WINDOW.finditer(well_formed(text)):
            encoding = self._tokenizer.encode(window.group(), add_special_tokens=False)
            start = window.start()
            found += [start + end for _, end in encoding.offsets]
        return list(accumulate(found, max))

    def ids(self, texts: Sequence[str], limit: int) -> list[Ids]:
        """Token ids with special tokens; of a text with more than `limit` its beginning."""
        found = self._ids(texts, [self._counted.taken(text) for text in texts])
        return [self._cut(ids, limit) for ids in found]

    def _ids(self, texts: Sequence[str], known: Sequence[Ids | None]) -> list[Ids]:
        """Of each text; only those that are not `known` are read."""
        unknown = [text for text, ids in zip(texts, known, strict=True) if ids is None]
        read = iter(self._encode(unknown))
        return [np.array(next(read).ids, np.int32) if ids is None else ids for ids in known]

    def _encode(self, texts: Sequence[str]) -> list[Encoding]:
        return self._tokenizer.encode_batch_fast([well_formed(text) for text in texts])

    def _cut(self, ids: Ids, limit: int) -> Ids:
        """What follows the text (a separator, an end of sequence) stays at the end."""
        if len(ids) <= limit:
            return ids
        closing = ids[len(ids) - self._closing :]
        return np.concatenate([ids[: limit - len(closing)], closing])


class EstimatedTokens:
    """For a model whose tokenizer is not at hand: rather too many than too few."""

    def counts(self, texts: Sequence[str]) -> list[int]:
        return [len(self.ends(text)) + _SPECIAL_TOKENS for text in texts]

    def ends(self, text: str) -> list[int]:
        return estimated_ends(text)


def well_formed(text: str) -> str:
    """Without lone surrogates, which no tokenizer takes; of the same length."""
    return _SURROGATE.sub("\ufffd", text)
