"""From where a request comes, as far as limits are concerned."""

import ipaddress

_HOST_BITS = 64
"""Whoever has one IPv6 address has all that differ in the last bits."""


def normalize_address(address: str) -> str:
    """Return an IPv4 address as such where a socket for both protocols states it as one of IPv6."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return str(mapped or parsed)


def find_network(address: str | None) -> str:
    """Return what one client can have all addresses of; empty where the address is unknown."""
    try:
        parsed = ipaddress.ip_address(normalize_address(address or ""))
    except ValueError:
        return address or ""
    if parsed.version == 4:
        return str(parsed)
    return str(ipaddress.ip_network((parsed, _HOST_BITS), strict=False))
