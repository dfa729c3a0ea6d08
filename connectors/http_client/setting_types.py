"""Types of settings about addresses; each value is validated when it is entered."""

from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field

from connectors.http_client.address_guard import (
    AddressNotAllowedError,
    parse_allowed_networks,
    validate_url,
)


def parse_web_address(url: str) -> str:
    """Return the address without a trailing slash.

    Raises:
        ValueError: it is not a web address.
    """
    try:
        return str(validate_url(url.strip())).rstrip("/")
    except AddressNotAllowedError as error:
        raise ValueError(str(error)) from error


def check_encrypted(url: str, private_hosts: tuple[str, ...]) -> None:
    """Raise ValueError for http:// to a host that is not listed as private."""
    if url.startswith("http://") and not private_hosts:
        raise ValueError("http:// is not encrypted: write https://, or name the private host")


def _check_networks(hosts: tuple[str, ...]) -> tuple[str, ...]:
    parse_allowed_networks(hosts)
    return hosts


WebAddress: TypeAlias = Annotated[str, AfterValidator(parse_web_address)]

PrivateHosts: TypeAlias = Annotated[
    tuple[str, ...],
    Field(
        description="Hosts, addresses or networks (10.0.0.0/8) inside your own network that may be"
        " contacted. An http:// address is accepted only if some are listed."
    ),
    AfterValidator(_check_networks),
]
"""The input of `parse_allowed_networks`."""
