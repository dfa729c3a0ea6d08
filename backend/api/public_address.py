"""The address under which others reach the server."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

_TLS_PORT = 443


@dataclass(frozen=True, slots=True)
class PublicAddress:
    url: str
    """Its origin, such as https://quarry.example.com, as browsers name it."""

    @classmethod
    def parse(cls, url: str) -> "PublicAddress":
        """Read the address of a site. Raises ValueError: it is not one with https, without a path."""
        parts = urlsplit(url.strip())
        name, port = parts.hostname, parts.port
        if parts.scheme != "https" or not name or parts.username is not None:
            raise ValueError("it does not begin with https:// and a name")
        if parts.path not in {"", "/"} or parts.query or parts.fragment:
            raise ValueError("it has more than a name and a port")
        host = f"[{name}]" if ":" in name else name
        return cls(f"https://{host}" if port in {None, _TLS_PORT} else f"https://{host}:{port}")

    def is_host(self, hosts: Sequence[str]) -> bool:
        """Return whether the Host headers of a request are one, and this address."""
        own = self.url.removeprefix("https://")
        return len(hosts) == 1 and hosts[0].lower().removesuffix(f":{_TLS_PORT}") == own
