"""The setting that all sources of mail share: whose it is."""

from collections.abc import Sequence
from typing import Annotated, TypeAlias

from pydantic import AfterValidator

from connectors.document import NOBODY, Access, reader_token


def _owner(owner: str) -> str:
    return owner and reader_token(f"user:{owner}").removeprefix("user:")


Owner: TypeAlias = Annotated[str, AfterValidator(_owner)]
"""An e-mail address, or nothing."""


def access_to(owner: str, readers: Sequence[str]) -> Access:
    """Of a shared mailbox its readers, else the owner; nobody, where that is no e-mail address."""
    if readers:
        return Access.to(readers)
    try:
        return Access.to([f"user:{owner}"])
    except ValueError:
        return NOBODY
