"""What the headers of a message say of it: who, when, and which messages it answers."""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from email import policy
from email.errors import MessageError
from email.message import Message
from email.parser import BytesParser

from connectors.extraction.eml import addresses, header_text, raw_header, sent_at
from connectors.extraction.parser_guard import parsing
from connectors.extraction.result import CannotRead, one_line, shortened

HEADERS = ("MESSAGE-ID", "IN-REPLY-TO", "REFERENCES", "SUBJECT", "DATE", "FROM", "TO")
"""All that an envelope is made from."""

NO_SUBJECT = "(no subject)"

_LONGEST_KEY = 200
_LONGEST_AUTHOR = 1000
_MOST_REFERENCES = 100
_LAST_SECOND = 253_402_300_799
"""Of the year 9999, beyond which there is no datetime."""
_BRACKETED = re.compile(r"<([^<>]+)>")
_BARE = re.compile(r"[^\s<>\"]+@[^\s<>\"]+")
_KEY = re.compile(r"[!-;=?-~]+")
_REPLY = re.compile(
    r"\s*(?:\[[^\]]{1,40}\]\s*)?"
    r"(?:re|aw|antw|sv|vs|ref|rif|odp|ynt|atb|回复|回覆|答复|答覆|返信|답장)"
    r"\s*(?:\[\d{1,4}\]|\(\d{1,4}\)|\^\d{1,4})?\s*[:：]\s*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """A message as it is known before it is read."""

    folder: str
    """Where it is kept: an IMAP folder, an mbox file."""
    number: int
    """Which one of that folder: an IMAP UID, an offset."""
    size: int
    """Bytes of the whole message."""
    key: str
    """Its Message-ID without brackets, or what stands for one; the same in every folder."""
    references: tuple[str, ...] = ()
    """The keys of the messages that it answers, oldest first."""
    thread: str = ""
    """What the server itself calls the conversation, where it knows; then that alone counts."""
    subject: str = ""
    author: str = ""
    """The header `From` as it was sent."""
    sent: int
    """Seconds since 1970, UTC."""
    fault: str = ""
    """Why nothing more than this is known of it."""

    @property
    def topic(self) -> str:
        """The subject without the marks of a reply, to be compared."""
        return without_reply_marks(self.subject).casefold()

    @property
    def says_reply(self) -> bool:
        return _REPLY.match(self.subject) is not None

    @property
    def sender(self) -> str:
        """A name, or an address where there is none."""
        try:
            with parsing("header", MessageError):
                found = addresses(_from(self.author), "from")
        except CannotRead:
            return ""
        return shortened(re.sub(r"\s*<[^<>]*>$", "", found[0])) if found else ""

    @property
    def moment(self) -> datetime:
        return datetime.fromtimestamp(self.sent, UTC)


def without_reply_marks(subject: str) -> str:
    while match := _REPLY.match(subject):
        subject = subject[match.end() :]
    return subject.strip()


def envelope(headers: bytes, *, folder: str, number: int, size: int, received: int) -> Envelope:
    """From the headers of a message; `received` is its time where it states none that can be read.

    Headers are hostile: what cannot be read of them is taken for missing.
    """
    message = BytesParser(policy=policy.compat32).parsebytes(headers, headersonly=True)
    own = _keys(raw_header(message, "message-id"))
    key = own[0] if own else _made_up(message, size)
    return Envelope(
        folder=folder,
        number=number,
        size=size,
        key=key,
        references=_references(message, key),
        subject=_subject(message),
        author=" ".join(raw_header(message, "from")[:1])[:_LONGEST_AUTHOR],
        sent=_sent(message, received),
    )


def _references(message: Message, key: str) -> tuple[str, ...]:
    found = _keys(raw_header(message, "references"))
    if len(found) > _MOST_REFERENCES:
        # The first names the conversation, the last are the nearest.
        found = [found[0], *found[1 - _MOST_REFERENCES :]]
    answered = _keys(raw_header(message, "in-reply-to"))[:1]
    return tuple(one for one in dict.fromkeys([*found, *answered]) if one != key)


def _keys(values: Iterable[str]) -> list[str]:
    text = " ".join(values)
    found = _BRACKETED.findall(text) or _BARE.findall(text)
    return [keyed("".join(one.split())) for one in found if one.strip()]


def keyed(identifier: str) -> str:
    """`identifier` itself where an id of a document can hold it, else a digest of it."""
    if len(identifier) <= _LONGEST_KEY and _KEY.fullmatch(identifier):
        return identifier
    return f"sha256-{hashlib.sha256(identifier.encode('utf-8', 'replace')).hexdigest()}"


def _made_up(message: Message, size: int) -> str:
    """Of a message without an id: the same for each copy of it, and another for any other."""
    said = [*(raw_header(message, name) for name in ("from", "to", "date", "subject")), size]
    return f"none-{hashlib.sha256(repr(said).encode('utf-8', 'replace')).hexdigest()}"


def _subject(message: Message) -> str:
    raw = one_line(" ".join(raw_header(message, "subject")[:1]))
    if "=?" not in raw:
        return shortened(raw)
    try:
        with parsing("header", MessageError):
            return shortened(header_text(message, "subject"))
    except CannotRead:
        return shortened(raw)


def _from(header: str) -> Message:
    message = Message()
    message["From"] = header
    return message


def _sent(message: Message, received: int) -> int:
    moment = sent_at(message)
    seconds = received if moment is None else int(moment.timestamp())
    return min(max(seconds, 0), _LAST_SECOND)
