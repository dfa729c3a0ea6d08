"""A signed-in session with an IMAP server (RFC 3501), in terms of what a source asks.

The protocol is spoken by the standard library's imaplib, on a line of our own (`Line`), which bounds
every wait and every answer. Nothing is ever changed on the server: folders are opened by EXAMINE,
messages are fetched by PEEK.
"""

import imaplib
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeAlias

from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from connectors.http_client.address_guard import AllowedNetworks, resolve_addresses
from connectors.http_client.response import CertificateError
from connectors.http_client.transport import request_timeout, resolve_host
from connectors.sources.imap.errors import (
    BUSY,
    SHUT_OUT,
    SOON,
    TOO_MUCH,
    LineLost,
    Refused,
    codes,
    last,
    later,
    ok,
    words_of,
)
from connectors.sources.imap.folders import Folder, folder
from connectors.sources.imap.response_parser import Malformed, answers, attributes, number
from connectors.sources.imap.socket import Line

Security: TypeAlias = Literal["tls", "starttls", "plain", "plain-anywhere"]
SignIn: TypeAlias = Literal["password", "bearer"]

_SECONDS = 120.0
"""Of one command, besides those that its bytes may take."""
_SLOWEST = 100_000
"""Bytes a second."""
_LOOK_UP_SECONDS = 20.0
_FAREWELL_SECONDS = 5.0
_FAREWELL_BYTES = 10_000
_ANSWER_BYTES = 5_000_000
_HEADER_BYTES = 20_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    host: str
    port: int
    security: Security
    reach: AllowedNetworks
    authority: Path | None
    """A file of certificates that may have signed the server's, besides the public ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    user: str
    how: SignIn
    secret: str = field(repr=False)
    mend: str
    """What the owner must do where the server does not take it."""


@dataclass(frozen=True, slots=True)
class Opened:
    validity: int
    """UIDVALIDITY: UIDs are the same messages as long as it is the same."""
    messages: int


class _Client(imaplib.IMAP4):
    """imaplib on a line that is open already."""

    def __init__(self, line: Line) -> None:
        self._line = line
        super().__init__()

    def open(self, host: str = "", port: int = 0, timeout: float | None = None) -> None:
        """See imaplib: called once, before anything is read."""

    def read(self, size: int) -> bytes:
        return self._line.read(size)

    def readline(self) -> bytes:
        return self._line.readline()

    def send(self, data: Any) -> None:
        self._line.send(bytes(data))

    def shutdown(self) -> None:
        self._line.close()

    def socket(self) -> socket.socket:
        return self._line.socket


class Session:
    """Signed in; to be closed. Used by one thread at a time.

    Every method raises TemporarilyUnavailableError where the server breaks off, is busy or makes no sense, and
    ActionRequiredError where it does not let the account in (any more).
    """

    def __init__(self, server: Server, account: Account) -> None:
        self._server = server
        self._account = account
        self._is_broken = False
        self._line = _line(server)
        with ExitStack() as undone:
            undone.callback(self._line.close)
            self._begin()
            undone.pop_all()

    def close(self) -> None:
        if not self._is_broken:
            self._line.allow(_FAREWELL_SECONDS, _FAREWELL_BYTES)
            with suppress(imaplib.IMAP4.error, OSError, ValueError):
                self._client.logout()
        self._line.close()

    def offers(self, capability: str) -> bool:
        return capability in self._capabilities

    def folders(self) -> list[Folder]:
        """All that the server lists; at least one."""
        pattern = '"*"'
        if self.offers("SPECIAL-USE") and self.offers("LIST-EXTENDED"):
            pattern = '"*" RETURN (SPECIAL-USE)'
        with self._asking():
            found = [folder(one) for one in answers(ok(self._client.list('""', pattern)))]
            if not found:
                raise Malformed("it lists no folder, not even the inbox")
            return found

    def status(self, of: Folder) -> tuple[int, int, int]:
        """UIDVALIDITY, UIDNEXT and the number of messages."""
        with _of_folder(of, self._server.host), self._asking():
            names = "(UIDVALIDITY UIDNEXT MESSAGES)"
            found = list(answers(ok(self._client.status(of.quoted, names))))
            if len(found) != 1:
                raise Malformed("it tells nothing of a folder")
            told = attributes(found[0])
            return number(told, "UIDVALIDITY"), number(told, "UIDNEXT"), number(told, "MESSAGES")

    def open(self, which: Folder) -> Opened:
        """Open a folder for reading; the numbers of messages hold until the next one is opened."""
        with _of_folder(which, self._server.host), self._asking():
            exists = ok(self._client.select(which.quoted, readonly=True))
            validity = self._client.response("UIDVALIDITY")[1]
            told = {"UIDVALIDITY": last(validity), "EXISTS": last(exists)}
            return Opened(number(told, "UIDVALIDITY"), number(told, "EXISTS"))

    def fetch(self, first: int, last: int, items: str) -> list[Mapping[str, bytes]]:
        """Items of the messages with these numbers, counted from 1, both included.

        While nothing but this is asked, no message changes its number (RFC 3501, 7.4.1).

        Raises:
            Refused: the server does not give some of them.
        """
        with self._asking(_HEADER_BYTES):
            return _told(self._client.fetch(f"{first}:{last}", items))

    def fetch_uids(
        self, uids: Sequence[int], items: str, most_bytes: int
    ) -> list[Mapping[str, bytes]]:
        """Items of the messages with these UIDs; nothing of one that is not there.

        Raises:
            Refused: the server does not give some of them.
        """
        with self._asking(most_bytes):
            return _told(self._client.uid("FETCH", ",".join(map(str, uids)), items))

    def _begin(self) -> None:
        with self._asking():
            if self._server.security == "tls":
                self._secure()
            self._client = _Client(self._line)
            if self._server.security == "starttls":
                self._start_tls()
            self._read_capabilities()
        self._sign_in()
        with self._asking():
            self._read_capabilities()

    def _secure(self) -> None:
        self._line.secure(_trust(self._server.authority), self._server.host)

    def _start_tls(self) -> None:
        if self._client.state != "NONAUTH":
            raise Malformed("it signs in before TLS")
        self._read_capabilities()
        if not self.offers("STARTTLS"):
            raise ActionRequiredError(
                f"{self._server.host} does not offer STARTTLS on port {self._server.port}: choose tls"
                " (port 993) in the settings of the source"
            )
        ok(self._client.xatom("STARTTLS"))
        self._secure()

    def _read_capabilities(self) -> None:
        """Anew after TLS and after signing in: what was told before does not count any more."""
        words = b" ".join(one for one in ok(self._client.capability()) if isinstance(one, bytes))
        self._capabilities = frozenset(words.decode("ascii", "replace").upper().split())

    def _sign_in(self) -> None:
        if self._client.state == "AUTH":
            return
        if self._account.how == "password" and self.offers("LOGINDISABLED"):
            raise ActionRequiredError(
                f"{self._server.host} takes no password on this connection: choose tls or starttls in"
                " the settings of the source"
            )
        with self._asking():
            try:
                self._present()
            except imaplib.IMAP4.abort:
                raise
            except imaplib.IMAP4.error as error:
                self._shut_out(words_of(error))

    def _present(self) -> None:
        user, secret = self._account.user, self._account.secret
        if self._account.how == "bearer":
            self._client.authenticate(
                "XOAUTH2", _once(f"user={user}\1auth=Bearer {secret}\1\1".encode())
            )
        elif self.offers("AUTH=PLAIN"):
            self._client.authenticate("PLAIN", _once(f"\0{user}\0{secret}".encode()))
        elif f"{user}{secret}".isascii() and f"{user}{secret}".isprintable():
            self._client.login(user, secret)
        else:
            raise ActionRequiredError(
                f"{self._server.host} takes names and passwords of ASCII letters only:"
                f" {self._account.mend}"
            )

    def _shut_out(self, words: str) -> NoReturn:
        if codes(words) & (BUSY | TOO_MUCH | {"SERVERBUG"}):
            raise later(self._server.host, words)
        raise ActionRequiredError(
            f"{self._server.host} does not let {self._account.user} in ({words}):"
            f" {self._account.mend}"
        )

    @contextmanager
    def _asking(self, most_bytes: int = _ANSWER_BYTES) -> Iterator[None]:
        """One or a few commands, and all that may go wrong with them."""
        host = self._server.host
        self._line.allow(_SECONDS + most_bytes / _SLOWEST, most_bytes)
        try:
            yield
        except ssl.SSLCertVerificationError as error:
            raise CertificateError(
                f"{host} does not prove who it is: {error.verify_message}. Where a private authority"
                " signed its certificate, name the authority's file in the settings of the source."
            ) from error
        except ssl.SSLError as error:
            raise TemporarilyUnavailableError(
                f"no TLS with {host} ({error.reason or error}); is the port right?", SOON
            ) from error
        except OSError as error:
            self._is_broken = True
            raise LineLost(f"the connection to {host} was lost: {error}", SOON) from error
        except (ValueError, imaplib.IMAP4.error) as error:
            self._is_broken = True
            words = words_of(error)
            if codes(words) & SHUT_OUT:
                self._shut_out(words)
            raise later(host, words) from error
        except Refused as error:
            words = str(error)
            if codes(words) & SHUT_OUT:
                self._shut_out(words)
            if codes(words) & (BUSY | TOO_MUCH):
                raise later(host, words) from error
            raise


def _trust(authority: Path | None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if authority is not None:
        try:
            context.load_verify_locations(authority)
        except OSError as error:
            raise ActionRequiredError(
                f"{authority} is no file of certificates that can be read ({error}): correct authority"
                " in the settings of the source"
            ) from error
    return context


def _line(server: Server) -> Line:
    try:
        with request_timeout(_LOOK_UP_SECONDS):
            found = resolve_addresses(server.host, server.port, server.reach, resolve_host)
        _check_plain(server, found)
        return Line.to(found, server.port)
    except OSError as error:
        raise TemporarilyUnavailableError(
            f"{server.host} cannot be reached on port {server.port}: {error}", SOON
        ) from error


def _check_plain(server: Server, addresses: Sequence[str]) -> None:
    if server.security == "plain" and not all(ip_address(one).is_loopback for one in addresses):
        raise ActionRequiredError(
            f"mail and password would go to {server.host} for all to read: choose tls or starttls in"
            " the settings of the source, or plain-anywhere where the network is trusted"
        )


@contextmanager
def _of_folder(which: Folder, host: str) -> Iterator[None]:
    """A folder that cannot be opened must not look empty."""
    try:
        yield
    except Refused as error:
        name = "/".join(which.path)
        if "NOPERM" in codes(str(error)):
            raise ActionRequiredError(
                f"{host} does not let the folder {name} be read ({error}): let the account read it, or"
                " exclude it in the settings of the source"
            ) from error
        raise TemporarilyUnavailableError(
            f"{host} does not open the folder {name} ({error}); exclude it if that stays so", SOON
        ) from error


def _told(answer: tuple[str, list[Any]]) -> list[Mapping[str, bytes]]:
    return [attributes(one) for one in answers(ok(answer))]


def _once(words: bytes) -> Callable[[bytes], bytes]:
    """Says them first, and nothing to whatever is asked after that (an error told as a challenge)."""
    said = iter([words])
    return lambda _: next(said, b"")
