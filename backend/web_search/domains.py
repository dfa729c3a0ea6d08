"""Which domains results may be of."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address

from backend.web_search.addresses import get_host, strip_www
from connectors.errors import InvalidInputError
from connectors.http_client.address_guard import AddressNotAllowedError, validate_url

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)


def parse_domain(text: str) -> str:
    """Return a domain in lower case and as ASCII; of an address, that of its host.

    Raises:
        InvalidInputError: it is none.
    """
    host = _SCHEME.sub("", text.strip(), count=1).partition("/")[0]
    try:
        url = validate_url(f"https://{host.removeprefix('*').removeprefix('.')}")
    except AddressNotAllowedError as error:
        raise InvalidInputError(
            f"{text.strip()[:100]!r} is not a domain. Write one such as example.com, which includes its subdomains."
        ) from error
    return strip_www(url.raw_host.decode("ascii"))


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainRules:
    """The domains that are allowed and blocked, each with its subdomains.

    Attributes:
        allowed: None for all; none at all if it is empty.
    """

    allowed: frozenset[str] | None = None
    blocked: frozenset[str] = frozenset()

    @classmethod
    def of(cls, allowed: Iterable[str], blocked: Iterable[str]) -> "DomainRules":
        """Return the rules of two lists, of which an empty one allows all or blocks nothing.

        Raises:
            InvalidInputError: one of the texts is no domain.
        """
        listed = frozenset(map(parse_domain, allowed))
        return cls(allowed=listed or None, blocked=frozenset(map(parse_domain, blocked)))

    def permits(self, url: str) -> bool:
        host = get_host(url)
        if host is None or _is_listed(host, self.blocked):
            return False
        return self.allowed is None or _is_listed(host, self.allowed)

    def may_load_from(self, host: str) -> bool:
        """Return whether a page that is permitted may load what it consists of from a host.

        That may be of a domain that is not among the allowed ones, but of none that is blocked. What is named by its number
        could be any of these.
        """
        if _is_number(host):
            return self == ANY_DOMAIN
        return not _is_listed(strip_www(host), self.blocked)

    def narrowed_by(self, other: "DomainRules") -> "DomainRules":
        """Return the rules that permit what both do."""
        return DomainRules(
            allowed=_intersect(self.allowed, other.allowed), blocked=self.blocked | other.blocked
        )


ANY_DOMAIN = DomainRules()


def _is_number(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _is_listed(host: str, domains: frozenset[str]) -> bool:
    return any(host == domain or host.endswith(f".{domain}") for domain in domains)


def _intersect(one: frozenset[str] | None, two: frozenset[str] | None) -> frozenset[str] | None:
    """Keep the narrower of two domains where one includes the other."""
    if one is None or two is None:
        return two if one is None else one
    return frozenset(
        {domain for domain in one if _is_listed(domain, two)}
        | {domain for domain in two if _is_listed(domain, one)}
    )
