"""Settings that all sources of mail share: whose it is, and which folders are meant."""

from collections.abc import Sequence
from typing import Annotated, TypeAlias

from pydantic import AfterValidator

from connectors.document import NOBODY, Access, reader_token
from connectors.globs import Glob


def _owner(owner: str) -> str:
    return owner and reader_token(f"user:{owner}").removeprefix("user:")


def _tokens(readers: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(reader_token, readers))


def _understood(patterns: tuple[str, ...]) -> tuple[str, ...]:
    for pattern in patterns:
        Glob.of(pattern)
    return patterns


Owner: TypeAlias = Annotated[str, AfterValidator(_owner)]
"""An e-mail address, or nothing."""

ReaderTokens: TypeAlias = Annotated[tuple[str, ...], AfterValidator(_tokens)]

Globs: TypeAlias = Annotated[tuple[str, ...], AfterValidator(_understood)]


def access_to(owner: str, readers: Sequence[str]) -> Access:
    """Of a shared mailbox its readers, else the owner; nobody, where that is no e-mail address."""
    if readers:
        return Access.to(readers)
    try:
        return Access.to([f"user:{owner}"])
    except ValueError:
        return NOBODY
