"""Validated types of settings that several sources share."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import AfterValidator

from connectors.access import NOBODY, Access, parse_reader_token
from connectors.files.paths import GlobPattern


def _normalize_readers(readers: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(parse_reader_token, readers))


def _check_public_readers(readers: tuple[str, ...]) -> tuple[str, ...]:
    for reader in readers:
        if reader.startswith("external:"):
            raise ValueError(f"{reader!r} is of a source: write public, user:<email> or group:<id>")
    return readers


def _check_globs(patterns: tuple[str, ...]) -> tuple[str, ...]:
    for pattern in patterns:
        GlobPattern.parse(pattern)
    return patterns


def _normalize_owner(owner: str) -> str:
    return owner and parse_reader_token(f"user:{owner}").removeprefix("user:")


def mailbox_access(owner: str, readers: Sequence[str]) -> Access:
    """Return who may read a mailbox: the readers of a shared one, else its owner.

    A mailbox whose owner is not an e-mail address can be read by no one.
    """
    if readers:
        return Access.to(readers)
    try:
        return Access.to([f"user:{owner}"])
    except ValueError:
        return NOBODY


ReaderTokens: TypeAlias = Annotated[tuple[str, ...], AfterValidator(_normalize_readers)]

PublicReaders: TypeAlias = Annotated[ReaderTokens, AfterValidator(_check_public_readers)]
"""Who may read what the source shows to everybody."""

AbsolutePath: TypeAlias = Annotated[Path, AfterValidator(Path.absolute)]

GlobPatterns: TypeAlias = Annotated[tuple[str, ...], AfterValidator(_check_globs)]

MailboxOwner: TypeAlias = Annotated[str, AfterValidator(_normalize_owner)]
"""An e-mail address, or an empty string."""
