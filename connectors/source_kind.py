"""What the catalog holds of each kind of source: its models, and how a connector is made of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from connectors.connector import Capability, Connector

S = TypeVar("S", bound=BaseModel)
C = TypeVar("C", bound=BaseModel)


class NoCredential(BaseModel):
    """Of a source that needs none."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _nothing(settings: BaseModel) -> None:
    del settings


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceKind(Generic[S, C]):
    connector: Callable[[str, S, C], Connector]
    """From the name of the source, its settings and its credential. Nothing is asked of it yet."""
    settings: type[S]
    credential: type[C]
    capabilities: frozenset[Capability] = frozenset(Capability)
    title: str = ""
    """As people write it; by default the name in the catalog with a capital."""
    missing: Callable[[S], str | None] = _nothing
    """What a source of these settings needs before it is added, and is not there."""

    def connect(
        self, source: str, settings: Mapping[str, object], credential: Mapping[str, object]
    ) -> Connector:
        return self.connector(
            source,
            self.settings.model_validate(settings),
            self.credential.model_validate(credential),
        )
