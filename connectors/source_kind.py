"""A kind of source: its settings and credential models, and its connector."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from connectors.connector import Capability, Connector

S = TypeVar("S", bound=BaseModel)
C = TypeVar("C", bound=BaseModel)


class NoCredential(BaseModel):
    """Credential of a source that needs none."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _find_nothing_missing(settings: BaseModel) -> None:
    del settings


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceKind(Generic[S, C]):
    connector: Callable[[str, S, C], Connector]
    """Makes a connector from the source's name, settings and credential, without connecting to it."""
    settings: type[S]
    credential: type[C]
    capabilities: frozenset[Capability] = frozenset(Capability)
    title: str = ""
    """Display name; by default the name in the registry, capitalized."""
    find_missing: Callable[[S], str | None] = _find_nothing_missing
    """Returns what is missing that must exist before a source with these settings is added."""

    def create_connector(
        self, source: str, settings: Mapping[str, object], credential: Mapping[str, object]
    ) -> Connector:
        return self.connector(
            source,
            self.settings.model_validate(settings),
            self.credential.model_validate(credential),
        )
