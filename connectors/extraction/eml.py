"""Read e-mail (EML): headers, body, and attachments by the readers of their formats."""

import re
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
from connectors.extraction.parser_guard import convert_parser_errors
from connectors.extraction.registry import EML, HEAD_SIZE, UNKNOWN, detect_media_type
from connectors.extraction.result import (
    ExtractionError,
    ExtractionResult,
    SizeLimit,
    make_section,
    parse_people,
)
from connectors.text_cleaning import replace_unstorable, to_one_line, to_utc

Extract: TypeAlias = Callable[[bytes, str], ExtractionResult]

_FORMAT = "e-mail"
_DEEPEST = 5
_MOST_ATTACHMENTS = 200
_MOST_ATTACHED = 200_000_000
_MOST_SECTIONS = 200_000
# Room for a thousand addresses. The standard parsers are slow on very long headers.
_LONGEST_HEADER = 50_000
# Their parameters are split by the parser, in time that grows with the square of their length.
_SPLIT_HEADER = re.compile(rb"(?:\A|[\r\n])content-(?:type|disposition):", re.IGNORECASE)
_HEADER_END = re.compile(rb"(?:\r\n?+|\n)(?![ \t])")


class _MessageReader:
    """Collects the sections of a message, of its attachments and of theirs."""

    def __init__(self, extract: Extract) -> None:
        self.sections: list[Section] = []
        self.attachments: list[str] = []
        self.unread: list[str] = []
        self.skipped = 0
        self._extract = extract
        self._sizes = SizeLimit(
            _MOST_ATTACHED, f"the attachments are larger than {_MOST_ATTACHED:,} bytes"
        )
        self._parts = SizeLimit(
            _MOST_SECTIONS, f"the e-mail has more than {_MOST_SECTIONS:,} parts"
        )

    def read_message(self, message: Message, path: tuple[str, ...]) -> None:
        """Read a message or a part of one; `path` names the attachments around it."""
        kind = message.get_content_type()
        if message.is_multipart() and kind != "message/rfc822":
            for part in _select_alternative(_get_parts(message), kind):
                self.read_message(part, path)
        elif message.get_content_maintype() in ("text", "multipart") and not _is_attached(message):
            self._read_body(message, kind, path)
        else:
            self._read_attachment(message, path)

    def _read_body(self, part: Message, kind: str, path: tuple[str, ...]) -> None:
        try:
            text = decode(_get_content(part), part.get_content_charset())
            pieces = (
                extract_html_sections(text) if kind == "text/html" else [Section(text=text.strip())]
            )
        except ExtractionError as error:
            self.unread.append(f"{kind} ({error})")
        else:
            self._add_sections(pieces, path)

    def _read_attachment(self, part: Message, path: tuple[str, ...]) -> None:
        if len(self.attachments) >= _MOST_ATTACHMENTS:
            self.skipped += 1
            return
        name = _get_file_name(part)
        self.attachments.append(name)
        try:
            if len(path) >= _DEEPEST:
                raise ExtractionError(f"it is nested more than {_DEEPEST} attachments deep")
            if part.get_content_type() == "message/rfc822" and part.is_multipart():
                for inner in _get_parts(part):
                    self.read_message(inner, (*path, name))
            else:
                self._read_file(_get_content(part), name, part.get_content_type(), path)
        except ExtractionError as error:
            self.unread.append(f"{name} ({error})")

    def _read_file(self, data: bytes, name: str, stated: str, path: tuple[str, ...]) -> None:
        self._sizes.add(len(data))
        media_type = detect_media_type(name, data[:HEAD_SIZE])
        if media_type == EML:
            with convert_parser_errors(_FORMAT, MessageError):
                self.read_message(_parse(data), (*path, name))
            return
        read = self._extract(data, stated if media_type == UNKNOWN else media_type)
        self._add_sections(read.sections, (*path, name))

    def _add_sections(self, sections: Iterable[Section], path: tuple[str, ...]) -> None:
        """Add sections without spans: these would refer to a file that cannot be opened by itself."""
        for one in filter(lambda piece: piece.text, sections):
            self._parts.add(1)
            place = replace(one.place, heading_path=(*path, *one.place.heading_path), span=None)
            self.sections.append(make_section(one.text, place, one.kind))


def read_eml(data: bytes, extract: Extract) -> ExtractionResult:
    """Read the body, then the attachments, whose names start their heading paths. Attachments that
    cannot be read are listed with the reason in the metadata `attachments_unread`.

    `extract` reads an attachment by its media type.

    Raises:
        ExtractionError: the file is not an e-mail, or contains no text.
    """
    with convert_parser_errors(_FORMAT, MessageError):
        message = _parse(data)
        if not message.keys():
            raise ExtractionError("it is not an e-mail: it has no headers")
        reader = _MessageReader(extract)
        reader.read_message(message, ())
        subject = get_header_text(message, "subject")
        if not reader.sections and subject:
            reader.sections.append(make_section(subject, Place()))
        if not reader.sections:
            raise ExtractionError("the e-mail contains no text")
        sent = get_sent_time(message)
        return ExtractionResult(
            sections=tuple(reader.sections),
            title=subject or None,
            metadata=_make_metadata(message, reader),
            authors=parse_people(get_addresses(message, "from")),
            created_at=sent,
            updated_at=sent,
        )


