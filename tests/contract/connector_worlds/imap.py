"""A mailbox on a real mail server, behind a proxy that injects errors."""

from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import cache
from pathlib import Path

from pydantic import SecretStr

from connectors.access import Access
from connectors.connector import Connector
from connectors.sources.imap.connector import ImapConnector, ImapCredential, ImapSettings, Password
from tests.contract.connector_worlds.world import (
    ITEMS,
    UNREADABLE,
    Expires,
    Garbles,
    IdOnMove,
    Limits,
    Moves,
    Shift,
    Shifts,
    World,
    edited_text,
    text,
    title,
)
from tests.support.services.imap import (
    HOST,
    PASSWORD,
    ImapProxy,
    InjectedResponse,
    dovecot,
    message,
)

_LARGEST = 20_000
_GARBLED_RESPONSES = {
    "html": InjectedResponse(b"<html><body>502</body></html>\r\n", disconnects=True),
    "cut": InjectedResponse(b"* 1 FETCH (UID 1 BODY[] {5000}\r\nFrom: a", disconnects=True),
    "another shape": InjectedResponse(b"* 1 FETCH (FLAGS (\\Seen))\r\n{tag} OK done\r\n"),
    "empty": InjectedResponse(b"{tag} OK done\r\n"),
}


class ImapWorld(World, Moves, Limits, Expires, Garbles, Shifts):
    name = "imap"
    id_on_move = IdOnMove.KEPT
    wait = timedelta(minutes=15)
    mending = "quarry sources edit 源"
    garblings = tuple(_GARBLED_RESPONSES)
    shifts = (Shift.REMOVED, Shift.ADDED)

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._maildir = dovecot().maildir()
        self._proxy = ImapProxy(dovecot().plain)
        self._files = {number: self._put(number) for number in range(ITEMS)}
        self._answers: dict[int, Path] = {}

    def close(self) -> None:
        self._proxy.close()

    def connect(self) -> Connector:
        settings = ImapSettings(
            host=HOST,
            port=self._proxy.port,
            security="plain",
            user=self._maildir.user,
            largest_message=_LARGEST,
            private_hosts=(HOST,),
        )
        credential = ImapCredential(sign_in=Password(password=SecretStr(PASSWORD)))
        return ImapConnector("源", settings, credential)

    def readers(self, number: int) -> Access:
        """A mailbox has one owner."""
        del number
        return Access.to([f"user:{self._maildir.user}"])

    def edit(self, number: int) -> None:
        """Mail is never edited; it is answered."""
        answer = message(
            f"Re: {title(number)}",
            edited_text(number),
            f"answer-{number:03}",
            From="Bo Ek <bo@example.com>",
            Date="Tue, 06 Jan 2026 10:00:00 +0000",
            In_Reply_To=f"<item-{number:03}@mail.example.com>",
        )
        self._answers[number] = self._maildir.put(answer)

    def remove(self, number: int) -> None:
        self._files.pop(number).unlink()
        if number in self._answers:
            self._answers.pop(number).unlink()

    def move(self, number: int) -> None:
        self._files[number] = self._maildir.move(self._files[number], "Archive")

    def limit(self, after: int) -> None:
        refusal = InjectedResponse(b"{tag} NO [THROTTLED] Too many commands\r\n")
        self._proxy.inject_after(after, lambda _: refusal)

    def relent(self) -> None:
        self._proxy.stop_injecting()

    def expire(self, after: int) -> None:
        self._proxy.inject_after(after, _deny_access)

    def renew(self) -> None:
        self._proxy.stop_injecting()

    def garble(self, how: str, after: int) -> None:
        self._proxy.inject_after(after, lambda _: _GARBLED_RESPONSES[how])

    def mend(self) -> None:
        self._proxy.stop_injecting()

    def shift(self, how: Shift) -> frozenset[int]:
        if how is Shift.REMOVED:
            act, numbers = self.remove, range(3, 6)
        else:
            act, numbers = self._add, range(ITEMS, ITEMS + 3)
        # Headers are fetched first, then the messages.
        self._proxy.run_before(b"BODY.PEEK[]", lambda: _each(act, numbers))
        return frozenset(numbers)

    def _add(self, number: int) -> None:
        self._put(number)

    def _put(self, number: int) -> Path:
        return self._maildir.put(_item(number))


@cache
def _item(number: int) -> bytes:
    filling = "\n" + "x" * 70
    body = text(number) + (filling * (_LARGEST // 60) if number == UNREADABLE else "")
    return message(title(number), body, f"item-{number:03}")


def _each(act: Callable[[int], None], numbers: Iterable[int]) -> None:
    for number in numbers:
        act(number)


def _deny_access(command: bytes) -> InjectedResponse:
    if command in (b"LOGIN", b"AUTHENTICATE"):
        return InjectedResponse(b"{tag} NO [AUTHENTICATIONFAILED] Authentication failed.\r\n")
    return InjectedResponse(b"{tag} NO [EXPIRED] Your password has ended.\r\n")
