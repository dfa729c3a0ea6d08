"""Which addresses may be asked: the public internet, and what an owner allows by name besides.

A source is told where to look by its owner, but also by what it reads: a link, a redirect, a name
whose address changes between two looks. None of these may lead into the network that Quarry stands
in. So every address of a name is checked, and the connection is made to the checked address itself.

The ranges are those of the IANA special-purpose address registries for IPv4 and IPv6 (RFC 6890),
and the addresses by which clouds hand out credentials to their machines.
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

from connectors.errors import ActionRequiredError

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

Resolver: TypeAlias = Callable[[str, int], Sequence[str]]
"""A host's name and a port to the addresses of the name, as text, in the order to try.

Raises OSError where the name has none.
"""


class AddressRefused(ActionRequiredError):
    """An address that must not be asked. Where an item named it, only that item is unreadable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What may be asked besides the public internet.

    An address by which a cloud speaks to its machines is never asked, whatever is allowed here.
    """

    networks: tuple[Network, ...] = ()
    hosts: frozenset[str] = frozenset()
    """Names, in lower case, whose addresses may lie anywhere."""


PUBLIC_ONLY = Reach()
LOOPBACK = Reach(networks=(IPv4Network("127.0.0.0/8"), IPv6Network("::1/128")))

_NEVER: tuple[tuple[Network, str], ...] = tuple(
    (ip_network(network), words)
    for network, words in (
        ("169.254.169.254/32", "hands out a cloud's credentials"),
        ("169.254.170.0/24", "hands out a cloud's credentials"),
        ("fd00:ec2::/32", "hands out a cloud's credentials"),
        ("fd20:ce::/32", "hands out a cloud's credentials"),
        ("100.100.100.200/32", "hands out a cloud's credentials"),
        ("192.0.0.192/32", "hands out a cloud's credentials"),
        ("168.63.129.16/32", "is a cloud's own service"),
        ("0.0.0.0/8", "stands for no machine"),
        ("::/128", "stands for no machine"),
        ("224.0.0.0/4", "is a multicast address"),
        ("ff00::/8", "is a multicast address"),
        ("255.255.255.255/32", "is the broadcast address"),
    )
)

_NOT_PUBLIC: tuple[tuple[Network, str], ...] = tuple(
    (ip_network(network), words)
    for network, words in (
        ("127.0.0.0/8", "is this machine itself"),
        ("::1/128", "is this machine itself"),
        ("10.0.0.0/8", "is in a private network"),
        ("172.16.0.0/12", "is in a private network"),
        ("192.168.0.0/16", "is in a private network"),
        ("fc00::/7", "is in a private network"),
        ("fec0::/10", "is in a private network"),
        ("100.64.0.0/10", "is in a provider's inner network"),
        ("169.254.0.0/16", "is of this machine's own link"),
        ("fe80::/10", "is of this machine's own link"),
        ("64:ff9b::/96", "stands for an IPv4 address"),
        ("64:ff9b:1::/48", "stands for an IPv4 address"),
        ("::/96", "stands for an IPv4 address"),
        ("::ffff:0:0/96", "stands for an IPv4 address"),
        ("::ffff:0:0:0/96", "stands for an IPv4 address"),
        ("2001::/32", "stands for an IPv4 address"),
        ("2002::/16", "stands for an IPv4 address"),
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
"""All that is given out of IPv6 so far (RFC 4291, 2.4); the rest is reserved."""

_EMBEDDING = tuple(
    IPv6Network(network)
    for network in ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48")
)
"""Forms whose last 32 bits are an IPv4 address."""
_ISATAP = 0x5EFE
"""Before the IPv4 address at the end of an ISATAP address (RFC 5214, 6.1)."""

_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9_]([a-z0-9_-]{0,62})(\.[a-z0-9_][a-z0-9_-]{0,62})*")
_ENDS_IN_NUMBER = re.compile(r"(.*\.)?(\d+|0x[0-9a-f]*)")
"""What others read as an IPv4 address in decimal, octal or hexadecimal (WHATWG URL, 3.5)."""
_USER_NAME = re.compile(r"[^/?#]*//[^/?#]*@")

_OTHER_PROTOCOLS = frozenset(
    {1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95}
    | {101, 102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179}
    | {389, 427, 445, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587}
    | {601, 636, 873, 989, 990, 993, 995, 1433, 1521, 1719, 1720, 1723, 2049, 3306, 3389, 3659}
    | {4045, 4190, 5060, 5061, 5432, 6000, 6379, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697}
    | {10080, 11211, 27017}
)
"""Mail, shells, databases and the like: some of them take a line of an HTTP request for an order.
Most are those that browsers refuse too (WHATWG Fetch, 2.9)."""


def reach_of(allowed: Iterable[str]) -> Reach:
    """From a setting: each an address, a network (10.0.0.0/8) or the name of a host.

    Raises:
        ValueError: one is none of these.
    """
    networks: list[Network] = []
    hosts: set[str] = set()
    for text in allowed:
        if (network := _network(text)) is not None:
            networks.append(network)
        else:
            hosts.add(_host_name(text))
    return Reach(networks=tuple(networks), hosts=frozenset(hosts))


def _network(text: str) -> Network | None:
    try:
        return ip_network(text)
    except ValueError:
        return None


def _host_name(text: str) -> str:
    try:
        if re.fullmatch(r"[^\s/:@?#\[\]%]+", text):
            return checked_url(f"http://{text}").raw_host.decode("ascii")
    except AddressRefused as error:
        raise ValueError(f"{text!r} cannot be allowed: {error}") from error
    raise ValueError(
        f"{text!r} cannot be allowed: write an address, a network such as 10.0.0.0/8"
        " (its first address before the slash), or the name of a host"
    )


def checked_url(url: str | httpx.URL) -> httpx.URL:
    """The address in its one spelling: http or https, a plain host, no user name, no fragment.

    Raises:
        AddressRefused: it is another scheme, holds credentials, spells an IP address in a roundabout
            way, names a port of another protocol, or is no address at all.
    """
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, ValueError) as error:
        raise AddressRefused(f"{_shown(str(url))} is not a web address: {error}") from error
    if parsed.scheme not in {"http", "https"}:
        raise AddressRefused(f"{_shown(str(url))} is not a web address (http or https)")
    if parsed.userinfo or _USER_NAME.match(str(url)):
        raise AddressRefused("an address must not hold a user name or a password")
    if parsed.port is not None and not _is_of_web_servers(parsed.port):
        raise AddressRefused(f"port {parsed.port} of {parsed.host} is not one of web servers")
    host = checked_host(parsed.raw_host.decode("ascii"))
    return parsed.copy_with(host=host, fragment=None)


def _is_of_web_servers(port: int) -> bool:
    return 0 < port < 65536 and port not in _OTHER_PROTOCOLS


def checked_host(host: str) -> str:
    """A name in lower case without a dot at its end, or an IP address in its one spelling.

    Raises:
        AddressRefused: it is neither, or another spelling of an IP address.
    """
    if ":" in host:
        return str(_parsed_address(host))
    name = host.lower().removesuffix(".")
    if _ENDS_IN_NUMBER.fullmatch(name):
        return str(_parsed_address(name))
    if not _NAME.fullmatch(name):
        raise AddressRefused(f"{_shown(host)} is not the name of a host")
    return name


def _parsed_address(text: str) -> Address:
    """`ip_address` takes four decimal numbers without leading zeros only."""
    try:
        address = ip_address(text)
    except ValueError as error:
        raise AddressRefused(
            f"{_shown(text)} is not an IP address in its usual spelling"
        ) from error
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        raise AddressRefused(f"{_shown(text)} is of this machine's own link")
    return address


def _shown(text: str) -> str:
    """Without what may be a password in it, and not at any length."""
    return repr(re.sub(r"//[^/?#]*@", "//…@", text.partition("?")[0])[:200])


def checked_addresses(host: str, port: int, reach: Reach, resolve: Resolver) -> list[str]:
    """The addresses to connect to, every one allowed; one that is not refuses the host.

    Raises:
        AddressRefused: at least one of them is not allowed.
        OSError: the name has none.
    """
    name = checked_host(host)
    literal = ":" in name or _ENDS_IN_NUMBER.fullmatch(name)
    found = [_parsed_address(text) for text in ([name] if literal else resolve(name, port))]
    if not found:
        raise OSError(f"{name} has no address")
    for address in found:
        if fault := _fault(address, name, reach):
            raise AddressRefused(_refusal(name, address, fault))
    return list(dict.fromkeys(map(str, found)))


def _refusal(name: str, address: Address, fault: str) -> str:
    where = name if name == str(address) else f"{name} leads to {address}, which"
    return (
        f"{where} {fault}, so it is not asked. Where this is wanted, allow the host or its network"
        " in the settings of the source."
    )


def _fault(address: Address, name: str, reach: Reach) -> str | None:
    """What speaks against the address, in words that follow it; none where nothing does."""
    forms = [address, *_embedded(address)]
    for form in forms:
        if fault := _range_of(form, _NEVER):
            return fault
    if name in reach.hosts or any(address in network for network in reach.networks):
        return None
    return next((fault for form in forms if (fault := _not_public(form))), None)


def _not_public(address: Address) -> str | None:
    if fault := _range_of(address, _NOT_PUBLIC):
        return fault
    if address.version == 6 and address not in _GLOBAL_UNICAST:
        return "is reserved"
    return None


def _range_of(address: Address, ranges: Iterable[tuple[Network, str]]) -> str | None:
    return next((words for network, words in ranges if address in network), None)


def _embedded(address: Address) -> Iterator[IPv4Address]:
    """The IPv4 addresses that an IPv6 address stands for, by whatever form."""
    if isinstance(address, IPv4Address):
        return
    last = IPv4Address(int(address) & 0xFFFFFFFF)
    if any(address in network for network in _EMBEDDING) and int(address) > 1:
        yield last
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
    if int(address) >> 32 & 0xFFFF == _ISATAP:
        yield last
