"""Parsing responses of an IMAP server (RFC 3501, section 9)."""

import re
from calendar import timegm
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

ResponsePart: TypeAlias = bytes | tuple[bytes, bytes]
"""A part of a response as imaplib returns it: a line, or the line before a literal and the literal."""

_TOKEN = re.compile(
    rb'\s*(?:(?P<open>\()|(?P<close>\))|"(?P<quoted>(?:[^"\\]|\\.)*)"'
    rb'|(?P<atom>[^\s()"\[\]]*\[[^\]]*\][^\s()"]*|[^\s()"]+))'
)
_LITERAL_SIZE = re.compile(rb"\{\d+\+?\}$")
_UTF7_SEQUENCE = re.compile(r"&([^-]*)-")


class MalformedResponseError(ValueError):
    """A response is not of the expected form."""


@dataclass(frozen=True, slots=True)
class Token:
    text: bytes
    depth: int
    """How many parentheses are open around it."""
    is_atom: bool


def group_responses(parts: Iterable[ResponsePart | None]) -> Iterator[list[ResponsePart]]:
    """Group the parts by response: a response goes on after each literal."""
    response: list[ResponsePart] = []
    for part in parts:
        if part is None:
            continue
        response.append(part)
        if isinstance(part, bytes):
            yield response
            response = []
    if response:
        raise MalformedResponseError("a response ends after a literal")


def tokenize(response: Iterable[ResponsePart]) -> Iterator[Token]:
    """Split a response into tokens. Raises MalformedResponseError: unbalanced parentheses or quotes."""
    depth = 0
    for part in response:
        line, literal = (part, None) if isinstance(part, bytes) else part
        text = line if literal is None else _LITERAL_SIZE.sub(b"", line)
        for match in _match_tokens(text):
            depth += (match["open"] is not None) - (match["close"] is not None)
            if match["quoted"] is not None:
                yield Token(re.sub(rb"\\(.)", rb"\1", match["quoted"]), depth, is_atom=False)
            elif match["atom"] is not None:
                yield Token(match["atom"], depth, is_atom=True)
        if literal is not None:
            yield Token(literal, depth, is_atom=False)
    if depth:
        raise MalformedResponseError("unbalanced parentheses")


def _match_tokens(text: bytes) -> Iterator[re.Match[bytes]]:
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            raise MalformedResponseError(f"invalid token: {text[at : at + 40]!r}")
        yield match
        at = match.end()


def parse_attributes(response: Iterable[ResponsePart]) -> Mapping[str, bytes]:
    """Parse `12 (UID 5 RFC822.SIZE 90 FLAGS (\\Seen))` to {"": "12", "UID": "5", "RFC822.SIZE": "90"}.

    The value before the parentheses has an empty name; names are in upper case; lists are left out.

    Raises:
        MalformedResponseError: unbalanced parentheses or quotes.
    """
    found: dict[str, bytes] = {}
    name: str | None = None
    for token in tokenize(response):
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


def parse_number(attributes: Mapping[str, bytes], name: str) -> int:
    """Parse an attribute. Raises MalformedResponseError: it is missing, or not a number of 64 bits."""
    text = attributes.get(name, b"")
    if not re.fullmatch(rb"\d{1,19}", text):
        raise MalformedResponseError(f"invalid {name or 'message number'}: {text[:40]!r}")
    return int(text)


def parse_internal_date(text: bytes) -> int:
    """Parse ` 5-Jan-2026 10:00:00 +0200` to seconds since 1970; return 0 if it is not valid."""
    try:
        parsed = datetime.strptime(text.decode("ascii").strip(), "%d-%b-%Y %H:%M:%S %z")
        return max(timegm(parsed.astimezone(UTC).timetuple()), 0)
    except (ValueError, OverflowError):
        return 0


def decode_folder_name(raw: bytes) -> str:
    """Decode modified UTF-7 (RFC 3501, 5.1.3); sequences that are not valid stay as they are."""
    return _UTF7_SEQUENCE.sub(_decode_sequence, raw.decode("utf-8", "replace"))


def _decode_sequence(match: re.Match[str]) -> str:
    if not match[1]:
        return "&"
    try:
        return f"+{match[1].replace(',', '/')}-".encode("ascii").decode("utf-7")
    except UnicodeError:
        return match[0]
