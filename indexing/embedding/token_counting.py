"""Count and cut by a model's tokens: the embedder's for chunks, a chat model's for budgets."""

import hashlib
import logging
import re
import tempfile
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import TypeAlias

import tiktoken

from indexing.embedding.embedder import Embedder

CountTokens: TypeAlias = Callable[[str], int]

CHARACTERS_A_TOKEN = 16
"""More than the tokens of any prose have on average: bounds what is looked at for a few tokens."""

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

_log = logging.getLogger(__name__)


def head(text: str, tokens: int, embedder: Embedder) -> str:
    """The beginning of `text` that has at most `tokens` tokens, special tokens not counted."""
    start = text[: tokens * CHARACTERS_A_TOKEN]
    ends = embedder.token_ends(start)
    return start if len(ends) <= tokens else start[: ends[tokens - 1] if tokens else 0]


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
    """Whether tiktoken will find there what it needs; of a damaged file it would fetch another."""
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
    """At least as many tokens as o200k_base has for prose, code and scripts of all kinds.

    The rule: an ASCII word has a token for every four letters begun, a number one for every three
    digits begun, letters and digits together one each; a mark of ASCII one; white space one unless
    it is a single blank, which goes with the word that follows; five ideographs in a row have six,
    every other character has one, and two beyond the Basic Multilingual Plane.
    """
    return len(estimated_ends(text))


def rough_tokens(text: str) -> int:
    """A token for every four bytes: for budgets where no language model will read the text."""
    return (len(text.encode(errors="replace")) + 3) // 4


def estimated_ends(text: str) -> list[int]:
    """The ends, in code points, of the tokens that `estimated_tokens` counts."""
    return [end for piece in _PIECE.finditer(text) for end in _ends(piece)]


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


def cut_to(text: str, tokens: int, count: CountTokens) -> str:
    """The beginning of `text` that counts at most `tokens`, cut after a word where it has blanks."""
    if tokens <= 0:
        return ""
    fits, end = 0, min(len(text), tokens)
    while end > fits and count(text[:end]) <= tokens:
        fits, end = end, min(len(text), 2 * end)
    while end - fits > 1:
        middle = (fits + end) // 2
        if count(text[:middle]) <= tokens:
            fits = middle
        else:
            end = middle
    return text if fits == len(text) else _whole_words(text, fits, tokens, count)


def _whole_words(text: str, end: int, tokens: int, count: CountTokens) -> str:
    """`text[:end]` without the word that `end` cuts in two, unless that word is most of it."""
    kept = text[:end]
    if not text[end].isspace():
        words = kept.rsplit(maxsplit=1)
        if len(words) == 2 and len(words[0]) >= end // 2 and not kept[-1].isspace():
            kept = kept[: end - len(words[1])]
    kept = kept.rstrip()
    return kept if count(kept) <= tokens else text[:end]
