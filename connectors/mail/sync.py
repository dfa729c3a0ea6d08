"""Syncing a mailbox: comparing all conversations with the known versions, and reading those that changed.

Whenever anything in a mailbox changed, the headers of all its messages are read and compared. A message
that was moved, removed or answered in any folder is found in the same way, and a run can be interrupted
anywhere.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Protocol, Self, TypeAlias

from connectors.batched import batched
from connectors.connector import (
    Change,
    Checkpoint,
    Deletion,
    DocumentCount,
    DocumentListing,
    KnownVersions,
    Unreadable,
    load_checkpoint,
)
from connectors.document import Document
from connectors.extraction.registry import EML, extract
from connectors.extraction.result import ExtractionError
from connectors.mail.conversation_document import (
    ConversationDocuments,
    MessageContent,
    MessageUnavailable,
)
from connectors.mail.headers import Envelope
from connectors.mail.threading_index import START, Thread, ThreadIndex, ThreadPosition

_CONVERSATIONS_PER_CHECKPOINT = 200
_IDS_PER_LOOKUP = 500
_FETCH_BYTES = 32_000_000
"""How many bytes of conversations are fetched together."""
_MAX_CONVERSATION_BYTES = 1_000_000_000
"""Further messages are named in the metadata and not read."""


FetchedMessage: TypeAlias = tuple[Envelope, bytes | ExtractionError]
"""A message, and its content or why it cannot be read."""


class Mailbox(Protocol):
    """A store of messages."""

    def read_state(self) -> str:
        """Return a value that changes whenever a message is added, removed or moved; cheap."""
        ...

    def read_envelopes(self) -> Iterator[Envelope]:
        """Yield the envelopes of all messages, folder by folder in a stable order."""
        ...

    def fetch_bodies(self, messages: Sequence[Envelope]) -> Iterator[FetchedMessage]:
        """Yield the messages in any order; one that was removed in the meantime may be left out."""
        ...


@dataclass(frozen=True, slots=True)
class _SyncCheckpoint:
    """The content of a checkpoint."""

    state: str
    """The state of the mailbox when the comparison began."""
    after: ThreadPosition | None
    """The last conversation that was compared; None when all were."""

    @classmethod
    def parse(cls, since: Checkpoint | None) -> Self | None:
        """Return None for a checkpoint that is not valid."""
        match load_checkpoint(since):
            case {"state": str(state), "after": None}:
                return cls(state, None)
            case {"state": str(state), "after": [int(latest), str(name)]}:
                return cls(state, ThreadPosition(latest, name))
            case _:
                return None

    def to_checkpoint(self) -> Checkpoint:
        after = None if self.after is None else [self.after.latest, self.after.name]
        return Checkpoint(json.dumps({"state": self.state, "after": after}))


def changes(
    mailbox: Mailbox,
    documents: ConversationDocuments,
    since: Checkpoint | None,
    known: KnownVersions,
) -> Iterator[Change]:
    """Yield changes of the newest conversations first, with a checkpoint after every 200. See `Connector.changes`."""
    progress = _SyncCheckpoint.parse(since)
    if progress is None or progress.after is None:
        state = mailbox.read_state()
        if progress is None or progress.state != state:
            progress = _SyncCheckpoint(state, START)
    if progress.after is not None:
        with _build_index(mailbox) as index:
            yield DocumentCount(index.count_threads())
            threads = index.threads(progress.after)
            for batch in batched(threads, _CONVERSATIONS_PER_CHECKPOINT):
                yield from _compare(batch, mailbox, documents, known)
                yield replace(progress, after=batch[-1].position).to_checkpoint()
    # The state is from the start of the run: what changed since then is compared in the next run.
    yield replace(progress, after=None).to_checkpoint()


def listing(mailbox: Mailbox, documents: ConversationDocuments) -> Iterator[DocumentListing]:
    """See `Connector.listing`."""
    with _build_index(mailbox) as index:
        for thread in index.threads():
            yield DocumentListing(documents.document_id(thread.name), documents.access)


def refetch(
    mailbox: Mailbox, documents: ConversationDocuments, document_ids: Sequence[str]
) -> Iterator[Change]:
    """See `Connector.refetch`."""
    with _build_index(mailbox) as index:
        for document_id in document_ids:
            thread = index.find(documents.thread_name(document_id))
            if thread is None:
                yield Deletion(document_id)
            else:
                yield from _read([thread], mailbox, documents)


@contextmanager
def _build_index(mailbox: Mailbox) -> Iterator[ThreadIndex]:
    with ThreadIndex() as index:
        for message in mailbox.read_envelopes():
            index.add(message)
        index.build()
        yield index


def _compare(
    batch: Sequence[Thread],
    mailbox: Mailbox,
    documents: ConversationDocuments,
    known: KnownVersions,
) -> Iterator[Change]:
    """Yield changes of a batch. Where conversations were joined, those that they were before are deleted."""
    former = [documents.document_id(name) for thread in batch for name in thread.former_names]
    current = [documents.document_id(thread.name) for thread in batch]
    versions: dict[str, str] = {}
    for ids in batched(dict.fromkeys([*current, *former]), _IDS_PER_LOOKUP):
        versions |= known(ids)
    yield from (Deletion(one) for one in dict.fromkeys(former) if one in versions)
    changed = [
        thread
        for document_id, thread in zip(current, batch, strict=True)
        if versions.get(document_id) != documents.version(thread)
    ]
    for group in _group_by_size(changed):
        yield from _read(group, mailbox, documents)


def _read(
    threads: Sequence[Thread], mailbox: Mailbox, documents: ConversationDocuments
) -> Iterator[Document | Unreadable]:
    wanted: list[Envelope] = []
    contents: dict[str, MessageContent] = {}
    for message, fault in _check_sizes(threads, documents.largest_message):
        if fault is None:
            wanted.append(message)
            contents[message.key] = MessageUnavailable("it was removed during the sync")
        else:
            contents[message.key] = ExtractionError(fault)
    for message, body in mailbox.fetch_bodies(wanted):
        contents[message.key] = _extract(body)
    for thread in threads:
        own = {message.key: contents[message.key] for message in thread.messages}
        yield documents.to_document(thread, own)


def _check_sizes(threads: Sequence[Thread], largest: int) -> Iterator[tuple[Envelope, str | None]]:
    """Yield each message with the reason why it is not to be read, if there is one."""
    for thread in threads:
        remaining = _MAX_CONVERSATION_BYTES
        for message in thread.messages:
            remaining -= message.size
            if message.fault or message.size > largest:
                yield message, message.fault or describe_too_large(message.size, largest)
            elif remaining < 0:
                yield message, f"the conversation is larger than {_MAX_CONVERSATION_BYTES:,} bytes"
            else:
                yield message, None


def describe_too_large(size: int, largest: int) -> str:
    return f"the message has {size:,} bytes; the limit is {largest:,}"


def _extract(body: bytes | ExtractionError) -> MessageContent:
    if isinstance(body, ExtractionError):
        return body
    try:
        return extract(body, EML)
    except ExtractionError as error:
        return error


def _group_by_size(threads: Iterable[Thread]) -> Iterator[list[Thread]]:
    """Group conversations up to `_FETCH_BYTES`; a larger one is a group of its own."""
    group: list[Thread] = []
    size = 0
    for thread in threads:
        own = sum(message.size for message in thread.messages)
        if group and size + own > _FETCH_BYTES:
            yield group
            group, size = [], 0
        group.append(thread)
        size += own
    if group:
        yield group
