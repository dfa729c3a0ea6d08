"""The kinds of source that Quarry knows, by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from connectors.connector import Connector, source_name
from connectors.errors import AskTheOwner
from connectors.sources.folder import FolderConnector, FolderSettings

S = TypeVar("S", bound=BaseModel)


class Capability(StrEnum):
    CONTENT = "content"
    """It yields documents."""
    LISTING = "listing"
    """It lists all there is, so that deletions are found."""
    ACCESS = "access"
    """It knows who may read what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind(Generic[S]):
    connector: Callable[[str, S], Connector]
    settings: type[S]
    credential: type[BaseModel] | None
    """None: the source needs none."""
    capabilities: frozenset[Capability]

    def connect(self, source: str, settings: Mapping[str, object]) -> Connector:
        return self.connector(source, self.settings.model_validate(settings))


KINDS: Mapping[str, Kind[Any]] = MappingProxyType(
    {
        "folder": Kind(
            connector=FolderConnector,
            settings=FolderSettings,
            credential=None,
            capabilities=frozenset(Capability),
        ),
    }
)


def connect(kind: str, source: str, settings: Mapping[str, object]) -> Connector:
    """The connector of the source that is named `source`, from its stored settings.

    Raises:
        AskTheOwner: there is no such kind, or the name or the settings are not valid.
    """
    known = KINDS.get(kind)
    if known is None:
        raise AskTheOwner(f"no kind of source is called {kind!r}; there is: {', '.join(KINDS)}")
    try:
        return known.connect(source_name(source), settings)
    except ValidationError as error:
        raise AskTheOwner(f"the settings of {source} are not valid: {_said(error)}") from error
    except ValueError as error:
        raise AskTheOwner(str(error)) from error


def _said(error: ValidationError) -> str:
    return "; ".join(
        f"{'.'.join(map(str, fault['loc'])) or 'settings'}: {fault['msg']}"
        for fault in error.errors(include_url=False, include_context=False)
    )
