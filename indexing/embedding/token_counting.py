"""Count and cut by a model's tokens: the embedder's for chunks, a chat model's for budgets.

The embedder's are counted by its tokenizer.json, or estimated where there is none; a chat model's by tiktoken.
"""

import hashlib
import logging
import re
import tempfile
import threading
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import accumulate, takewhile
from pathlib import Path
from typing import Protocol, TypeAlias

import numpy as np
import tiktoken
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from connectors.errors import NotConfiguredError

CountTokens: TypeAlias = Callable[[str], int]


_ENCODING = "o200k_base"
# Under this name, the digest of its address, and with this content tiktoken 0.14 keeps it.
_VOCABULARY_FILE = "fb374d419588a4632f3f557e76b4b70aebbca790"
_VOCABULARY_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
_TIKTOKEN_FOLDER = Path(tempfile.gettempdir()) / "data-gym-cache"

_PIECE = re.compile(
    r"(?P<code>(?=[A-Za-z]+[0-9]|[0-9]+[A-Za-z])[A-Za-z0-9]+)|(?P<word>[A-Za-z]+)|(?P<digits>[0-9]+)"
    r"|(?P<blank>\s+)|(?P<mark>[!-/:-@\[-`{-~])|(?P<ideographs>[\u3400-\u9fff]+)|(?P<other>.)",
    re.DOTALL,
)

_WORD = re.compile(r"\S+|\s{2,}|[^\S ]")
"""No piece crosses its borders; a single blank is no token."""
_LONGEST_WORD = 40

_log = logging.getLogger(__name__)

_SURROGATE = re.compile(r"[\ud800-\udfff]")
_SPECIAL_TOKENS = 2
_TEXTS_AT_ONCE = 256
# A long text is tokenized in windows, so that memory depends on the window and not on the text.
_WINDOW = re.compile(r".{1,50000}(?:\s|\Z)|.{1,50000}", re.DOTALL)
MAX_CACHED_TEXTS = 4_096
"""More than two batches of documents have chunks, as a rule."""
CACHED_LENGTHS = range(100, 10_000)
"""In characters: what is shorter is tokenized again in no time, what is longer is no chunk."""
Ids: TypeAlias = NDArray[np.int32]


def chat_token_counter(vocabularies: Path = _TIKTOKEN_FOLDER) -> CountTokens:
    """Count by tiktoken's o200k_base, or by `estimated_tokens` where it cannot be had.

    Args:
        vocabularies: the folder where tiktoken looks for what it has fetched: its environment
            variable TIKTOKEN_CACHE_DIR, or this default. Nothing is fetched from here: a
            vocabulary that is not there, or is damaged, costs one warning and no waiting.
    """
    if not _has_vocabulary(vocabularies):
        _warn_once(vocabularies)
        return estimated_tokens
    encoding = tiktoken.get_encoding(_ENCODING)
    return lambda text: len(encoding.encode_ordinary(text))


def _has_vocabulary(folder: Path) -> bool:
    """Return whether tiktoken will find there what it needs; of a damaged file it would fetch another."""
    file = folder / _VOCABULARY_FILE
    if not file.is_file():
        return False
    return hashlib.sha256(file.read_bytes()).hexdigest() == _VOCABULARY_SHA256


@cache
def _warn_once(folder: Path) -> None:
    _log.warning(
        "No vocabulary of %s in %s: tokens for the language model are estimated, a little too many."
        " To count exactly, run `python -c \"import tiktoken; tiktoken.get_encoding('%s')\"`"
        " once with a network, with TIKTOKEN_CACHE_DIR set as for Quarry.",
        _ENCODING,
        folder,
        _ENCODING,
    )


def estimated_tokens(text: str) -> int:
    """Count at least as many tokens as o200k_base has for prose, code and scripts of all kinds.

    The rule: an ASCII word has a token for every four letters begun, a number one for every three
    digits begun, letters and digits together one each; a mark of ASCII one; white space one unless
    it is a single blank, which goes with the word that follows; five ideographs in a row have six,
    every other character has one, and two beyond the Basic Multilingual Plane.
    """
    return sum(
        _count_word(word) if len(word) <= _LONGEST_WORD else _count_ends(word)
        for word in _WORD.findall(text)
    )


def _count_ends(text: str) -> int:
    return len(estimated_ends(text))


_count_word = lru_cache(maxsize=16_384)(_count_ends)
"""Most words of a text stood in texts before. Nothing long is kept."""


def rough_tokens(text: str) -> int:
    """Count a token for every four bytes: for budgets where no language model will read the text."""
    return (len(text.encode(errors="replace")) + 3) // 4


def estimated_ends(text: str) -> list[int]:
    """Return the ends, in code points, of the tokens that `estimated_tokens` counts."""
    return list(_iterate_ends(text))


def _iterate_ends(text: str) -> Iterator[int]:
    return (end for piece in _PIECE.finditer(text) for end in _ends(piece))


def _ends(piece: re.Match[str]) -> Iterable[int]:
    start, end = piece.span()
    match piece.lastgroup:
        case "word":
            return (*range(start + 4, end, 4), end)
        case "digits":
            return (*range(start + 3, end, 3), end)
        case "code":
            return range(start + 1, end + 1)
        case "blank":
            return () if piece.group() == " " else (*range(start + 16, end, 16), end)
        case "ideographs":
            return sorted((*range(start + 1, end + 1), *range(start + 5, end + 1, 5)))
        case "mark":
            return (end,)
        case _:
            return (end,) if piece.group() <= "\uffff" else (end, end)


class TokenCounter(Protocol):
    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens of each text, special tokens included, nothing cut off."""
        ...

    def token_ends(self, text: str) -> Sequence[int]:
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

    def token_ends(self, text: str) -> Sequence[int]:
        found = array("I")
        for window in _WINDOW.finditer(replace_surrogates(text)):
            encoding = self._tokenizer.encode(window.group(), add_special_tokens=False)
            start = window.start()
            found.extend(accumulate((start + end for _, end in encoding.offsets), max))
        return found

    def encode(self, texts: Sequence[str], limit: int) -> list[Ids]:
        """Return token ids with special tokens; of a text with more than `limit` its beginning."""
        found = self._complete(texts, [self._cache.pop(text) for text in texts])
        return [self._cut(ids, limit) for ids in found]

    def _complete(self, texts: Sequence[str], known: Sequence[Ids | None]) -> list[Ids]:
        """Return the token ids of each text, and read only those that are not `known`."""
        unknown = [text for text, ids in zip(texts, known, strict=True) if ids is None]
        read = self._tokenize(unknown)
        return [np.array(next(read).ids, np.int32) if ids is None else ids for ids in known]

    def _tokenize(self, texts: Sequence[str]) -> Iterator[Encoding]:
        """Tokenize some texts at a time: what the tokenizer says of a token takes a hundred times its memory."""
        for first in range(0, len(texts), _TEXTS_AT_ONCE):
            some = texts[first : first + _TEXTS_AT_ONCE]
            yield from self._tokenizer.encode_batch_fast([*map(replace_surrogates, some)])

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

    def token_ends(self, text: str) -> Sequence[int]:
        return array("I", _iterate_ends(text))


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which no tokenizer accepts, without changing the length."""
    return _SURROGATE.sub("\ufffd", text)
