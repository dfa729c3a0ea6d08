"""What an IMAP server says where it does not do what it was asked, and what to make of it."""

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from connectors.errors import TemporarilyUnavailableError
from connectors.extraction.result import one_line

SOON = timedelta(minutes=2)
_LATER = timedelta(minutes=15)
"""Servers say that they are asked too often, and not how long to wait."""
_LONGEST_WORDS = 300

# Response codes of RFC 5530 and 9208, and those of large providers.
_CODE = re.compile(r"\[([A-Z][A-Z0-9-]*)")
BUSY = {"UNAVAILABLE", "INUSE"}
TOO_MUCH = {"THROTTLED", "LIMIT", "OVERQUOTA"}
SHUT_OUT = {"AUTHENTICATIONFAILED", "AUTHORIZATIONFAILED", "EXPIRED", "PRIVACYREQUIRED"}


class LineLost(TemporarilyUnavailableError):
    """The server broke off, or said what makes no sense; a new session may do better."""


class Refused(Exception):
    """The server says no to this one thing; `str` is what it says."""


def ok(answer: tuple[str, list[Any]]) -> list[Any]:
    kind, data = answer
    if kind != "OK":
        raise Refused(shown(last(data)))
    return data


def last(data: Sequence[Any] | None) -> bytes:
    """Of several answers the last one counts."""
    return data[-1] if data and isinstance(data[-1], bytes) else b""


def words_of(error: Exception) -> str:
    first = error.args[0] if error.args else ""
    return shown(first if isinstance(first, bytes) else str(first).encode("utf-8", "replace"))


def shown(words: bytes) -> str:
    return one_line(words.decode("utf-8", "replace"))[:_LONGEST_WORDS]


def codes(words: str) -> set[str]:
    return set(_CODE.findall(words))


def later(host: str, words: str) -> TemporarilyUnavailableError:
    if codes(words) & TOO_MUCH:
        return TemporarilyUnavailableError(f"{host} asks to wait: {words}", _LATER)
    if codes(words) & BUSY:
        return TemporarilyUnavailableError(f"{host} does not answer now: {words}", SOON)
    return LineLost(f"{host} does not answer as it should: {words}", SOON)
