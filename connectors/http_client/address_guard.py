"""Protection against server-side request forgery: which addresses a source may connect to.

Allowed are the public internet, and what the settings of a source add. A source gets URLs
from its settings, but also from what it reads: a link, a redirect, a name whose address changes between
two look-ups. None of these may lead into the network that Quarry runs in. So every address of a name is
checked, and the connection is made to the checked address itself.

The ranges are those of the IANA special-purpose address registries for IPv4 and IPv6 (RFC 6890), and
the addresses of the metadata services from which machines in a cloud get their credentials.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import TypeAlias

import httpx

from connectors.errors import SourceError

IPAddress: TypeAlias = IPv4Address | IPv6Address
IPNetwork: TypeAlias = IPv4Network | IPv6Network

Resolver: TypeAlias = Callable[[str, int], Sequence[str]]
"""Returns the addresses of a host name (with a port) as text, in the order to try.

Raises OSError if the name has none.
"""


class AddressNotAllowedError(SourceError):
    """Connecting to the address is not allowed. If an item named it, only that item is unreadable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedNetworks:
    """What a source may connect to in addition to the public internet.

    The metadata addresses of clouds are never allowed, whatever these say.
    """

    networks: tuple[IPNetwork, ...] = ()
    hosts: frozenset[str] = frozenset()
    """Names in lower case, whose addresses may be in any network."""


PUBLIC_ONLY = AllowedNetworks()

_NEVER_ALLOWED: tuple[tuple[IPNetwork, str], ...] = tuple(
    (ip_network(network), reason)
    for network, reason in (
        ("169.254.169.254/32", "is the metadata service of a cloud"),
        ("169.254.170.0/24", "is the metadata service of a cloud"),
        ("fd00:ec2::/32", "is the metadata service of a cloud"),
        ("fd20:ce::/32", "is the metadata service of a cloud"),
        ("100.100.100.200/32", "is the metadata service of a cloud"),
        ("192.0.0.192/32", "is the metadata service of a cloud"),
        ("168.63.129.16/32", "is an internal service of a cloud"),
        ("0.0.0.0/8", "is not the address of a machine"),
        ("::/128", "is not the address of a machine"),
        ("224.0.0.0/4", "is a multicast address"),
        ("ff00::/8", "is a multicast address"),
        ("255.255.255.255/32", "is the broadcast address"),
    )
)

_NOT_PUBLIC: tuple[tuple[IPNetwork, str], ...] = tuple(
    (ip_network(network), reason)
    for network, reason in (
        ("127.0.0.0/8", "is this machine itself"),
        ("::1/128", "is this machine itself"),
        ("10.0.0.0/8", "is in a private network"),
        ("172.16.0.0/12", "is in a private network"),
        ("192.168.0.0/16", "is in a private network"),
        ("fc00::/7", "is in a private network"),
        ("fec0::/10", "is in a private network"),
        ("100.64.0.0/10", "is in the internal network of a provider"),
        ("169.254.0.0/16", "is a link-local address"),
        ("fe80::/10", "is a link-local address"),
        ("64:ff9b::/96", "embeds an IPv4 address"),
        ("64:ff9b:1::/48", "embeds an IPv4 address"),
        ("::/96", "embeds an IPv4 address"),
        ("::ffff:0:0/96", "embeds an IPv4 address"),
        ("::ffff:0:0:0/96", "embeds an IPv4 address"),
        ("2001::/32", "embeds an IPv4 address"),
        ("2002::/16", "embeds an IPv4 address"),
        ("192.88.99.0/24", "is reserved"),
        ("192.0.0.0/24", "is reserved"),
        ("192.0.2.0/24", "is reserved"),
        ("198.18.0.0/15", "is reserved"),
        ("198.51.100.0/24", "is reserved"),
        ("203.0.113.0/24", "is reserved"),
        ("240.0.0.0/4", "is reserved"),
        ("2001::/23", "is reserved"),
        ("2001:db8::/32", "is reserved"),
        ("3fff::/20", "is reserved"),
    )
)

_GLOBAL_UNICAST = IPv6Network("2000::/3")
"""All of IPv6 that is allocated so far (RFC 4291, 2.4); the rest is reserved."""

