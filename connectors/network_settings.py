"""What the settings of sources say about addresses, checked in one way."""

from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field

from connectors.http_client.address_guard import AddressRefused, checked_url, reach_of


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


def _reachable(hosts: tuple[str, ...]) -> tuple[str, ...]:
    reach_of(hosts)
    return hosts


WebAddress: TypeAlias = Annotated[str, AfterValidator(web_address)]

PrivateHosts: TypeAlias = Annotated[
    tuple[str, ...],
    Field(
        description="Hosts, addresses or networks (10.0.0.0/8) inside the own network that may be"
        " asked. An address with http:// is taken only where some are named."
    ),
    AfterValidator(_reachable),
]
"""What `connectors.http_client.address_guard.reach_of` takes."""
