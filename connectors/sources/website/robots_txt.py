"""The rules of a robots.txt (RFC 9309) that apply to Quarry."""

import re

from protego import Protego

USER_AGENT = "quarry"
"""The name of Quarry in robots.txt and robots meta tags; its User-Agent header begins with it."""

_MAX_BYTES = 500 * 1024
"""How much of a robots.txt is read (RFC 9309, 2.5)."""
_PRODUCT_VERSION = re.compile(r"^([^\S\n]*user-agent[^\S\n]*:[^\S\n]*[a-z_-]+)/.*$", re.I | re.M)


class RobotsTxt:
    """The rules of one host; without `data`, everything is allowed."""

    def __init__(self, data: bytes = b"") -> None:
        text = data[:_MAX_BYTES].decode("utf-8-sig", "replace")
        # Protego compares names with their version, so that Quarry/1.0 would not be Quarry.
        self._rules = Protego.parse(_PRODUCT_VERSION.sub(r"\1", text))

    @property
    def crawl_delay(self) -> float:
        """The Crawl-delay in seconds, which is not part of the RFC; 0 if there is none."""
        return self._rules.crawl_delay(USER_AGENT) or 0.0

    def allows(self, url: str) -> bool:
        return self._rules.can_fetch(url, USER_AGENT)
