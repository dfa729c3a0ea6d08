"""Parsing the headers of a message: sender, time, subject, and the messages it replies to."""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from email import policy
from email.errors import MessageError
from email.message import Message
from email.parser import BytesParser

from connectors.extraction.eml import get_addresses, get_header_text, get_raw_headers
from connectors.extraction.eml import get_sent_time as parse_sent_at
from connectors.extraction.parser_guard import convert_parser_errors
from connectors.extraction.result import ExtractionError
from connectors.text_cleaning import shorten_title, to_one_line

HEADERS = ("MESSAGE-ID", "IN-REPLY-TO", "REFERENCES", "SUBJECT", "DATE", "FROM", "TO")
"""The headers that `parse_envelope` uses."""

NO_SUBJECT = "(no subject)"

_MAX_KEY_LENGTH = 200
_MAX_AUTHOR_LENGTH = 1000
_MAX_REFERENCES = 100
_MAX_TIMESTAMP = 253_402_300_799
"""The end of the year 9999, the last that datetime supports."""
_BRACKETED_ID = re.compile(r"<([^<>]+)>")
_BARE_ID = re.compile(r"[^\s<>\"]+@[^\s<>\"]+")
_SAFE_KEY = re.compile(r"[!-;=?-~]+")
_REPLY_PREFIX = re.compile(
    r"\s*(?:\[[^\]]{1,40}\]\s*)?"
    r"(?:re|aw|antw|sv|vs|ref|rif|odp|ynt|atb|回复|回覆|答复|答覆|返信|답장)"
    r"\s*(?:\[\d{1,4}\]|\(\d{1,4}\)|\^\d{1,4})?\s*[:：]\s*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """What is known of a message before its body is read."""

    folder: str
    """An IMAP folder or an mbox file."""
    number: int
    """Identifies the message within the folder: an IMAP UID, or the offset in the file."""
    size: int
    """Bytes of the whole message."""
    key: str
    """The Message-ID without brackets, or a substitute; the same in every folder."""
    references: tuple[str, ...] = ()
    """The keys of the messages that it replies to, oldest first."""
    thread: str = ""
    """The server's own id of the conversation, if it has one; it takes precedence over references."""
    subject: str = ""
    author: str = ""
    """The raw header `From`."""
    sent: int
    """Seconds since 1970, UTC."""
    fault: str = ""
    """Why the message cannot be read, if so."""

    @property
    def base_subject(self) -> str:
        """The subject without reply prefixes, in lower case, for comparison."""
        return strip_reply_prefixes(self.subject).casefold()

    @property
    def is_reply(self) -> bool:
        return _REPLY_PREFIX.match(self.subject) is not None

    @property
    def sender(self) -> str:
        """The name of the author, or the address if there is none."""
        try:
            with convert_parser_errors("header", MessageError):
                found = get_addresses(_with_from_header(self.author), "from")
        except ExtractionError:
            return ""
        return shorten_title(re.sub(r"\s*<[^<>]*>$", "", found[0])) if found else ""

    @property
    def sent_at(self) -> datetime:
        return datetime.fromtimestamp(self.sent, UTC)


def strip_reply_prefixes(subject: str) -> str:
    while match := _REPLY_PREFIX.match(subject):
        subject = subject[match.end() :]
    return subject.strip()


def parse_envelope(
    headers: bytes, *, folder: str, number: int, size: int, received: int
) -> Envelope:
    """Parse the headers of a message; `received` is its time if the headers have no valid date.

    Headers are not trusted: those that cannot be parsed count as missing.
    """
    message = BytesParser(policy=policy.compat32).parsebytes(headers, headersonly=True)
    ids = _parse_ids(get_raw_headers(message, "message-id"))
    key = ids[0] if ids else _substitute_key(message, size)
    return Envelope(
        folder=folder,
        number=number,
        size=size,
        key=key,
        references=_parse_references(message, key),
        subject=_parse_subject(message),
        author=" ".join(get_raw_headers(message, "from")[:1])[:_MAX_AUTHOR_LENGTH],
        sent=_parse_timestamp(message, received),
    )


def _parse_references(message: Message, key: str) -> tuple[str, ...]:
    found = _parse_ids(get_raw_headers(message, "references"))
    if len(found) > _MAX_REFERENCES:
        # The first identifies the conversation, the last are the closest ancestors.
        found = [found[0], *found[1 - _MAX_REFERENCES :]]
    parents = _parse_ids(get_raw_headers(message, "in-reply-to"))[:1]
    return tuple(one for one in dict.fromkeys([*found, *parents]) if one != key)


def _parse_ids(values: Iterable[str]) -> list[str]:
    text = " ".join(values)
    found = _BRACKETED_ID.findall(text) or _BARE_ID.findall(text)
    return [to_key("".join(one.split())) for one in found if one.strip()]


def to_key(identifier: str) -> str:
    """Return the identifier if it is valid in a document id, else a hash of it."""
    if len(identifier) <= _MAX_KEY_LENGTH and _SAFE_KEY.fullmatch(identifier):
        return identifier
    return f"sha256-{hashlib.sha256(identifier.encode('utf-8', 'replace')).hexdigest()}"


def _substitute_key(message: Message, size: int) -> str:
    """Make a key for a message without a Message-ID; copies of the message get the same."""
    values = [*(get_raw_headers(message, name) for name in ("from", "to", "date", "subject")), size]
    return f"none-{hashlib.sha256(repr(values).encode('utf-8', 'replace')).hexdigest()}"


def _parse_subject(message: Message) -> str:
    raw = to_one_line(" ".join(get_raw_headers(message, "subject")[:1]))
    if "=?" not in raw:
        return shorten_title(raw)
    try:
        with convert_parser_errors("header", MessageError):
            return shorten_title(get_header_text(message, "subject"))
    except ExtractionError:
        return shorten_title(raw)


def _with_from_header(header: str) -> Message:
    message = Message()
    message["From"] = header
    return message


def _parse_timestamp(message: Message, received: int) -> int:
    sent_at = parse_sent_at(message)
    seconds = received if sent_at is None else int(sent_at.timestamp())
    return min(max(seconds, 0), _MAX_TIMESTAMP)
