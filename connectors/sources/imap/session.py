"""A signed-in session with an IMAP server (RFC 3501).

The protocol is implemented by the standard library's imaplib, on a socket of our own. Nothing is changed
on the server: folders are opened by EXAMINE, messages are fetched by BODY.PEEK.
"""

import imaplib
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn, TypeAlias

from connectors.errors import InvalidInputError, SourceAuthError, TemporarilyUnavailableError
from connectors.http_client.response import CertificateError
from connectors.sources.imap.errors import (
    ACCESS_DENIED,
    BUSY,
    RATE_LIMITED,
    RETRY_SOON,
    CommandRefusedError,
    ConnectionLostError,
    check_response,
    error_message,
    last_value,
    response_codes,
    to_temporary_error,
)
from connectors.sources.imap.folders import Folder, parse_folder
from connectors.sources.imap.response_parser import (
    MalformedResponseError,
    group_responses,
    parse_attributes,
    parse_number,
)
from connectors.sources.imap.socket import BoundedSocket, Server, connect, make_tls_context

Mechanism: TypeAlias = Literal["password", "bearer"]

_COMMAND_SECONDS = 120.0
"""For each command, in addition to the time for the bytes of its response."""
_MIN_BYTES_PER_SECOND = 100_000
_LOGOUT_SECONDS = 5.0
_LOGOUT_BYTES = 10_000
_RESPONSE_BYTES = 5_000_000
_HEADER_BYTES = 20_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    user: str
    mechanism: Mechanism
    secret: str = field(repr=False)
    hint: str
    """What to do if the server does not accept it."""


@dataclass(frozen=True, slots=True)
class OpenedFolder:
    uid_validity: int
    """UIDs identify the same messages as long as this stays the same."""
    message_count: int


class _Client(imaplib.IMAP4):
    """imaplib on a socket that is already connected."""

    def __init__(self, connection: BoundedSocket) -> None:
        self._connection = connection
        super().__init__()

    def open(self, host: str = "", port: int = 0, timeout: float | None = None) -> None:
        """Do nothing when imaplib calls this to connect."""

    def read(self, size: int) -> bytes:
        return self._connection.read(size)

    def readline(self) -> bytes:
        return self._connection.readline()

    def send(self, data: Any) -> None:
        self._connection.send(bytes(data))

    def shutdown(self) -> None:
        self._connection.close()

    def socket(self) -> socket.socket:
        return self._connection.socket


