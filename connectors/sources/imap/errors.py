"""Errors that an IMAP server reports, and which of them may go away by themselves."""

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from connectors.errors import TemporarilyUnavailableError
from connectors.text_cleaning import to_one_line

RETRY_SOON = timedelta(minutes=2)
_RETRY_WHEN_LIMITED = timedelta(minutes=15)
"""Servers that limit requests do not say how long to wait."""
_MAX_MESSAGE_LENGTH = 300

# Response codes of RFC 5530 and RFC 9208, and of large providers.
_CODE = re.compile(r"\[([A-Z][A-Z0-9-]*)")
BUSY = {"UNAVAILABLE", "INUSE"}
RATE_LIMITED = {"THROTTLED", "LIMIT", "OVERQUOTA"}
ACCESS_DENIED = {"AUTHENTICATIONFAILED", "AUTHORIZATIONFAILED", "EXPIRED", "PRIVACYREQUIRED"}


class ConnectionLostError(TemporarilyUnavailableError):
    """The server closed the connection, or its responses make no sense; a new session may work."""


class CommandRefusedError(Exception):
    """The server refused one command; the message is the server's."""


def check_response(response: tuple[str, list[Any]]) -> list[Any]:
    """Return the data of a response of imaplib.

    Raises:
        CommandRefusedError: the server answered NO.
    """
    status, data = response
    if status != "OK":
        raise CommandRefusedError(to_text(last_value(data)))
    return data


def last_value(data: Sequence[Any] | None) -> bytes:
    """Return the last of several responses, which is the one that counts."""
    return data[-1] if data and isinstance(data[-1], bytes) else b""


def error_message(error: Exception) -> str:
    first = error.args[0] if error.args else ""
    return to_text(first if isinstance(first, bytes) else str(first).encode("utf-8", "replace"))


def to_text(message: bytes) -> str:
    return to_one_line(message.decode("utf-8", "replace"))[:_MAX_MESSAGE_LENGTH]


def response_codes(message: str) -> set[str]:
    return set(_CODE.findall(message))


def to_temporary_error(host: str, message: str) -> TemporarilyUnavailableError:
    codes = response_codes(message)
    if codes & RATE_LIMITED:
        return TemporarilyUnavailableError(
            f"{host} limits requests: {message}", _RETRY_WHEN_LIMITED
        )
    if codes & BUSY:
        return TemporarilyUnavailableError(f"{host} is not available now: {message}", RETRY_SOON)
    return ConnectionLostError(f"{host} sent an unexpected response: {message}", RETRY_SOON)
