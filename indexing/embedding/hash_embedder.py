"""An embedder without a model: for tests, exact and quick, and stricter than a real one."""

import re
import unicodedata
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from indexing.embedding.embedder import EmbedderIdentity, Vector, Vectors
from indexing.runtime.deadline import Deadline

_SPECIAL_TOKENS = 2
# Ideographs, kana and Hangul one by one, other words in pieces of at most eight characters.
_TOKEN = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W\u3040-\u9fff\uac00-\ud7af]{1,8}|[^\w\s]|\w"
)
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+")
_SHORT_WORD = 3


@dataclass(frozen=True)
class HashingEmbedder:
    """Words and pieces of words, hashed to signed places of a vector of length 1.

    Texts that share words, or words that share most of their letters, have similar vectors, in
    every script; nothing else is understood. The method is feature hashing (Weinberger et al.,
    "Feature Hashing for Large Scale Multitask Learning", ICML 2009).

    Passages that are blank or longer than `max_tokens` are refused (ValueError), where a real
    model would embed noise or cut off; queries are cut off as everywhere.
    """

    dimension: int = 256
    max_tokens: int = 256

    @cached_property
    def identity(self) -> EmbedderIdentity:
        return EmbedderIdentity(
            model="hashing", version="1", precision="f32", dimension=self.dimension
        )

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(self.token_ends(text)) + _SPECIAL_TOKENS for text in texts]

    def token_ends(self, text: str) -> list[int]:
        return [match.end() for match in _TOKEN.finditer(text)]

    def embed_queries(self, texts: Sequence[str], deadline: Deadline) -> Vectors:
        deadline.check()
        return self._embed([self._cut(text) for text in texts])

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        for text, tokens in zip(texts, self.count_tokens(texts), strict=True):
            if tokens > self.max_tokens:
                raise ValueError(
                    f"a passage of {tokens} tokens, and the limit is {self.max_tokens}: {text[:60]!r}"
                )
        return self._embed(texts)

    def _cut(self, text: str) -> str:
        ends = self.token_ends(text)[: self.max_tokens - _SPECIAL_TOKENS]
        return text[: ends[-1]] if ends else text

    def _embed(self, texts: Sequence[str]) -> Vectors:
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in zip(vectors, texts, strict=True):
            if not text.strip():
                raise ValueError("a blank text has no vector")
            _fill(row, text)
        return vectors


def _fill(vector: Vector, text: str) -> None:
    """Set a row of zeros to the unit vector of `text`."""
    for feature, weight in _features(text):
        place = _digest(feature)
        vector[place % len(vector)] += weight if place & 0x8000_0000 else -weight
    if not vector.any():
        vector[_digest(text) % len(vector)] = 1
    vector /= np.linalg.norm(vector)


def _digest(text: str) -> int:
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


def _features(text: str) -> Iterator[tuple[str, float]]:
    """Yield words and the three-letter pieces of long ones, with weights: short words, mostly grammar, weigh little."""
    words = _WORD.findall(_folded(text)) or _TOKEN.findall(text)
    for word in words:
        yield word, 0.3 if word.isascii() and len(word) <= _SHORT_WORD else 1.0
        for i in range(len(word) - _SHORT_WORD + 1):
            yield f"~{word[i : i + _SHORT_WORD]}", 0.3
    for first, second in pairwise(words):
        if not first.isascii():
            yield first + second, 1.0


def _folded(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    bare = "".join(c for c in decomposed if not unicodedata.combining(c))
    return unicodedata.normalize("NFKC", bare)
