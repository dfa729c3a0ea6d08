"""Decide whether a sentence makes a claim, and split it into parts that each need evidence."""

from collections.abc import Sequence

import regex

from backend.chat.citations.evidence import content_words
from indexing.text.normalization import fold
from indexing.text.tokenizer import plain_words

MIN_UNIT_WORDS = 2
_BREAK = regex.compile(
    r"[;:]\s+|[()]|\s[–—-]\s|—|,\s+(?:and |but |or |so |yet )?"
    r"|\s(?:and|but|while|whereas|which|who|because|although|though|unless|despite|thanks to|due to|owing to"
    r"|caused by|resulting in|leading to|so that|in order to|in spite of|instead of|at the expense of"
    r"|after|before|since|until|as soon as|provided that|according to)\s"
    r"|[，；、：]"
)
_PREPOSITION = regex.compile(
    r"\s(?=(?:with|without|by|under|during|for|from|in|on|at|through|via|to|into|against|among|within|over|about|as|than)\s)"
)
LONG_UNIT_WORDS = 4
_REFERRING_LIST = """
source sources reference references ref refs see also cf document documents page pages citation
citations cited cites note notes noted says said states stated mentions mentioned according
short summary however therefore moreover additionally link links more details detail information
info here read further yes no ok okay quelle quellen siehe source voir fuente fuentes ver 来源 來源
参考 參考 参照 出典 资料 参见 见 見
"""
_REFERRING = frozenset(fold(word) for word in _REFERRING_LIST.split())
_HAN = regex.compile(r"\p{Han}")
_REFERRING_IN_HAN = sorted(filter(_HAN.match, _REFERRING), key=len, reverse=True)
_MARKER = regex.compile(r"\[?\[\d+\]\]?")


def find_claimed_words(sentence: str) -> frozenset[str]:
    """Return the content words by which a sentence states something.

    A list of sources, a question, and a line that announces what follows have none.
    """
    if sentence.rstrip(' *_"”').endswith(("?", "？", ":", "：")):
        return frozenset()
    said = _MARKER.sub(" ", sentence)
    return content_words(" ".join(word for word in _words(said) if word not in _REFERRING))


def _words(text: str) -> list[str]:
    for word in _REFERRING_IN_HAN:
        text = text.replace(word, " ")
    return plain_words(text) if not _HAN.search(text) else text.split()


def split_units(sentence: str) -> Sequence[str]:
    """Split a sentence into clauses and listed parts; one of a single word goes with the part before."""
    units: list[str] = []
    parts = (part.strip(" .\n") for part in _BREAK.split(sentence))
    for part in (part for part in parts if part and find_claimed_words(f"{part}.")):
        short = len(content_words(part)) < MIN_UNIT_WORDS
        if units and (short or len(content_words(units[-1])) < MIN_UNIT_WORDS):
            units[-1] = f"{units[-1]} {part}"
        else:
            units.append(part)
    return [piece for unit in units for piece in _split_long(unit)] or [sentence]


def _split_long(unit: str) -> Sequence[str]:
    """Split a long unit at prepositions, so that what is added at its end counts by itself."""
    pieces: list[str] = []
    parts = _PREPOSITION.split(unit)
    for at, part in enumerate(parts):
        rest = len(content_words(" ".join(parts[at:])))
        if not pieces or min(rest, len(content_words(pieces[-1]))) >= LONG_UNIT_WORDS:
            pieces.append(part)
        else:
            pieces[-1] = f"{pieces[-1]} {part}"
    return pieces
