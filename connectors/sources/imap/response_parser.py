"""What an IMAP server answers, in parts (RFC 3501, section 9)."""

import re
from calendar import timegm
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

Piece: TypeAlias = bytes | tuple[bytes, bytes]
"""As imaplib gives an answer: a line, or the line before a literal and the literal."""

_TOKEN = re.compile(
    rb'\s*(?:(?P<open>\()|(?P<close>\))|"(?P<quoted>(?:[^"\\]|\\.)*)"'
    rb'|(?P<atom>[^\s()"\[\]]*\[[^\]]*\][^\s()"]*|[^\s()"]+))'
)
_LITERAL = re.compile(rb"\{\d+\+?\}$")
_SHIFTED = re.compile(r"&([^-]*)-")


class Malformed(ValueError):
    """An answer that cannot be understood."""


@dataclass(frozen=True, slots=True)
class Token:
    text: bytes
    depth: int
    """How many brackets are open around it."""
    is_atom: bool


def answers(pieces: Iterable[Piece | None]) -> Iterator[list[Piece]]:
    """The pieces of each answer together: after one with a literal the next belongs to it."""
    together: list[Piece] = []
    for piece in pieces:
        if piece is None:
            continue
        together.append(piece)
        if isinstance(piece, bytes):
            yield together
            together = []
    if together:
        raise Malformed("an answer breaks off after a literal")


def tokens(answer: Iterable[Piece]) -> Iterator[Token]:
    """
    Raises:
        Malformed: brackets or quotation marks do not match.
    """
    depth = 0
    for piece in answer:
        line, literal = (piece, None) if isinstance(piece, bytes) else piece
        text = line if literal is None else _LITERAL.sub(b"", line)
        for match in _matches(text):
            depth += (match["open"] is not None) - (match["close"] is not None)
            if match["quoted"] is not None:
                yield Token(re.sub(rb"\\(.)", rb"\1", match["quoted"]), depth, is_atom=False)
            elif match["atom"] is not None:
                yield Token(match["atom"], depth, is_atom=True)
        if literal is not None:
            yield Token(literal, depth, is_atom=False)
    if depth:
        raise Malformed("brackets that do not match")


def _matches(text: bytes) -> Iterator[re.Match[bytes]]:
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            raise Malformed(f"not of the protocol: {text[at : at + 40]!r}")
        yield match
        at = match.end()


def attributes(answer: Iterable[Piece]) -> Mapping[str, bytes]:
    """`12 (UID 5 RFC822.SIZE 90 FLAGS (\\Seen))` to {"": "12", "UID": "5", "RFC822.SIZE": "90"}:
    what stands before the bracket, and values by names in upper case; lists are passed over.

    Raises:
        Malformed: it is no such answer.
    """
    found: dict[str, bytes] = {}
    name: str | None = None
    for token in tokens(answer):
        if token.depth == 0:
            found.setdefault("", token.text)
        elif token.depth > 1:
            name = None
        elif name is None:
            name = token.text.decode("ascii", "replace").upper()
        else:
            found[name] = token.text
            name = None
    return found


def number(found: Mapping[str, bytes], name: str) -> int:
    """
    Raises:
        Malformed: it is not there, or no number of 64 bits.
    """
    text = found.get(name, b"")
    if not re.fullmatch(rb"\d{1,19}", text):
        raise Malformed(f"no number for {name or 'the message'}: {text[:40]!r}")
    return int(text)


def internal_date(text: bytes) -> int:
    """` 5-Jan-2026 10:00:00 +0200` as seconds since 1970; 0 where it is none."""
    try:
        moment = datetime.strptime(text.decode("ascii").strip(), "%d-%b-%Y %H:%M:%S %z")
        return max(timegm(moment.astimezone(UTC).timetuple()), 0)
    except (ValueError, OverflowError):
        return 0


def folder_name(raw: bytes) -> str:
    """The name that a person sees: modified UTF-7 decoded (RFC 3501, 5.1.3), as far as it is that."""
    return _SHIFTED.sub(_unshifted, raw.decode("utf-8", "replace"))


def _unshifted(match: re.Match[str]) -> str:
    if not match[1]:
        return "&"
    try:
        return f"+{match[1].replace(',', '/')}-".encode("ascii").decode("utf-7")
    except UnicodeError:
        return match[0]
