"""Counts the tokens of texts by a model's tokenizer.json, or estimates them where there is none."""

import re
import threading
from collections.abc import Sequence
from itertools import accumulate, takewhile
from pathlib import Path
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from connectors.errors import NotConfiguredError
from indexing.embedding.token_counting import estimated_ends

_SURROGATE = re.compile(r"[\ud800-\udfff]")
_SPECIAL_TOKENS = 2
# A long text is tokenized in windows, so that memory depends on the window and not on the text.
_WINDOW = re.compile(r".{1,50000}(?:\s|\Z)|.{1,50000}", re.DOTALL)

MAX_CACHED_TEXTS = 4_096
"""More than two batches of documents have chunks, as a rule."""
CACHED_LENGTHS = range(100, 10_000)
"""In characters: what is shorter is tokenized again in no time, what is longer is no chunk."""

Ids: TypeAlias = NDArray[np.int32]


class TokenCounter(Protocol):
    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens of each text, special tokens included, nothing cut off."""
        ...

    def token_ends(self, text: str) -> list[int]:
        """Return the end of each token in code points, ascending, without special tokens."""
        ...


class TokenIdCache:
    """Keeps the tokens of texts that were counted until they are embedded. Thread-safe.

    Tokenizing is a tenth of the work of embedding, and a chunk is counted right before.
    """

    def __init__(self) -> None:
        self._ids: dict[str, Ids] = {}
        self._lock = threading.Lock()

    def put(self, text: str, ids: Ids) -> None:
        if len(text) not in CACHED_LENGTHS:
            return
        with self._lock:
            self._ids[text] = ids
            if len(self._ids) > MAX_CACHED_TEXTS:
                del self._ids[next(iter(self._ids))]

    def get(self, text: str) -> Ids | None:
        return self._ids.get(text)

    def pop(self, text: str) -> Ids | None:
        """Return the tokens of a text, and forget them."""
        with self._lock:
            return self._ids.pop(text, None)


class ModelTokenizer:
    """A TokenCounter by a model's own tokenizer. Thread-safe, since nothing changes after it is made."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer
        added = tokenizer.encode("a").special_tokens_mask
        self._closing = sum(1 for _ in takewhile(bool, reversed(added)))
        self._cache = TokenIdCache()

    @classmethod
    def from_file(cls, path: Path) -> "ModelTokenizer":
        """Read a tokenizer.json.

        Raises:
            NotConfiguredError: there is no such file.
        """
        if not path.is_file():
            raise NotConfiguredError(f"No tokenizer at {path}: give the path of a tokenizer.json.")
        return cls(Tokenizer.from_file(str(path)))

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        found = self._complete(texts, [self._cache.get(text) for text in texts])
        for text, ids in zip(texts, found, strict=True):
            self._cache.put(text, ids)
        return [len(ids) for ids in found]

    def token_ends(self, text: str) -> list[int]:
        found: list[int] = []
        for window in _WINDOW.finditer(replace_surrogates(text)):
            encoding = self._tokenizer.encode(window.group(), add_special_tokens=False)
            start = window.start()
            found += [start + end for _, end in encoding.offsets]
        return list(accumulate(found, max))

    def encode(self, texts: Sequence[str], limit: int) -> list[Ids]:
        """Return token ids with special tokens; of a text with more than `limit` its beginning."""
        found = self._complete(texts, [self._cache.pop(text) for text in texts])
        return [self._cut(ids, limit) for ids in found]

    def _complete(self, texts: Sequence[str], known: Sequence[Ids | None]) -> list[Ids]:
        """Return the token ids of each text, and read only those that are not `known`."""
        unknown = [text for text, ids in zip(texts, known, strict=True) if ids is None]
        read = iter(self._tokenize(unknown))
        return [np.array(next(read).ids, np.int32) if ids is None else ids for ids in known]

    def _tokenize(self, texts: Sequence[str]) -> list[Encoding]:
        return self._tokenizer.encode_batch_fast([replace_surrogates(text) for text in texts])

    def _cut(self, ids: Ids, limit: int) -> Ids:
        """Cut a text off, and keep at the end what follows it (a separator, an end of sequence)."""
        if len(ids) <= limit:
            return ids
        closing = ids[len(ids) - self._closing :]
        return np.concatenate([ids[: limit - len(closing)], closing])


class EstimatedTokenCounter:
    """Estimates tokens where a model's tokenizer is not at hand: rather too many than too few."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(self.token_ends(text)) + _SPECIAL_TOKENS for text in texts]

    def token_ends(self, text: str) -> list[int]:
        return estimated_ends(text)


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which no tokenizer accepts, without changing the length."""
    return _SURROGATE.sub("\ufffd", text)