class Session:
    """A session of one account; not safe for use by several threads.

    Every method raises TemporarilyUnavailableError if the connection fails, the server is busy or its
    responses are malformed, and ActionRequiredError if it does not accept the account (any more).
    """

    def __init__(self, server: Server, account: Account) -> None:
        self._server = server
        self._account = account
        self._is_broken = False
        self._connection = connect(server)
        with ExitStack() as cleanup:
            cleanup.callback(self._connection.close)
            self._begin()
            cleanup.pop_all()

    def close(self) -> None:
        if not self._is_broken:
            self._connection.set_limits(_LOGOUT_SECONDS, _LOGOUT_BYTES)
            with suppress(imaplib.IMAP4.error, OSError, ValueError):
                self._client.logout()
        self._connection.close()

    def has_capability(self, capability: str) -> bool:
        return capability in self._capabilities

    def list_folders(self) -> list[Folder]:
        """Return all folders; at least one."""
        pattern = '"*"'
        if self.has_capability("SPECIAL-USE") and self.has_capability("LIST-EXTENDED"):
            pattern = '"*" RETURN (SPECIAL-USE)'
        with self._command():
            data = check_response(self._client.list('""', pattern))
            found = [parse_folder(one) for one in group_responses(data)]
            if not found:
                raise MalformedResponseError("no folders, not even the inbox")
            return found

    def folder_status(self, folder: Folder) -> tuple[int, int, int]:
        """Return UIDVALIDITY, UIDNEXT and the number of messages."""
        with self._folder_command(folder):
            names = ("UIDVALIDITY", "UIDNEXT", "MESSAGES")
            data = self._client.status(folder.quoted_name, f"({' '.join(names)})")
            responses = list(group_responses(check_response(data)))
            if len(responses) != 1:
                raise MalformedResponseError("no response to STATUS")
            status = parse_attributes(responses[0])
            validity, next_uid, count = (parse_number(status, name) for name in names)
            return validity, next_uid, count

    def open_folder(self, folder: Folder) -> OpenedFolder:
        """Open a folder for reading; message numbers are valid until the next one is opened."""
        with self._folder_command(folder):
            exists = check_response(self._client.select(folder.quoted_name, readonly=True))
            validity = self._client.response("UIDVALIDITY")[1]
            values = {"UIDVALIDITY": last_value(validity), "EXISTS": last_value(exists)}
            return OpenedFolder(parse_number(values, "UIDVALIDITY"), parse_number(values, "EXISTS"))

    def fetch(self, first: int, last: int, items: str) -> list[Mapping[str, bytes]]:
        """Fetch items of the messages with the numbers `first` to `last`.

        As long as no other command is sent, message numbers do not change (RFC 3501, 7.4.1).

        Raises:
            CommandRefusedError: the server does not return some of them.
        """
        with self._command(_HEADER_BYTES):
            return _parse_fetch(self._client.fetch(f"{first}:{last}", items))

    def fetch_uids(
        self, uids: Sequence[int], items: str, max_bytes: int
    ) -> list[Mapping[str, bytes]]:
        """Fetch items of the messages with these UIDs; those that do not exist are left out.

        Raises:
            CommandRefusedError: the server does not return some of them.
        """
        with self._command(max_bytes):
            return _parse_fetch(self._client.uid("FETCH", ",".join(map(str, uids)), items))

    def _begin(self) -> None:
        with self._command():
            if self._server.security == "tls":
                self._secure()
            self._client = _Client(self._connection)
            if self._server.security == "starttls":
                self._start_tls()
            self._read_capabilities()
        self._sign_in()
        with self._command():
            self._read_capabilities()

    def _secure(self) -> None:
        context = make_tls_context(self._server.authority)
        self._connection.start_tls(context, self._server.host)

    def _start_tls(self) -> None:
        if self._client.state != "NONAUTH":
            raise MalformedResponseError("the server signs in before TLS")
        self._read_capabilities()
        if not self.has_capability("STARTTLS"):
            raise InvalidInputError(
                f"{self._server.host} does not offer STARTTLS on port {self._server.port}: choose tls"
                " (port 993) in the settings of the source"
            )
        check_response(self._client.xatom("STARTTLS"))
        self._secure()

    def _read_capabilities(self) -> None:
        """Read them again after TLS and after signing in: earlier ones are no longer valid."""
        data = check_response(self._client.capability())
        joined = b" ".join(one for one in data if isinstance(one, bytes))
        self._capabilities = frozenset(joined.decode("ascii", "replace").upper().split())

    def _sign_in(self) -> None:
        if self._client.state == "AUTH":
            return
        if self._account.mechanism == "password" and self.has_capability("LOGINDISABLED"):
            raise InvalidInputError(
                f"{self._server.host} does not accept passwords on this connection: choose tls or"
                " starttls in the settings of the source"
            )
        with self._command():
            try:
                self._authenticate()
            except imaplib.IMAP4.abort:
                raise
            except imaplib.IMAP4.error as error:
                self._raise_denied(error_message(error))

    def _authenticate(self) -> None:
        user, secret = self._account.user, self._account.secret
        if self._account.mechanism == "bearer":
            response = f"user={user}\1auth=Bearer {secret}\1\1".encode()
            self._client.authenticate("XOAUTH2", _respond_once(response))
        elif self.has_capability("AUTH=PLAIN"):
            self._client.authenticate("PLAIN", _respond_once(f"\0{user}\0{secret}".encode()))
        elif f"{user}{secret}".isascii() and f"{user}{secret}".isprintable():
            self._client.login(user, secret)
        else:
            raise SourceAuthError(
                f"{self._server.host} accepts only names and passwords of ASCII characters:"
                f" {self._account.hint}"
            )

    def _raise_denied(self, message: str) -> NoReturn:
        if response_codes(message) & (BUSY | RATE_LIMITED | {"SERVERBUG"}):
            raise to_temporary_error(self._server.host, message)
        raise SourceAuthError(
            f"{self._server.host} does not let {self._account.user} sign in ({message}):"
            f" {self._account.hint}"
        )

    @contextmanager
    def _command(self, max_bytes: int = _RESPONSE_BYTES) -> Iterator[None]:
        """Limit one or a few commands, and translate their errors."""
        host = self._server.host
        seconds = _COMMAND_SECONDS + max_bytes / _MIN_BYTES_PER_SECOND
        self._connection.set_limits(seconds, max_bytes)
        try:
            yield
        except ssl.SSLCertVerificationError as error:
            raise CertificateError(
                f"the certificate of {host} is not valid: {error.verify_message}. If a private"
                " authority signed it, set authority in the settings of the source."
            ) from error
        except ssl.SSLError as error:
            raise TemporarilyUnavailableError(
                f"no TLS connection to {host} ({error.reason or error}); is the port right?",
                RETRY_SOON,
            ) from error
        except OSError as error:
            self._is_broken = True
            message = f"the connection to {host} was lost: {error}"
            raise ConnectionLostError(message, RETRY_SOON) from error
        except (ValueError, imaplib.IMAP4.error) as error:
            self._is_broken = True
            message = error_message(error)
            if response_codes(message) & ACCESS_DENIED:
                self._raise_denied(message)
            raise to_temporary_error(host, message) from error
        except CommandRefusedError as error:
            message = str(error)
            if response_codes(message) & ACCESS_DENIED:
                self._raise_denied(message)
            if response_codes(message) & (BUSY | RATE_LIMITED):
                raise to_temporary_error(host, message) from error
            raise

    @contextmanager
    def _folder_command(self, folder: Folder) -> Iterator[None]:
        """Do as `_command`, and raise an error for a folder that cannot be opened, lest it look empty."""
        host, name = self._server.host, "/".join(folder.path)
        try:
            with self._command():
                yield
        except CommandRefusedError as error:
            if "NOPERM" in response_codes(str(error)):
                raise SourceAuthError(
                    f"{host} does not allow reading the folder {name} ({error}): let the account read"
                    " it, or exclude it in the settings of the source"
                ) from error
            raise TemporarilyUnavailableError(
                f"{host} does not open the folder {name} ({error}); exclude it if this persists",
                RETRY_SOON,
            ) from error


def _parse_fetch(response: tuple[str, list[Any]]) -> list[Mapping[str, bytes]]:
    return [parse_attributes(one) for one in group_responses(check_response(response))]


def _respond_once(response: bytes) -> Callable[[bytes], bytes]:
    """Answer the first challenge; a further one reports an error, and wants an empty answer."""
    responses = iter([response])
    return lambda _: next(responses, b"")