def _parse(data: bytes) -> Message:
    """Parse an e-mail. Mail is never sent as UTF-16, but some programs save it so.

    Raises:
        ExtractionError: a header that the parser splits is too long.
    """
    plain = decode(data).encode() if is_utf16_or_utf32(data) else data
    _check_headers(plain)
    return message_from_bytes(plain, policy=policy.compat32)


def _check_headers(data: bytes) -> None:
    for found in _SPLIT_HEADER.finditer(data):
        end = _HEADER_END.search(data, found.end())
        if (end.start() if end else len(data)) - found.end() > _LONGEST_HEADER:
            raise ExtractionError(f"a header is longer than {_LONGEST_HEADER:,} bytes")


def _get_parts(message: Message) -> list[Message]:
    payload = message.get_payload()
    return [part for part in payload if isinstance(part, Message)]


def _select_alternative(parts: list[Message], kind: str) -> list[Message]:
    """Select, of alternative forms of a body, the plain text unless it is empty, else the last."""
    if kind != "multipart/alternative":
        return parts
    plain = (
        part
        for part in parts
        if part.get_content_type() == "text/plain" and _get_content(part).strip()
    )
    return [next(plain, parts[-1])] if parts else []


def _is_attached(part: Message) -> bool:
    return part.get_content_disposition() == "attachment" or part.get_filename() is not None


def _get_content(part: Message) -> bytes:
    content = part.get_payload(decode=True)
    return content if isinstance(content, bytes) else b""


def _get_file_name(part: Message) -> str:
    name = to_one_line(_decode_words(part.get_filename() or ""))
    if name:
        return name
    subject = next((get_header_text(inner, "subject") for inner in _get_parts(part)), "")
    return subject or part.get_content_type()


def get_header_text(message: Message, name: str) -> str:
    """Return the first header with this name (in lower case), decoded, on one line.

    Raises:
        MessageError, ValueError, LookupError: its encoded words are invalid.
    """
    return to_one_line(" ".join(map(_decode_words, get_raw_headers(message, name)[:1])))


def get_raw_headers(message: Message, name: str) -> list[str]:
    """Return all values of a header. Non-ASCII bytes are decoded, encoded words are not."""
    values = (
        str(value)[:_LONGEST_HEADER] for key, value in message.raw_items() if key.lower() == name
    )
    return [_decode_surrogates(value) for value in values]


def _decode_surrogates(value: str) -> str:
    """Decode the non-ASCII bytes of a header, which the parser keeps as surrogates."""
    if value.isascii() and "\x1b" not in value:
        return replace_unstorable(value)
    return _decode_or_replace(value.encode("utf-8", "surrogateescape"), None)


def _decode_or_replace(data: bytes, charset: str | None) -> str:
    """Decode a header; one that is not text must not make the whole e-mail unreadable."""
    try:
        return decode(data, charset)
    except ExtractionError:
        return data.decode("ascii", errors="replace")


def _decode_words(text: str) -> str:
    """Decode the encoded words (RFC 2047) of a header."""
    return "".join(
        piece if isinstance(piece, str) else _decode_or_replace(piece, charset)
        for piece, charset in decode_header(text)
    )


def get_addresses(message: Message, name: str) -> list[str]:
    """Return each address as `Ann Lee <ann@example.com>`, or the part that is present. Raises like `get_header_text`."""
    pairs = getaddresses(get_raw_headers(message, name))
    named = (
        (to_one_line(_decode_words(person)), to_one_line(address)) for person, address in pairs
    )
    return [
        f"{person} <{address}>" if person and address else person or address
        for person, address in named
        if person or address
    ]


def get_sent_time(message: Message) -> datetime | None:
    """Return the Date header in UTC."""
    for text in get_raw_headers(message, "date")[:1]:
        try:
            return to_utc(parsedate_to_datetime(text))
        except (ValueError, TypeError, IndexError, OverflowError):
            return None
    return None


def _make_metadata(message: Message, reader: _MessageReader) -> Metadata:
    found = {name: tuple(get_addresses(message, name)) for name in ("from", "to", "cc")}
    found["attachments"] = tuple(reader.attachments)
    found["attachments_unread"] = tuple(reader.unread)
    if reader.skipped:
        limit = f"{reader.skipped} more than {_MOST_ATTACHMENTS} attachments"
        found["attachments_unread"] += (limit,)
    return {name: texts for name, texts in found.items() if texts}
