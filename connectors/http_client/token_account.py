"""An account at a service that is asked with one token."""

from dataclasses import dataclass, field
from typing import ClassVar

from connectors.http_client.address_guard import Reach


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    made_at: ClassVar[str]
    """Where a person makes a token of this service."""

    source: str
    api_url: str
    """With no slash at the end."""
    token: str = field(repr=False)
    reach: Reach

    @property
    def mend(self) -> str:
        """What to do where the token is not good any more."""
        return f"make a new token ({self.made_at}) and set it by quarry sources edit {self.source}"