_EMBEDDING_NETWORKS = tuple(
    IPv6Network(network)
    for network in ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48")
)
"""Networks whose last 32 bits are an IPv4 address."""
_ISATAP = 0x5EFE
"""Precedes the IPv4 address at the end of an ISATAP address (RFC 5214, 6.1)."""

_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9_]([a-z0-9_-]{0,62})(\.[a-z0-9_][a-z0-9_-]{0,62})*")
_ENDS_IN_NUMBER = re.compile(r"(.*\.)?(\d+|0x[0-9a-f]*)")
"""Other parsers read it as an IPv4 address in decimal, octal or hexadecimal (WHATWG URL, 3.5)."""
_USER_NAME = re.compile(r"[^/?#]*//[^/?#]*@")

_BLOCKED_PORTS = frozenset(
    {1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95}
    | {101, 102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179}
    | {389, 427, 445, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587}
    | {601, 636, 873, 989, 990, 993, 995, 1433, 1521, 1719, 1720, 1723, 2049, 3306, 3389, 3659}
    | {4045, 4190, 5060, 5061, 5432, 6000, 6379, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697}
    | {10080, 11211, 27017}
)
"""Ports of mail, shells, databases and the like: some of these services execute a line of an HTTP request
as a command. Most are blocked by browsers too (WHATWG Fetch, 2.9)."""


def parse_allowed_networks(allowed: Iterable[str]) -> AllowedNetworks:
    """Parse a setting: each entry is an address, a network (10.0.0.0/8) or a host name.

    Raises:
        ValueError: an entry is none of these.
    """
    networks: list[IPNetwork] = []
    hosts: set[str] = set()
    for text in allowed:
        if (network := _parse_network(text)) is not None:
            networks.append(network)
        else:
            hosts.add(_parse_host_name(text))
    return AllowedNetworks(networks=tuple(networks), hosts=frozenset(hosts))


def find_uncovered(wanted: Iterable[str], allowed: AllowedNetworks) -> str | None:
    """Return the first entry of a setting that allows more than these; None if none does.

    A host is covered by its name alone: what it resolves to now it may not resolve to later.
    """
    return next((text for text in wanted if not _is_covered(text, allowed)), None)


def _is_covered(text: str, allowed: AllowedNetworks) -> bool:
    network = _parse_network(text)
    if network is None:
        return _parse_host_name(text) in allowed.hosts
    return any(_contains(outer, network) for outer in allowed.networks)


def _contains(outer: IPNetwork, inner: IPNetwork) -> bool:
    match outer, inner:
        case IPv4Network(), IPv4Network():
            return outer.supernet_of(inner)
        case IPv6Network(), IPv6Network():
            return outer.supernet_of(inner)
        case _:
            return False


def _parse_network(text: str) -> IPNetwork | None:
    try:
        return ip_network(text)
    except ValueError:
        return None


def _parse_host_name(text: str) -> str:
    try:
        if re.fullmatch(r"[^\s/:@?#\[\]%]+", text):
            return validate_url(f"http://{text}").raw_host.decode("ascii")
    except AddressNotAllowedError as error:
        raise ValueError(f"{text!r} cannot be allowed: {error}") from error
    raise ValueError(
        f"{text!r} cannot be allowed: write an address, a network such as 10.0.0.0/8"
        " (its first address before the slash), or the name of a host"
    )


def validate_url(url: str | httpx.URL) -> httpx.URL:
    """Return the URL in its canonical spelling: http or https, no user name, no fragment.

    Raises:
        AddressNotAllowedError: it has another scheme, holds credentials, spells an IP address in an
            unusual way, names a port of another protocol, or is not a URL at all.
    """
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, ValueError) as error:
        raise AddressNotAllowedError(
            f"{_redact(str(url))} is not a web address: {error}"
        ) from error
    if parsed.scheme not in {"http", "https"}:
        raise AddressNotAllowedError(f"{_redact(str(url))} is not a web address (http or https)")
    if parsed.userinfo or _USER_NAME.match(str(url)):
        raise AddressNotAllowedError("an address must not contain a user name or a password")
    if parsed.port is not None and not _is_allowed_port(parsed.port):
        raise AddressNotAllowedError(
            f"port {parsed.port} of {parsed.host} is not a port of web servers"
        )
    host = validate_host(parsed.raw_host.decode("ascii"))
    return parsed.copy_with(host=host, fragment=None)


