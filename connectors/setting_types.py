"""Types of settings that several sources have, each checked when it is entered."""

from typing import Annotated, TypeAlias

from pydantic import AfterValidator

from connectors.addresses import AddressRefused, checked_url, reach_of
from connectors.document import reader_token
from connectors.globs import Glob


def _tokens(readers: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(reader_token, readers))


def _understood(patterns: tuple[str, ...]) -> tuple[str, ...]:
    for pattern in patterns:
        Glob.of(pattern)
    return patterns


def _reachable(hosts: tuple[str, ...]) -> tuple[str, ...]:
    reach_of(hosts)
    return hosts


def web_address(url: str) -> str:
    """Without a slash at its end. Raises ValueError: it is no web address."""
    try:
        return str(checked_url(url.strip())).rstrip("/")
    except AddressRefused as error:
        raise ValueError(str(error)) from error


def check_encrypted(url: str, private_hosts: tuple[str, ...]) -> None:
    """Raises ValueError: http:// to a host that is not named as private."""
    if url.startswith("http://") and not private_hosts:
        raise ValueError("http:// is not encrypted: write https://, or name the private host")


ReaderTokens: TypeAlias = Annotated[tuple[str, ...], AfterValidator(_tokens)]

Globs: TypeAlias = Annotated[tuple[str, ...], AfterValidator(_understood)]

WebAddress: TypeAlias = Annotated[str, AfterValidator(web_address)]

PrivateHosts: TypeAlias = Annotated[tuple[str, ...], AfterValidator(_reachable)]
"""What `connectors.addresses.reach_of` takes."""
