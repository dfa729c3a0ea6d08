"""Read the marks of the intent step's answer, whatever else stands around and between them.

The answer is no XML document to a parser: nothing is expanded, declared or fetched. Only the names of the contract are
marks, every other character is text, and the time is linear in the length.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import regex

from backend.chat.intent.message_links import decode_entities
from backend.chat.intent.search_plan import Side
from backend.search.prompts import strip_reasoning

MAX_ANSWER_CHARACTERS = 20_000

PieceKind: TypeAlias = Literal["question", "rewrite", "link"]

_MARK = regex.compile(
    r"[<＜]\s{0,4}(?P<closing>/?+)\s{0,4}(?:(?P<web>web[_ -]?search|web)|(?P<knowledge>knowledge(?:[_ -]?base)?)|(?P<question>questions?)"
    r"|(?P<rewrite>rewrite)|(?P<link>links?|url))(?![\w-])(?P<attributes>[^<>＜＞]{0,3000})[>＞]",
    regex.IGNORECASE,
)
_ORNAMENT = regex.compile(
    r"</?(?:b|i|em|strong|p|br|li|ul|ol|keywords?|query|queries|text|item)\s{0,4}/?>|<!\[CDATA\[|\]\]>|`{3,}\w*",
    regex.IGNORECASE,
)
_LAST_REASONING = "</think>"


@dataclass(frozen=True, slots=True)
class Piece:
    """A text of the answer that stands between marks.

    Attributes:
        side: Whose block it stands in; None outside of both.
        attributes: What stands in its opening mark, behind the name.
    """

    side: Side | None
    kind: PieceKind
    text: str
    attributes: str = ""


def read_pieces(answer: str) -> list[Piece]:
    """Return the pieces of an answer in order; one that the end of the answer cuts off is left out."""
    bare = strip_reasoning(answer[:MAX_ANSWER_CHARACTERS])
    text = _strip_comments(bare.rpartition(_LAST_REASONING)[2])
    if not _MARK.search(text):
        text = decode_entities(text)
    return list(_read_marks(text))


def read_bare_text(answer: str) -> str:
    """Return what an answer says beside its marks, without fences."""
    return decode_entities(
        _ORNAMENT.sub(" ", _MARK.sub(" ", strip_reasoning(answer[:200])))
    ).strip()


def _read_marks(text: str) -> Iterator[Piece]:
    side: Side | None = None
    opened: regex.Match[str] | None = None
    for mark in _MARK.finditer(text):
        kind = _kind_of(opened)
        if opened is not None and kind is not None:
            between = text[opened.end() : mark.start()]
            yield Piece(side, kind, _to_text(between), opened["attributes"])
        opened = None if mark["closing"] else mark
        if mark["web"] or mark["knowledge"]:
            side = _side_of(mark)


def _kind_of(mark: regex.Match[str] | None) -> PieceKind | None:
    kinds: tuple[PieceKind, ...] = ("question", "rewrite", "link")
    return next((kind for kind in kinds if mark is not None and mark[kind]), None)


def _side_of(mark: regex.Match[str]) -> Side | None:
    if mark["closing"]:
        return None
    return Side.WEB if mark["web"] else Side.KNOWLEDGE


def _to_text(raw: str) -> str:
    return decode_entities(_ORNAMENT.sub(" ", raw)).strip()


def _strip_comments(text: str) -> str:
    first, *others = text.split("<!--")
    return "".join((first, *(other.partition("-->")[2] for other in others)))