def _is_allowed_port(port: int) -> bool:
    return 0 < port < 65536 and port not in _BLOCKED_PORTS


def validate_host(host: str) -> str:
    """Return a name in lower case without a final dot, or an IP address in its canonical spelling.

    Raises:
        AddressNotAllowedError: it is neither, or another spelling of an IP address.
    """
    if ":" in host:
        return str(_parse_address(host))
    name = host.lower().removesuffix(".")
    if _ENDS_IN_NUMBER.fullmatch(name):
        return str(_parse_address(name))
    if not _NAME.fullmatch(name):
        raise AddressNotAllowedError(f"{_redact(host)} is not the name of a host")
    return name


def _parse_address(text: str) -> IPAddress:
    # `ip_address` accepts four decimal numbers without leading zeros only.
    try:
        address = ip_address(text)
    except ValueError as error:
        raise AddressNotAllowedError(
            f"{_redact(text)} is not an IP address in its usual spelling"
        ) from error
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        raise AddressNotAllowedError(f"{_redact(text)} is a link-local address")
    return address


def _redact(text: str) -> str:
    """Quote the text without what may be a password in it, shortened."""
    return repr(re.sub(r"//[^/?#]*@", "//…@", text.partition("?")[0])[:200])


def resolve_addresses(
    host: str, port: int, allowed: AllowedNetworks, resolver: Resolver
) -> list[str]:
    """Return the addresses to connect to, all of them allowed.

    Raises:
        AddressNotAllowedError: at least one address of the host is not allowed.
        OSError: the name has no address.
    """
    name = validate_host(host)
    is_literal = ":" in name or _ENDS_IN_NUMBER.fullmatch(name)
    found = [_parse_address(text) for text in ([name] if is_literal else resolver(name, port))]
    if not found:
        raise OSError(f"{name} has no address")
    for address in found:
        if reason := _find_objection(address, name, allowed):
            raise AddressNotAllowedError(_describe_refusal(name, address, reason))
    return list(dict.fromkeys(map(str, found)))


def find_forbidden(host: str) -> str | None:
    """Return why nobody may connect to an address, as a predicate; None if some may, or if the host is a name."""
    try:
        address = ip_address(host)
    except ValueError:
        return None
    forms = (address, *_embedded_addresses(address))
    return next((reason for form in forms if (reason := _find_range(form, _NEVER_ALLOWED))), None)


def _describe_refusal(name: str, address: IPAddress, reason: str) -> str:
    subject = name if name == str(address) else f"{name} resolves to {address}, which"
    return (
        f"{subject} {reason}, so no connection is made. To allow it, add the host or its network to"
        " private_hosts in the settings of the source."
    )


def _find_objection(address: IPAddress, name: str, allowed: AllowedNetworks) -> str | None:
    """Return why the address is not allowed, as a predicate; None if it is."""
    forms = [address, *_embedded_addresses(address)]
    for form in forms:
        if reason := _find_range(form, _NEVER_ALLOWED):
            return reason
    if name in allowed.hosts or any(address in network for network in allowed.networks):
        return None
    return next((reason for form in forms if (reason := _why_not_public(form))), None)


def _why_not_public(address: IPAddress) -> str | None:
    if reason := _find_range(address, _NOT_PUBLIC):
        return reason
    if address.version == 6 and address not in _GLOBAL_UNICAST:
        return "is reserved"
    return None


def _find_range(address: IPAddress, ranges: Iterable[tuple[IPNetwork, str]]) -> str | None:
    return next((reason for network, reason in ranges if address in network), None)


def _embedded_addresses(address: IPAddress) -> Iterator[IPv4Address]:
    """Yield the IPv4 addresses that an IPv6 address stands for, in any notation."""
    if isinstance(address, IPv4Address):
        return
    last = IPv4Address(int(address) & 0xFFFFFFFF)
    if any(address in network for network in _EMBEDDING_NETWORKS) and int(address) > 1:
        yield last
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
    if int(address) >> 32 & 0xFFFF == _ISATAP:
        yield last
