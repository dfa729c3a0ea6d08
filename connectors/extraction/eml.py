"""E-mail (EML): headers, the body that a person reads, and attachments by the readers of their own."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from email import message_from_bytes, policy
from email.errors import MessageError
from email.header import decode_header
from email.message import Message
from email.utils import getaddresses, parsedate_to_datetime
from typing import TypeAlias

from connectors.document import Metadata, Place, Section
from connectors.extraction.encoding import decode, is_utf16_or_utf32
from connectors.extraction.html import extract_html_sections
from connectors.extraction.media_types import EML, HEAD_SIZE, UNKNOWN, detect_media_type
from connectors.extraction.parser_guard import convert_parser_errors
from connectors.extraction.result import (
    ExtractionError,
    ExtractionResult,
    SizeLimit,
    make_section,
    parse_people,
)
from connectors.text_cleaning import replace_unstorable, to_one_line, to_utc

Extract: TypeAlias = Callable[[bytes, str], ExtractionResult]

_WHAT = "e-mail"
_DEEPEST = 5
_MOST_ATTACHMENTS = 200
_MOST_ATTACHED = 200_000_000
_MOST_SECTIONS = 200_000
# A thousand addresses; the parsers of headers are slow on endless ones.
_LONGEST_HEADER = 50_000


class _Reading:
    """What has been read of a message, its attachments and theirs so far."""

    def __init__(self, extract: Extract) -> None:
        self.sections: list[Section] = []
        self.attachments: list[str] = []
        self.unread: list[str] = []
        self.left_out = 0
        self._extract = extract
        self._sizes = SizeLimit(
            _MOST_ATTACHED, f"the attachments are larger than {_MOST_ATTACHED:,} bytes"
        )
        self._parts = SizeLimit(
            _MOST_SECTIONS, f"the e-mail has more than {_MOST_SECTIONS:,} parts"
        )

    def message(self, message: Message, path: tuple[str, ...]) -> None:
        """Read a message, or a part of one; `path` are the names of the attachments around it."""
        kind = message.get_content_type()
        if message.is_multipart() and kind != "message/rfc822":
            for part in _chosen(_children(message), kind):
                self.message(part, path)
        elif message.get_content_maintype() in ("text", "multipart") and not _is_attached(message):
            self._body(message, kind, path)
        else:
            self._attachment(message, path)

    def _body(self, part: Message, kind: str, path: tuple[str, ...]) -> None:
        try:
            text = decode(_content(part), part.get_content_charset())
            pieces = (
                extract_html_sections(text) if kind == "text/html" else [Section(text=text.strip())]
            )
        except ExtractionError as error:
            self.unread.append(f"{kind} ({error})")
        else:
            self._add(pieces, path)

    def _attachment(self, part: Message, path: tuple[str, ...]) -> None:
        if len(self.attachments) >= _MOST_ATTACHMENTS:
            self.left_out += 1
            return
        name = _file_name(part)
        self.attachments.append(name)
        try:
            if len(path) >= _DEEPEST:
                raise ExtractionError(f"it is nested more than {_DEEPEST} attachments deep")
            if part.get_content_type() == "message/rfc822" and part.is_multipart():
                for inner in _children(part):
                    self.message(inner, (*path, name))
            else:
                self._file(_content(part), name, part.get_content_type(), path)
        except ExtractionError as error:
            self.unread.append(f"{name} ({error})")

    def _file(self, data: bytes, name: str, stated: str, path: tuple[str, ...]) -> None:
        self._sizes.take(len(data))
        media_type = detect_media_type(name, data[:HEAD_SIZE])
        if media_type == EML:
            with convert_parser_errors(_WHAT, MessageError):
                self.message(_parsed(data), (*path, name))
            return
        read = self._extract(data, stated if media_type == UNKNOWN else media_type)
        self._add(read.sections, (*path, name))

    def _add(self, sections: Iterable[Section], path: tuple[str, ...]) -> None:
        """Spans are left out: they would stand in a file that nobody can open by itself."""
        for one in filter(lambda piece: piece.text, sections):
            self._parts.take(1)
            place = replace(one.place, heading_path=(*path, *one.place.heading_path), span=None)
            self.sections.append(make_section(one.text, place, one.kind))


def read_eml(data: bytes, extract: Extract) -> ExtractionResult:
    """The body as text, then the sections of the attachments, whose names lead their heading
    paths. Those that cannot be read stand with the reason in the metadata `attachments_unread`.

    `extract` reads an attachment by its media type.

    Raises:
        ExtractionError: not an e-mail, or one that says nothing.
    """
    with convert_parser_errors(_WHAT, MessageError):
        message = _parsed(data)
        if not message.keys():
            raise ExtractionError("it is not an e-mail: it has no headers")
        reading = _Reading(extract)
        reading.message(message, ())
        subject = get_header_text(message, "subject")
        if not reading.sections and subject:
            reading.sections.append(make_section(subject, Place()))
        if not reading.sections:
            raise ExtractionError("the e-mail holds no text")
        sent = get_sent_time(message)
        return ExtractionResult(
            sections=tuple(reading.sections),
            title=subject or None,
            metadata=_metadata(message, reading),
            authors=parse_people(get_addresses(message, "from")),
            created_at=sent,
            updated_at=sent,
        )


def _parsed(data: bytes) -> Message:
    """Mail itself is never UTF-16, but programs save it so."""
    plain = decode(data).encode() if is_utf16_or_utf32(data) else data
    return message_from_bytes(plain, policy=policy.compat32)


def _children(message: Message) -> list[Message]:
    payload = message.get_payload()
    return [part for part in payload if isinstance(part, Message)]


def _chosen(parts: list[Message], kind: str) -> list[Message]:
    """Of several forms of the same body the plain one where it says something, else the last."""
    if kind != "multipart/alternative":
        return parts
    plain = (
        part for part in parts if part.get_content_type() == "text/plain" and _content(part).strip()
    )
    return [next(plain, parts[-1])] if parts else []


def _is_attached(part: Message) -> bool:
    return part.get_content_disposition() == "attachment" or part.get_filename() is not None


def _content(part: Message) -> bytes:
    content = part.get_payload(decode=True)
    return content if isinstance(content, bytes) else b""


def _file_name(part: Message) -> str:
    name = to_one_line(_unfolded(part.get_filename() or ""))
    if name:
        return name
    subject = next((get_header_text(inner, "subject") for inner in _children(part)), "")
    return subject or part.get_content_type()


def get_header_text(message: Message, name: str) -> str:
    """The first header of that name (in lower case) as a person reads it, on one line.

    Raises:
        MessageError, ValueError, LookupError: its encoded words are broken.
    """
    return to_one_line(" ".join(map(_unfolded, get_raw_headers(message, name)[:1])))


def get_raw_headers(message: Message, name: str) -> list[str]:
    """The values of a header; bytes that are not ASCII are decoded, encoded words are not."""
    values = (
        str(value)[:_LONGEST_HEADER] for key, value in message.raw_items() if key.lower() == name
    )
    return [_undone(value) for value in values]


def _undone(value: str) -> str:
    """The characters of a header whose bytes beyond ASCII the parser has kept as surrogates."""
    if value.isascii() and "\x1b" not in value:
        return replace_unstorable(value)
    return _decoded(value.encode("utf-8", "surrogateescape"), None)


def _decoded(data: bytes, charset: str | None) -> str:
    """The text of a header; one that is no text must not make the whole e-mail unreadable."""
    try:
        return decode(data, charset)
    except ExtractionError:
        return data.decode("ascii", errors="replace")


def _unfolded(text: str) -> str:
    """A header's text with its encoded words (RFC 2047) decoded."""
    return "".join(
        piece if isinstance(piece, str) else _decoded(piece, charset)
        for piece, charset in decode_header(text)
    )


def get_addresses(message: Message, name: str) -> list[str]:
    """`Ann Lee <ann@example.com>`, or the half of it that is there, for each. Raises as `get_header_text`."""
    pairs = getaddresses(get_raw_headers(message, name))
    named = ((to_one_line(_unfolded(person)), to_one_line(address)) for person, address in pairs)
    return [
        f"{person} <{address}>" if person and address else person or address
        for person, address in named
        if person or address
    ]


def get_sent_time(message: Message) -> datetime | None:
    """When it was sent, as its sender says; in UTC."""
    for text in get_raw_headers(message, "date")[:1]:
        try:
            return to_utc(parsedate_to_datetime(text))
        except (ValueError, TypeError, IndexError, OverflowError):
            return None
    return None


def _metadata(message: Message, reading: _Reading) -> Metadata:
    found = {name: tuple(get_addresses(message, name)) for name in ("from", "to", "cc")}
    found["attachments"] = tuple(reading.attachments)
    found["attachments_unread"] = tuple(reading.unread)
    if reading.left_out:
        limit = f"{reading.left_out} more than {_MOST_ATTACHMENTS} attachments"
        found["attachments_unread"] += (limit,)
    return {name: texts for name, texts in found.items() if texts}
