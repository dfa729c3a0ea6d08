"""The messages of an IMAP mailbox.

All headers are asked for whenever the folders' UIDVALIDITY, UIDNEXT or number of messages are other
than before: about 350 bytes a message. CONDSTORE would tell of flags only, which are not kept here,
and QRESYNC which UIDs went away, but not from what conversation.

A server may break the line over one message that it cannot read itself. So what fails is asked for
again in halves, until the one that is to blame is alone.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TypeAlias

from connectors.closing import Closing
from connectors.errors import TemporarilyUnavailableError
from connectors.extraction.result import CannotRead
from connectors.mail.conversation_document import NotGiven
from connectors.mail.headers import HEADERS, Envelope, envelope
from connectors.mail.sync import too_large
from connectors.sources.imap.errors import SOON, LineLost, Refused
from connectors.sources.imap.folders import Folder
from connectors.sources.imap.response_parser import Malformed, internal_date, number
from connectors.sources.imap.session import Session

_AT_ONCE = 500
"""Messages whose headers are asked for together."""
_LONGEST_HEADERS = 20_000
"""Bytes of a message; the rest is not asked for."""
_ITEMS = f"UID RFC822.SIZE INTERNALDATE BODY.PEEK[HEADER.FIELDS ({' '.join(HEADERS)})]<0.{_LONGEST_HEADERS}>"
_BODIES_AT_ONCE = 16_000_000
_MOST_UIDS = 200
_MOST_LOST = 50
"""Times that the line may break in a run, and is made anew."""
_LOOKS = 3
_THREAD = "X-GM-THRID"

Told: TypeAlias = Mapping[str, bytes]


class _Shifted(Exception):
    """The messages of the folder may have other numbers now."""


class ImapMailbox(Closing):
    """See `connectors.mail.sync.Mailbox`. To be closed."""

    def __init__(
        self,
        connect: Callable[[], Session],
        choose: Callable[[Sequence[Folder]], Sequence[Folder]],
        largest_message: int,
    ) -> None:
        """`choose` says which of the server's folders are meant."""
        self._connect = connect
        self._largest = largest_message
        self._validities: dict[str, int] = {}
        self._lost = 0
        self._session = connect()
        with ExitStack() as undone:
            undone.callback(self.close)
            self._folders = {one.key: one for one in choose(self._session.folders())}
            undone.pop_all()
        self.knows_threads = self._session.offers("X-GM-EXT-1")

    def close(self) -> None:
        self._session.close()

    def state(self) -> str:
        told = [(one.key, *self._session.status(one)) for one in self._folders.values()]
        return hashlib.sha256(json.dumps([self._largest, told]).encode()).hexdigest()

    def path(self, key: str) -> tuple[str, ...]:
        return self._folders[key].path

    def envelopes(self) -> Iterator[Envelope]:
        for one in self._folders.values():
            yield from self._of_folder(one)

    def bodies(self, messages: Sequence[Envelope]) -> Iterator[tuple[Envelope, bytes | CannotRead]]:
        for key in dict.fromkeys(message.folder for message in messages):
            self._open(self._folders[key])
            own = [message for message in messages if message.folder == key]
            for portion in _portions(own):
                missing = {message.number for message in portion}
                for message, body in self._bodies(self._folders[key], portion):
                    missing.discard(message.number)
                    yield message, body
                if missing:
                    self._check_gone(self._folders[key], sorted(missing))

    def _check_gone(self, one: Folder, uids: Sequence[int]) -> None:
        """A message that does not come must have gone: then the next run finds that by itself."""
        self._open(one)
        told = self._session.fetch_uids(uids, "(UID)", 1_000_000)
        if any("UID" in message and number(message, "UID") in uids for message in told):
            raise TemporarilyUnavailableError(
                "the server answers without the messages that it lists", SOON
            )

    def _open(self, one: Folder) -> int:
        """The number of its messages. UIDs of another validity are other messages."""
        opened = self._session.open(one)
        if self._validities.setdefault(one.key, opened.validity) != opened.validity:
            raise TemporarilyUnavailableError(
                f"the folder {'/'.join(one.path)} was made anew meanwhile", SOON
            )
        return opened.messages

    def _of_folder(self, one: Folder) -> Iterator[Envelope]:
        """Messages may go away meanwhile; then all is looked through again, lest others be missed."""
        for _ in range(_LOOKS):
            messages, count = self._open(one), 0
            try:
                for first in range(1, messages + 1, _AT_ONCE):
                    last = min(first + _AT_ONCE - 1, messages)
                    for found in self._envelopes(one, first, last, messages):
                        yield found
                        count += 1
            except _Shifted:
                continue
            if count >= messages:
                return
        raise TemporarilyUnavailableError(
            f"the folder {'/'.join(one.path)} changed each time that it was looked through", SOON
        )

    def _envelopes(self, one: Folder, first: int, last: int, messages: int) -> Iterator[Envelope]:
        fault = ""
        try:
            items = f"({_ITEMS} {_THREAD})" if self.knows_threads else f"({_ITEMS})"
            found = [self._envelope(one, told) for told in self._session.fetch(first, last, items)]
        except (Refused, Malformed) as error:
            fault = str(error)
        except LineLost as error:
            fault = str(error)
            if self._reopened(one, error) != messages:
                raise _Shifted from error
        if not fault:
            yield from (one for one in found if one is not None)
        elif first == last:
            yield self._nameless(one, first, fault)
        else:
            middle = (first + last) // 2
            yield from self._envelopes(one, first, middle, messages)
            yield from self._envelopes(one, middle + 1, last, messages)

    def _reopened(self, one: Folder, error: LineLost) -> int:
        self._lost += 1
        if self._lost > _MOST_LOST:
            raise error
        self._session.close()
        self._session = self._connect()
        return self._open(one)

    def _envelope(self, one: Folder, told: Told) -> Envelope | None:
        """Nothing for what the server tells unasked: flags that changed."""
        if "UID" not in told or _content(told) is None:
            return None
        found = envelope(
            _content(told) or b"",
            folder=one.key,
            number=number(told, "UID"),
            size=number(told, "RFC822.SIZE"),
            received=internal_date(told.get("INTERNALDATE", b"")),
        )
        if self.knows_threads:
            return replace(found, thread=f"gm-{number(told, _THREAD)}")
        return found

    def _nameless(self, one: Folder, place: int, fault: str) -> Envelope:
        """A message whose headers cannot be had."""
        try:
            told = next(iter(self._session.fetch(place, place, "(UID INTERNALDATE)")), {})
            uid = number(told, "UID")
        except (Refused, Malformed) as error:
            raise TemporarilyUnavailableError(
                f"the server does not name its messages: {error}", SOON
            ) from error
        named = hashlib.sha256(f"{one.key}\0{self._validities[one.key]}\0{uid}".encode())
        return Envelope(
            folder=one.key,
            number=uid,
            size=0,
            key=f"unread-{named.hexdigest()}",
            subject=f"message {uid} of {'/'.join(one.path)}",
            sent=internal_date(told.get("INTERNALDATE", b"")),
            fault=f"the server does not give it: {fault}",
        )

    def _bodies(
        self, one: Folder, portion: Sequence[Envelope]
    ) -> Iterator[tuple[Envelope, bytes | CannotRead]]:
        fault = ""
        found: list[tuple[Envelope, bytes | CannotRead]] = []
        try:
            found = list(self._fetched(portion))
        except (Refused, Malformed) as error:
            fault = str(error)
        except LineLost as error:
            fault = str(error)
            self._reopened(one, error)
        if not fault:
            yield from found
        elif len(portion) == 1:
            yield portion[0], NotGiven(f"the server does not give it: {fault}")
        else:
            middle = len(portion) // 2
            yield from self._bodies(one, portion[:middle])
            yield from self._bodies(one, portion[middle:])

    def _fetched(
        self, portion: Sequence[Envelope]
    ) -> Iterator[tuple[Envelope, bytes | CannotRead]]:
        by_uid = {message.number: message for message in portion}
        items = f"(UID BODY.PEEK[]<0.{self._largest + 1}>)"
        most = sum(min(2 * one.size, self._largest) + 10_000 for one in portion) + 1_000_000
        for told in self._session.fetch_uids(list(by_uid), items, most):
            body = _content(told)
            message = by_uid.get(number(told, "UID")) if "UID" in told else None
            if body is None or message is None:
                continue
            if len(body) > self._largest:
                yield message, CannotRead(too_large(len(body), self._largest))
            else:
                yield message, body


def _content(told: Told) -> bytes | None:
    return next((value for name, value in told.items() if name.startswith("BODY[")), None)


def _portions(messages: Sequence[Envelope]) -> Iterator[list[Envelope]]:
    portion: list[Envelope] = []
    size = 0
    for message in messages:
        if portion and (size + message.size > _BODIES_AT_ONCE or len(portion) >= _MOST_UIDS):
            yield portion
            portion, size = [], 0
        portion.append(message)
        size += message.size
    if portion:
        yield portion
