"""Connect a source, change its connection, try it: for terminals, programs and pages alike."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeAlias

from backend.container import Container
from backend.schemas.models import CapabilityWire, SourceWire
from backend.sources import listing
from backend.store import sources
from backend.store.sources import UNCHANGED, Source
from connectors.connector import Capability
from connectors.errors import ActionRequiredError
from connectors.registry import Entered, entered, kind_of

Values: TypeAlias = Mapping[str, object]

NOTHING: Values = MappingProxyType({})


def add(
    container: Container, kind: str, settings: Values, credential: Values, name: str | None = None
) -> SourceWire:
    """Store a source; the next sync reads it.

    Raises:
        NotValid: what was entered, each fault by where it stands.
        ActionRequiredError: there is no such kind, or a source of this name already.
    """
    checked = entered(kind, settings, credential, name)
    sealed = _sealed(container, checked)
    sources.add(container.database, checked.name, kind, checked.settings, sealed)
    return listing.source(container.database, checked.name)


def edit(
    container: Container, source: Source, settings: Values | None, credential: Values | None
) -> SourceWire:
    """Store other settings, or another credential; what is None stays as it is.

    Raises:
        NotValid: what was entered, each fault by where it stands; nothing is changed.
    """
    checked = entered(
        source.kind,
        source.settings if settings is None else settings,
        opened(container, source) if credential is None else credential,
        source.name,
    )
    sealed = UNCHANGED if credential is None else _sealed(container, checked)
    sources.edit(container.database, source.name, checked.settings, sealed)
    return listing.source(container.database, source.name)


def test(container: Container, source: Source) -> list[CapabilityWire]:
    """Try what sources of this kind can do: whether its content, its listing and its access can be had."""
    able = kind_of(source.kind).capabilities
    try:
        faults = {one.capability: one.fault for one in container.connector(source).check()}
    except ActionRequiredError as error:
        faults = dict.fromkeys(Capability, str(error))
    return [
        CapabilityWire(
            capability=each.value,
            works=each in able and faults.get(each) is None,
            fault=faults.get(each) if each in able else "Sources of this kind cannot do it.",
        )
        for each in Capability
    ]


def opened(container: Container, source: Source) -> Values:
    """The credential as it was entered. It is told to nobody."""
    return container.vault.open(source.credential) if source.credential else NOTHING


def _sealed(container: Container, checked: Entered) -> str | None:
    return container.vault.seal(checked.credential) if checked.credential else None
