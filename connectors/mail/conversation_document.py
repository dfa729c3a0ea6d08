"""Making one document from a conversation, with the messages as sections and without repeated quotes."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeAlias

from connectors.access import Access
from connectors.connector import Unreadable
from connectors.document import Document, Metadata, Person, Section
from connectors.extraction.registry import EML
from connectors.extraction.result import ExtractionError, ExtractionResult
from connectors.mail.headers import NO_SUBJECT, Envelope, strip_reply_prefixes
from connectors.mail.quoted_replies import QuoteRemover
from connectors.mail.threading_index import Thread

MessageContent: TypeAlias = ExtractionResult | ExtractionError
MessageContents: TypeAlias = Mapping[str, MessageContent]
"""By the keys of the messages."""

# To be raised when the same messages yield another document than before.
_FORMAT_VERSION = 1
_MAX_PEOPLE = 100
_MAX_ATTACHMENTS = 500
_ADDRESS_FIELDS = ("from", "to", "cc")
_ATTACHMENT_FIELDS = ("attachments", "attachments_unread")


class MessageUnavailable(ExtractionError):
    """The message could not be fetched this time; the next run tries again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationDocuments:
    """Makes the documents of one source."""

    source: str
    access: Access
    largest_message: int
    """Bytes. A larger message is only listed in the metadata."""
    link: Callable[[Envelope], str]
    """Makes the link to a message."""
    path: Callable[[str], tuple[str, ...]]
    """Makes the display names of an envelope's folder and its parents."""

    def document_id(self, thread_name: str) -> str:
        return f"{self.source}:{thread_name}"

    def thread_name(self, document_id: str) -> str:
        return document_id.removeprefix(f"{self.source}:")

    def version(self, thread: Thread) -> str:
        """Hash which messages the conversation has; a message itself never changes."""
        path = self.path(thread.messages[0].folder)
        values = [
            _FORMAT_VERSION,
            self.largest_message,
            path,
            *(one.key for one in thread.messages),
        ]
        return hashlib.sha256(repr(values).encode()).hexdigest()

    def to_document(self, thread: Thread, contents: MessageContents) -> Document | Unreadable:
        """Make the document; Unreadable if no message can be read."""
        sections = tuple(self._sections(thread, contents))
        if not sections:
            return self._unreadable(thread, contents)
        first = thread.messages[0]
        return Document(
            id=self.document_id(thread.name),
            source=self.source,
            title=_title(first),
            sections=sections,
            link=self.link(first),
            media_type=EML,
            access=self.access,
            version=self.version(thread) + _incomplete_suffix(contents.values()),
            metadata=_metadata(thread, contents),
            owners=_authors(thread, contents),
            created_at=first.sent_at,
            updated_at=thread.messages[-1].sent_at,
            parents=self.path(first.folder),
        )

    def _sections(self, thread: Thread, contents: MessageContents) -> Iterator[Section]:
        quotes = QuoteRemover()
        for message in thread.messages:
            match contents[message.key]:
                case ExtractionResult() as read:
                    yield from self._message_sections(message, read, quotes)
                case ExtractionError():
                    pass

    def _message_sections(
        self, message: Envelope, read: ExtractionResult, quotes: QuoteRemover
    ) -> Iterator[Section]:
        attachments = frozenset(read.metadata.get("attachments", ()))
        heading, link = message_heading(message), self.link(message)
        texts = []
        for one in read.sections:
            text = one.text
            if one.kind == "text" and attachments.isdisjoint(one.place.heading_path[:1]):
                texts.append(text)
                text = quotes.remove_quotes(text)
            if text:
                path = (heading, *one.place.heading_path)
                place = replace(one.place, heading_path=path)
                yield replace(one, text=text, link=link, place=place)
        quotes.add_message("\n\n".join(texts))

    def _unreadable(self, thread: Thread, contents: MessageContents) -> Unreadable:
        first = thread.messages[0]
        reasons = [str(one) for one in contents.values() if isinstance(one, ExtractionError)]
        return Unreadable(
            document_id=self.document_id(thread.name),
            item=f"{first.sender}: {_title(first)}" if first.sender else _title(first),
            reason=reasons[0] if reasons else "the messages contain no text",
            link=self.link(first),
        )


def _incomplete_suffix(contents: Iterable[MessageContent]) -> str:
    """Make the version differ from that of the complete conversation, so that it is read again."""
    return ":incomplete" if any(isinstance(one, MessageUnavailable) for one in contents) else ""


def message_heading(message: Envelope) -> str:
    """Return the sender and the time."""
    when = f"{message.sent_at:%Y-%m-%d %H:%M} UTC"
    return f"{message.sender}, {when}" if message.sender else when


def _title(message: Envelope) -> str:
    return strip_reply_prefixes(message.subject) or message.subject or NO_SUBJECT


def _metadata(thread: Thread, contents: MessageContents) -> Metadata:
    """Collect people and attachments; messages and attachments that could not be read are named too."""
    read = [one for one in contents.values() if isinstance(one, ExtractionResult)]
    found = {name: _first_unique(_values(read, name), _MAX_PEOPLE) for name in _ADDRESS_FIELDS}
    found |= {
        name: _first_unique(_values(read, name), _MAX_ATTACHMENTS) for name in _ATTACHMENT_FIELDS
    }
    found["messages_unread"] = _first_unique(_unread_messages(thread, contents), _MAX_ATTACHMENTS)
    return {name: values for name, values in found.items() if values}


def _unread_messages(thread: Thread, contents: MessageContents) -> Iterator[str]:
    for message in thread.messages:
        match contents[message.key]:
            case ExtractionError() as error:
                yield f"{message_heading(message)} ({error})"
            case ExtractionResult():
                pass


def _values(read: Sequence[ExtractionResult], name: str) -> Iterator[str]:
    for one in read:
        values = one.metadata.get(name, ())
        yield from (values,) if isinstance(values, str) else values


def _first_unique(values: Iterable[str], limit: int) -> tuple[str, ...]:
    return tuple(islice(dict.fromkeys(values), limit))


def _authors(thread: Thread, contents: MessageContents) -> tuple[Person, ...]:
    read = (contents[message.key] for message in thread.messages)
    authors = (
        person for one in read if isinstance(one, ExtractionResult) for person in one.authors
    )
    return tuple(islice(dict.fromkeys(authors), _MAX_PEOPLE))
