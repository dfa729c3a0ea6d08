"""The kinds of source that Quarry knows, by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from connectors.connector import Capability, Connector, source_name
from connectors.errors import AskTheOwner
from connectors.sources.folder import FolderConnector, FolderSettings

S = TypeVar("S", bound=BaseModel)
C = TypeVar("C", bound=BaseModel)


class NoCredential(BaseModel):
    """Of a source that needs none."""

    model_config = ConfigDict(frozen=True, extra="forbid")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind(Generic[S, C]):
    connector: Callable[[str, S, C], Connector]
    """From the name of the source, its settings and its credential. Nothing is asked of it yet."""
    settings: type[S]
    credential: type[C]
    capabilities: frozenset[Capability] = frozenset(Capability)

    def connect(
        self, source: str, settings: Mapping[str, object], credential: Mapping[str, object]
    ) -> Connector:
        return self.connector(
            source,
            self.settings.model_validate(settings),
            self.credential.model_validate(credential),
        )


def _folder(source: str, settings: FolderSettings, credential: NoCredential) -> Connector:
    del credential
    return FolderConnector(source, settings)


KINDS: Mapping[str, Kind[Any, Any]] = MappingProxyType(
    {
        "folder": Kind(connector=_folder, settings=FolderSettings, credential=NoCredential),
    }
)


def connect(
    kind: str,
    source: str,
    settings: Mapping[str, object],
    credential: Mapping[str, object] = MappingProxyType({}),
) -> Connector:
    """The connector of the source that is named `source`, from its stored settings and credential.

    Raises:
        AskTheOwner: there is no such kind, or the name, the settings or the credential are not valid.
    """
    known = KINDS.get(kind)
    if known is None:
        raise AskTheOwner(f"no kind of source is called {kind!r}; there is: {', '.join(KINDS)}")
    try:
        return known.connect(source_name(source), settings, credential)
    except ValidationError as error:
        raise AskTheOwner(f"the settings of {source} are not valid: {_said(error)}") from error
    except ValueError as error:
        raise AskTheOwner(str(error)) from error


def _said(error: ValidationError) -> str:
    return "; ".join(
        f"{'.'.join(map(str, fault['loc'])) or 'settings'}: {fault['msg']}"
        for fault in error.errors(include_url=False, include_context=False)
    )
