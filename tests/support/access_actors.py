"""Who asks."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

from backend.access.roles import Role

ROLES: Mapping[str, Role] = MappingProxyType(
    {
        "ann": Role.ADMIN,
        "bob": Role.MEMBER,
        "eve": Role.MEMBER,
        "sam": Role.SOURCE_MANAGER,
        "tom": Role.SOURCE_MANAGER,
        "gone": Role.ADMIN,
    }
)
SERVICE = "service"
_NEIGHBORS = MappingProxyType({"bob": "eve", "eve": "bob"})
"""Whose objects are another's; of all others they are Tom's."""

Relation: TypeAlias = Literal["own", "another's", "missing"]


@dataclass(frozen=True, slots=True)
class Actor:
    """Who asks: the headers by which they are known."""

    name: str
    headers: Mapping[str, str]

    @property
    def accepts(self) -> str:
        """Browsers have sessions, programs have tokens."""
        return "application/json" if "authorization" in self.headers else "text/html"

    @property
    def owner(self) -> str:
        """Whose objects are its own; those of Bob where it has none."""
        first = self.name.partition(" ")[0]
        return first if first in ROLES or first == SERVICE else "bob"

    @property
    def other(self) -> str:
        return _NEIGHBORS.get(self.owner, "tom")


def email_of(name: str) -> str:
    return f"{name}@example.com"
