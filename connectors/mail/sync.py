"""From a mailbox to changes: every conversation compared with what Quarry holds, the changed ones read.

A mailbox is compared as a whole, by its headers alone, whenever anything in it is other than at the
end of the last run; else nothing is asked. So a message that was moved, removed or answered in
whatever folder is found in one and the same way, and a run can break off anywhere.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Protocol, Self

from connectors.batched import portions
from connectors.checkpoints import stored
from connectors.connector import (
    Change,
    Checkpoint,
    Deletion,
    Known,
    Listed,
    Unreadable,
)
from connectors.document import Document
from connectors.extraction.media_types import EML
from connectors.extraction.registry import extract
from connectors.extraction.result import CannotRead
from connectors.mail.conversation_document import Conversations, NotGiven, Outcome
from connectors.mail.headers import Envelope
from connectors.mail.threading_index import NEWEST, Position, Thread, ThreadIndex

_A_CHECKPOINT = 200
"""Conversations."""
_ASKED_AT_ONCE = 500
"""Ids of which `Known` is asked."""
_READ_AT_ONCE = 32_000_000
"""Bytes of conversations that are asked for together."""
_LARGEST_CONVERSATION = 1_000_000_000
"""Bytes; the messages beyond are named and not read."""


class Mailbox(Protocol):
    """Messages that are kept somewhere."""

    def state(self) -> str:
        """What is another whenever a message came, went or moved; cheap."""
        ...

    def envelopes(self) -> Iterator[Envelope]:
        """Of every message, in a stable order of the folders."""
        ...

    def bodies(self, messages: Sequence[Envelope]) -> Iterator[tuple[Envelope, bytes | CannotRead]]:
        """The messages themselves, in any order; one that is gone meanwhile may be left out."""
        ...


@dataclass(frozen=True, slots=True)
class _Mark:
    """What a checkpoint says."""

    state: str
    """Of the mailbox when the comparison began."""
    after: Position | None
    """The last conversation that was compared; none where all were."""

    @classmethod
    def of(cls, since: Checkpoint | None) -> Self | None:
        """Nothing where it says nothing sensible: then the comparison begins from the start."""
        match stored(since):
            case {"state": str(state), "after": None}:
                return cls(state, None)
            case {"state": str(state), "after": [int(latest), str(name)]}:
                return cls(state, Position(latest, name))
            case _:
                return None

    def checkpoint(self) -> Checkpoint:
        after = None if self.after is None else [self.after.latest, self.after.name]
        return Checkpoint(json.dumps({"state": self.state, "after": after}))


def changes(
    mailbox: Mailbox, conversations: Conversations, since: Checkpoint | None, known: Known
) -> Iterator[Change]:
    """See `Connector.changes`. Newest conversations first, a checkpoint after every 200."""
    mark = _Mark.of(since)
    if mark is None or mark.after is None:
        state = mailbox.state()
        if mark is None or mark.state != state:
            mark = _Mark(state, NEWEST)
    if mark.after is not None:
        with _joined(mailbox) as index:
            for batch in portions(index.threads(mark.after), _A_CHECKPOINT):
                yield from _compared(batch, mailbox, conversations, known)
                yield replace(mark, after=batch[-1].position).checkpoint()
    # The state is that of the beginning: what came meanwhile is compared in the next run.
    yield replace(mark, after=None).checkpoint()


def listing(mailbox: Mailbox, conversations: Conversations) -> Iterator[Listed]:
    """See `Connector.listing`."""
    with _joined(mailbox) as index:
        for thread in index.threads():
            yield Listed(conversations.id_of(thread.name), conversations.access)


def again(
    mailbox: Mailbox, conversations: Conversations, document_ids: Sequence[str]
) -> Iterator[Change]:
    """See `Connector.again`."""
    with _joined(mailbox) as index:
        for document_id in document_ids:
            thread = index.named(conversations.name_in(document_id))
            if thread is None:
                yield Deletion(document_id)
            else:
                yield from _read([thread], mailbox, conversations)


@contextmanager
def _joined(mailbox: Mailbox) -> Iterator[ThreadIndex]:
    with ThreadIndex() as index:
        for message in mailbox.envelopes():
            index.add(message)
        index.join()
        yield index


def _compared(
    batch: Sequence[Thread], mailbox: Mailbox, conversations: Conversations, known: Known
) -> Iterator[Change]:
    """What changed among these. Conversations that have grown into one are held once."""
    former = [conversations.id_of(name) for thread in batch for name in thread.other_names]
    own = [conversations.id_of(thread.name) for thread in batch]
    held: dict[str, str] = {}
    for ids in portions(dict.fromkeys([*own, *former]), _ASKED_AT_ONCE):
        held |= known(ids)
    yield from (Deletion(one) for one in dict.fromkeys(former) if one in held)
    changed = [
        thread
        for document_id, thread in zip(own, batch, strict=True)
        if held.get(document_id) != conversations.version(thread)
    ]
    for together in _read_together(changed):
        yield from _read(together, mailbox, conversations)


def _read(
    threads: Sequence[Thread], mailbox: Mailbox, conversations: Conversations
) -> Iterator[Document | Unreadable]:
    wanted: list[Envelope] = []
    outcomes: dict[str, Outcome] = {}
    for message, fault in _with_faults(threads, conversations.largest_message):
        if fault is None:
            wanted.append(message)
            outcomes[message.key] = NotGiven("it went away while it was read")
        else:
            outcomes[message.key] = CannotRead(fault)
    for message, body in mailbox.bodies(wanted):
        outcomes[message.key] = _extracted(body)
    for thread in threads:
        own = {message.key: outcomes[message.key] for message in thread.messages}
        yield conversations.change(thread, own)


def _with_faults(threads: Sequence[Thread], largest: int) -> Iterator[tuple[Envelope, str | None]]:
    """Each message, and what speaks against asking for it."""
    for thread in threads:
        left = _LARGEST_CONVERSATION
        for message in thread.messages:
            left -= message.size
            if message.fault or message.size > largest:
                yield message, message.fault or too_large(message.size, largest)
            elif left < 0:
                yield message, f"the conversation is larger than {_LARGEST_CONVERSATION:,} bytes"
            else:
                yield message, None


def too_large(size: int, largest: int) -> str:
    return f"the message has {size:,} bytes; the limit is {largest:,}"


def _extracted(body: bytes | CannotRead) -> Outcome:
    if isinstance(body, CannotRead):
        return body
    try:
        return extract(body, EML)
    except CannotRead as error:
        return error


def _read_together(threads: Iterable[Thread]) -> Iterator[list[Thread]]:
    """Conversations of bounded size together; a larger one by itself."""
    together: list[Thread] = []
    size = 0
    for thread in threads:
        own = sum(message.size for message in thread.messages)
        if together and size + own > _READ_AT_ONCE:
            yield together
            together, size = [], 0
        together.append(thread)
        size += own
    if together:
        yield together
