"""Reading the messages of an IMAP mailbox.

Whenever UIDVALIDITY, UIDNEXT or the number of messages of a folder changes, all headers are fetched: about
350 bytes a message. CONDSTORE would only report changed flags, which are not indexed, and QRESYNC would
report removed UIDs, but not the conversations that they belonged to.

A server may close the connection over one message that it cannot read itself. So a request that fails is
split in halves and repeated, until the faulty message is alone.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TypeAlias

from connectors.closing import Closing
from connectors.errors import TemporarilyUnavailableError
from connectors.extraction.result import ExtractionError
from connectors.mail.conversation_document import MessageUnavailable
from connectors.mail.headers import HEADERS, Envelope, parse_envelope
from connectors.mail.sync import FetchedMessage, describe_too_large
from connectors.sources.imap.errors import RETRY_SOON, CommandRefusedError, ConnectionLostError
from connectors.sources.imap.folders import Folder
from connectors.sources.imap.response_parser import (
    MalformedResponseError,
    parse_internal_date,
    parse_number,
)
from connectors.sources.imap.session import Session

_HEADERS_PER_FETCH = 500
_MAX_HEADER_BYTES = 20_000
"""Per message; the rest is not fetched."""
_ITEMS = f"UID RFC822.SIZE INTERNALDATE BODY.PEEK[HEADER.FIELDS ({' '.join(HEADERS)})]<0.{_MAX_HEADER_BYTES}>"
_BODY_BYTES_PER_FETCH = 16_000_000
_UIDS_PER_FETCH = 200
_MAX_RECONNECTS = 50
"""In one run."""
_LISTING_ATTEMPTS = 3
_THREAD_ID = "X-GM-THRID"

FetchedItems: TypeAlias = Mapping[str, bytes]


class _NumbersChangedError(Exception):
    """The messages of the folder may have other numbers now."""


class ImapMailbox(Closing):
    """Implements `connectors.mail.sync.Mailbox`."""

    def __init__(
        self,
        connect: Callable[[], Session],
        select: Callable[[Sequence[Folder]], Sequence[Folder]],
        largest_message: int,
    ) -> None:
        """Connect, and list the folders; `select` returns those of the server's folders that are read."""
        self._connect = connect
        self._largest = largest_message
        self._validities: dict[str, int] = {}
        self._reconnects = 0
        self._session = connect()
        with ExitStack() as cleanup:
            cleanup.callback(self.close)
            self._folders = {one.key: one for one in select(self._session.list_folders())}
            cleanup.pop_all()
        self.has_thread_ids = self._session.has_capability("X-GM-EXT-1")

    def close(self) -> None:
        self._session.close()

    def read_state(self) -> str:
        status = [(one.key, *self._session.folder_status(one)) for one in self._folders.values()]
        return hashlib.sha256(json.dumps([self._largest, status]).encode()).hexdigest()

    def path(self, key: str) -> tuple[str, ...]:
        return self._folders[key].path

    def read_envelopes(self) -> Iterator[Envelope]:
        for folder in self._folders.values():
            yield from self._read_folder(folder)

    def fetch_bodies(self, messages: Sequence[Envelope]) -> Iterator[FetchedMessage]:
        for key in dict.fromkeys(message.folder for message in messages):
            folder = self._folders[key]
            self._open(folder)
            for batch in _split_batches([one for one in messages if one.folder == key]):
                missing = {message.number for message in batch}
                for message, body in self._fetch_or_split(folder, batch):
                    missing.discard(message.number)
                    yield message, body
                if missing:
                    self._check_removed(folder, sorted(missing))

    def _check_removed(self, folder: Folder, uids: Sequence[int]) -> None:
        """Check that messages that were not returned do not exist; the next run then notices that."""
        self._open(folder)
        fetched = self._session.fetch_uids(uids, "(UID)", 1_000_000)
        if any("UID" in items and parse_number(items, "UID") in uids for items in fetched):
            raise TemporarilyUnavailableError(
                "the server does not return messages that it lists", RETRY_SOON
            )

    def _open(self, folder: Folder) -> int:
        """Return the number of messages. If UIDVALIDITY changed, the UIDs are no longer valid."""
        opened = self._session.open_folder(folder)
        known = self._validities.setdefault(folder.key, opened.uid_validity)
        if known != opened.uid_validity:
            raise TemporarilyUnavailableError(
                f"the folder {'/'.join(folder.path)} was recreated during the sync", RETRY_SOON
            )
        return opened.message_count

    def _read_folder(self, folder: Folder) -> Iterator[Envelope]:
        """Read a folder, and again if messages were removed in the meantime: others may have been skipped."""
        for _ in range(_LISTING_ATTEMPTS):
            total, count = self._open(folder), 0
            try:
                for first in range(1, total + 1, _HEADERS_PER_FETCH):
                    last = min(first + _HEADERS_PER_FETCH - 1, total)
                    for found in self._read_range(folder, first, last, total):
                        yield found
                        count += 1
            except _NumbersChangedError:
                continue
            if count >= total:
                return
        raise TemporarilyUnavailableError(
            f"the folder {'/'.join(folder.path)} kept changing while it was read", RETRY_SOON
        )

    def _read_range(self, folder: Folder, first: int, last: int, total: int) -> Iterator[Envelope]:
        fault = ""
        try:
            items = f"({_ITEMS} {_THREAD_ID})" if self.has_thread_ids else f"({_ITEMS})"
            fetched = self._session.fetch(first, last, items)
            found = [self._parse_envelope(folder, one) for one in fetched]
        except (CommandRefusedError, MalformedResponseError) as error:
            fault = str(error)
        except ConnectionLostError as error:
            fault = str(error)
            if self._reconnect(folder, error) != total:
                raise _NumbersChangedError from error
        if not fault:
            yield from (one for one in found if one is not None)
        elif first == last:
            yield self._faulty_envelope(folder, first, fault)
        else:
            middle = (first + last) // 2
            yield from self._read_range(folder, first, middle, total)
            yield from self._read_range(folder, middle + 1, last, total)

    def _reconnect(self, folder: Folder, error: ConnectionLostError) -> int:
        self._reconnects += 1
        if self._reconnects > _MAX_RECONNECTS:
            raise error
        self._session.close()
        self._session = self._connect()
        return self._open(folder)

    def _parse_envelope(self, folder: Folder, items: FetchedItems) -> Envelope | None:
        """Return None for what the server sends without being asked, such as changed flags."""
        headers = _body_item(items)
        if "UID" not in items or headers is None:
            return None
        found = parse_envelope(
            headers,
            folder=folder.key,
            number=parse_number(items, "UID"),
            size=parse_number(items, "RFC822.SIZE"),
            received=parse_internal_date(items.get("INTERNALDATE", b"")),
        )
        if self.has_thread_ids:
            return replace(found, thread=f"gm-{parse_number(items, _THREAD_ID)}")
        return found

    def _faulty_envelope(self, folder: Folder, number: int, fault: str) -> Envelope:
        """Make the envelope of a message whose headers the server does not return."""
        try:
            items = next(iter(self._session.fetch(number, number, "(UID INTERNALDATE)")), {})
            uid = parse_number(items, "UID")
        except (CommandRefusedError, MalformedResponseError) as error:
            raise TemporarilyUnavailableError(
                f"the server does not return the UIDs of its messages: {error}", RETRY_SOON
            ) from error
        identity = f"{folder.key}\0{self._validities[folder.key]}\0{uid}".encode()
        return Envelope(
            folder=folder.key,
            number=uid,
            size=0,
            key=f"unread-{hashlib.sha256(identity).hexdigest()}",
            subject=f"message {uid} of {'/'.join(folder.path)}",
            sent=parse_internal_date(items.get("INTERNALDATE", b"")),
            fault=f"the server does not return it: {fault}",
        )

    def _fetch_or_split(
        self, folder: Folder, batch: Sequence[Envelope]
    ) -> Iterator[FetchedMessage]:
        fault = ""
        found: list[FetchedMessage] = []
        try:
            found = list(self._fetch(batch))
        except (CommandRefusedError, MalformedResponseError) as error:
            fault = str(error)
        except ConnectionLostError as error:
            fault = str(error)
            self._reconnect(folder, error)
        if not fault:
            yield from found
        elif len(batch) == 1:
            yield batch[0], MessageUnavailable(f"the server does not return it: {fault}")
        else:
            middle = len(batch) // 2
            yield from self._fetch_or_split(folder, batch[:middle])
            yield from self._fetch_or_split(folder, batch[middle:])

    def _fetch(self, batch: Sequence[Envelope]) -> Iterator[FetchedMessage]:
        by_uid = {message.number: message for message in batch}
        items = f"(UID BODY.PEEK[]<0.{self._largest + 1}>)"
        max_bytes = sum(min(2 * one.size, self._largest) + 10_000 for one in batch) + 1_000_000
        for fetched in self._session.fetch_uids(list(by_uid), items, max_bytes):
            body = _body_item(fetched)
            message = by_uid.get(parse_number(fetched, "UID")) if "UID" in fetched else None
            if body is None or message is None:
                continue
            if len(body) > self._largest:
                yield message, ExtractionError(describe_too_large(len(body), self._largest))
            else:
                yield message, body


def _body_item(items: FetchedItems) -> bytes | None:
    return next((value for name, value in items.items() if name.startswith("BODY[")), None)


def _split_batches(messages: Sequence[Envelope]) -> Iterator[list[Envelope]]:
    batch: list[Envelope] = []
    size = 0
    for message in messages:
        is_full = size + message.size > _BODY_BYTES_PER_FETCH or len(batch) >= _UIDS_PER_FETCH
        if batch and is_full:
            yield batch
            batch, size = [], 0
        batch.append(message)
        size += message.size
    if batch:
        yield batch
