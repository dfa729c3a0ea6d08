"""A conversation as one document: each message a section or more, without what it repeats."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeAlias

from connectors.connector import Unreadable
from connectors.document import Access, Document, Metadata, Person, Section
from connectors.extraction.media_types import EML
from connectors.extraction.result import CannotRead, Extracted
from connectors.mail.headers import NO_SUBJECT, Envelope, without_reply_marks
from connectors.mail.quoted_replies import Said
from connectors.mail.threading_index import Thread

Outcome: TypeAlias = Extracted | CannotRead

# Raise it when messages read again would say something else than before.
_READING = 1
_MOST_PEOPLE = 100
_MOST_ATTACHMENTS = 500
_ADDRESSED = ("from", "to", "cc")
_ATTACHED = ("attachments", "attachments_unread")


class NotGiven(CannotRead):
    """The message was not to be had; it may be another time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversations:
    """How the conversations of one source become documents."""

    source: str
    access: Access
    largest_message: int
    """Bytes. Of a larger one only the name is told."""
    link: Callable[[Envelope], str]
    """Where a person reads the message."""
    path: Callable[[str], tuple[str, ...]]
    """The folder of an envelope as people name it."""

    def id_of(self, name: str) -> str:
        return f"{self.source}:{name}"

    def name_in(self, document_id: str) -> str:
        return document_id.removeprefix(f"{self.source}:")

    def version(self, thread: Thread) -> str:
        """Of the messages that are there: they never change themselves."""
        path = self.path(thread.messages[0].folder)
        told = [_READING, self.largest_message, path, *(one.key for one in thread.messages)]
        return hashlib.sha256(repr(told).encode()).hexdigest()

    def change(self, thread: Thread, outcomes: Mapping[str, Outcome]) -> Document | Unreadable:
        """The document, where at least one message can be read. `outcomes` are by key, of all."""
        sections = tuple(self._sections(thread, outcomes))
        if not sections:
            return self._unreadable(thread, outcomes)
        first = thread.messages[0]
        return Document(
            id=self.id_of(thread.name),
            source=self.source,
            title=_title(first),
            sections=sections,
            link=self.link(first),
            media_type=EML,
            access=self.access,
            version=self.version(thread) + _incomplete(outcomes.values()),
            metadata=_metadata(thread, outcomes),
            owners=_authors(thread, outcomes),
            created_at=first.moment,
            updated_at=thread.messages[-1].moment,
            parents=self.path(first.folder),
        )

    def _sections(self, thread: Thread, outcomes: Mapping[str, Outcome]) -> Iterator[Section]:
        said = Said()
        for message in thread.messages:
            match outcomes[message.key]:
                case Extracted() as read:
                    yield from self._of(message, read, said)
                case CannotRead():
                    pass

    def _of(self, message: Envelope, read: Extracted, said: Said) -> Iterator[Section]:
        attached = frozenset(read.metadata.get("attachments", ()))
        heading, link = named(message), self.link(message)
        texts = []
        for one in read.sections:
            text = one.text
            if one.kind == "text" and attached.isdisjoint(one.place.heading_path[:1]):
                texts.append(text)
                text = said.without_repeats(text)
            if text:
                path = (heading, *one.place.heading_path)
                place = replace(one.place, heading_path=path)
                yield replace(one, text=text, link=link, place=place)
        said.add("\n\n".join(texts))

    def _unreadable(self, thread: Thread, outcomes: Mapping[str, Outcome]) -> Unreadable:
        first = thread.messages[0]
        reasons = [str(one) for one in outcomes.values() if isinstance(one, CannotRead)]
        return Unreadable(
            document_id=self.id_of(thread.name),
            item=f"{first.sender}: {_title(first)}" if first.sender else _title(first),
            reason=reasons[0] if reasons else "no message of the conversation holds text",
            link=self.link(first),
        )


def _incomplete(outcomes: Iterable[Outcome]) -> str:
    """Makes the version another than that of the whole, so that it is read again."""
    return ":incomplete" if any(isinstance(one, NotGiven) for one in outcomes) else ""


def named(message: Envelope) -> str:
    """Who wrote it and when."""
    when = f"{message.moment:%Y-%m-%d %H:%M} UTC"
    return f"{message.sender}, {when}" if message.sender else when


def _title(message: Envelope) -> str:
    return without_reply_marks(message.subject) or message.subject or NO_SUBJECT


def _metadata(thread: Thread, outcomes: Mapping[str, Outcome]) -> Metadata:
    """What could not be read stands in it by name: messages and attachments."""
    read = [one for one in outcomes.values() if isinstance(one, Extracted)]
    found = {name: _first(_values(read, name), _MOST_PEOPLE) for name in _ADDRESSED}
    found |= {name: _first(_values(read, name), _MOST_ATTACHMENTS) for name in _ATTACHED}
    found["messages_unread"] = _first(_unread(thread, outcomes), _MOST_ATTACHMENTS)
    return {name: values for name, values in found.items() if values}


def _unread(thread: Thread, outcomes: Mapping[str, Outcome]) -> Iterator[str]:
    for message in thread.messages:
        match outcomes[message.key]:
            case CannotRead() as error:
                yield f"{named(message)} ({error})"
            case Extracted():
                pass


def _values(read: Sequence[Extracted], name: str) -> Iterator[str]:
    for one in read:
        values = one.metadata.get(name, ())
        yield from (values,) if isinstance(values, str) else values


def _first(values: Iterable[str], most: int) -> tuple[str, ...]:
    return tuple(islice(dict.fromkeys(values), most))


def _authors(thread: Thread, outcomes: Mapping[str, Outcome]) -> tuple[Person, ...]:
    read = (outcomes[message.key] for message in thread.messages)
    authors = (person for one in read if isinstance(one, Extracted) for person in one.authors)
    return tuple(islice(dict.fromkeys(authors), _MOST_PEOPLE))
