"""The index versions of an index on the cluster: an index each, and two aliases that say which is which.

One alias stands before the index version that is searched, one before the index version that is being built. A switch is
one change of aliases, which the cluster makes whole or not at all, and which removes the former index too:
whoever still asks that one finds it gone, and is told that it was superseded.
"""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from opensearchpy import OpenSearch

from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.embedding.embedder import EmbedderIdentity
from indexing.index.versions import (
    IndexVersion,
    IndexVersionReplacedError,
    VersionCheckedIndex,
    VersionCheckedWriter,
    build_in_progress,
    embedder_mismatch,
)
from indexing.opensearch import errors
from indexing.opensearch.mapping import IndexLayout
from indexing.opensearch.naming import active_alias, building_alias, edition_name
from indexing.opensearch.open_index import Laid, fitting, lay, meta_of, note_called
from indexing.opensearch.searcher import OpenSearchIndex
from indexing.opensearch.writer import OpenSearchIndexWriter


@dataclass(frozen=True, slots=True)
class _Placed:
    """An index version and the index that holds it."""

    index: str
    index_version: IndexVersion
    meta: Mapping[str, Any]
    """What the index says of itself."""

    @classmethod
    def of(cls, index: str, meta: Mapping[str, Any]) -> "_Placed":
        embedder = EmbedderIdentity(**meta["embedder"])
        return cls(index, IndexVersion(embedder, meta.get("called", embedder.model)), meta)


class OpenSearchIndexVersions:
    """Implements `indexing.index.versions.IndexVersions` over the indexes of one prefix."""

    def __init__(self, client: OpenSearch, prefix: str, layout: IndexLayout | None = None) -> None:
        self._client = client
        self._prefix = prefix
        self._layout = layout or IndexLayout()

    def active(self) -> IndexVersion | None:
        placed = self._behind(active_alias(self._prefix))
        return placed.index_version if placed else None

    def building(self) -> IndexVersion | None:
        placed = self._behind(building_alias(self._prefix))
        return placed.index_version if placed else None

    def open_index(self, index_version: IndexVersion) -> VersionCheckedIndex:
        return self._index(self._active(index_version))

    def open_writer(self, index_version: IndexVersion) -> VersionCheckedWriter:
        return self._writer(self._active(index_version))

    def start_build(self, index_version: IndexVersion) -> VersionCheckedWriter:
        building = self._behind(building_alias(self._prefix))
        if building is None:
            # A name that was never used: who has the former index open must not take this one for it.
            name = f"{edition_name(self._prefix, index_version.embedder)}-{secrets.token_hex(3)}"
            building = self._made(name, index_version, building_alias(self._prefix))
        if building.index_version.embedder != index_version.embedder:
            raise build_in_progress(building.index_version, index_version)
        return self._writer(building)

    def open_build_writer(self) -> VersionCheckedWriter | None:
        building = self._behind(building_alias(self._prefix))
        return self._writer(building) if building else None

    def open_build_index(self) -> VersionCheckedIndex:
        building = self._behind(building_alias(self._prefix))
        if building is None:
            raise ValueError("no index version is being built")
        return self._index(building)

    def activate(self, index_version: IndexVersion) -> None:
        active = self._behind(active_alias(self._prefix))
        building = self._behind(building_alias(self._prefix))
        if building is not None and building.index_version.embedder == index_version.embedder:
            self._change_aliases(self._switching(active, building))
        elif active is None or active.index_version.embedder != index_version.embedder:
            raise ValueError(f"neither being built nor active: {index_version.model_name}")

    def discard_build(self) -> None:
        building = self._behind(building_alias(self._prefix))
        if building is not None:
            self._change_aliases([{"remove_index": {"index": building.index}}])

    def _switching(self, active: _Placed | None, building: _Placed) -> list[dict[str, Any]]:
        aliases = {
            "remove": building_alias(self._prefix),
            "add": active_alias(self._prefix),
        }
        actions: list[dict[str, Any]] = [
            {action: {"index": building.index, "alias": alias}} for action, alias in aliases.items()
        ]
        return actions + ([{"remove_index": {"index": active.index}}] if active else [])

    def _active(self, index_version: IndexVersion) -> _Placed:
        """The active index version, made where there is none."""
        alias = active_alias(self._prefix)
        placed = self._behind(alias)
        if placed is None:
            self._made(edition_name(self._prefix, index_version.embedder), index_version, alias)
            placed = self._behind(alias)
        if placed is None:
            raise TemporarilyUnavailableError(
                "The index on the cluster was removed just now.", errors.SOON
            )
        if placed.index_version.embedder != index_version.embedder:
            raise embedder_mismatch(placed.index_version, index_version)
        return placed

    def _made(self, index: str, index_version: IndexVersion, alias: str) -> _Placed:
        lay(self._client, index, index_version.embedder, self._layout)
        meta = note_called(self._client, index, index_version.model_name)
        self._change_aliases([{"add": {"index": index, "alias": alias}}])
        return _Placed.of(index, meta)

    def _behind(self, alias: str) -> _Placed | None:
        """Raises ActionRequiredError: two indexes stand behind the alias, by two who began at once, or by hand."""
        with errors.named_errors():
            while (index := self._aliased(alias)) is not None:
                meta = meta_of(self._client, index)
                # One that is gone was switched meanwhile, and the alias with it: look again.
                if meta is not None:
                    return _Placed.of(index, meta)
        return None

    def _aliased(self, alias: str) -> str | None:
        found = self._client.indices.get_alias(name=alias, params={"ignore": 404})
        names = [] if "error" in found else sorted(found)
        if len(names) > 1:
            raise ActionRequiredError(
                f"The alias {alias} stands before several indexes: {', '.join(names)}. Take it away"
                " from all but the one that is to be searched."
            )
        return names[0] if names else None

    def _change_aliases(self, actions: Sequence[dict[str, Any]]) -> None:
        with errors.named_errors():
            self._client.indices.update_aliases(body={"actions": list(actions)})

    def _index(self, placed: _Placed) -> VersionCheckedIndex:
        laid = self._laid(placed)
        dimension = placed.index_version.embedder.dimension
        index = OpenSearchIndex(self._client, laid.name, dimension, laid.vectors)
        return VersionCheckedIndex(index, VersionGuard(self, laid.name))

    def _writer(self, placed: _Placed) -> VersionCheckedWriter:
        laid = self._laid(placed)
        dimension = placed.index_version.embedder.dimension
        writer = OpenSearchIndexWriter(self._client, laid.name, dimension, laid.vectors)
        return VersionCheckedWriter(writer, VersionGuard(self, laid.name))

    def _laid(self, placed: _Placed) -> Laid:
        return fitting(placed.index, placed.meta, placed.index_version.embedder, self._layout)

    def names(self) -> frozenset[str]:
        """The indexes that are an index version now."""
        aliases = (active_alias(self._prefix), building_alias(self._prefix))
        return frozenset(placed.index for alias in aliases if (placed := self._behind(alias)))


class VersionGuard:
    """Looks at the aliases when something failed: an index that is gone answers nothing by itself."""

    def __init__(self, index_versions: OpenSearchIndexVersions, index: str) -> None:
        self._index_versions = index_versions
        self._index = index

    @contextmanager
    def while_current(self) -> Iterator[None]:
        try:
            yield
        except (ActionRequiredError, TemporarilyUnavailableError):
            if self._index not in self._index_versions.names():
                raise IndexVersionReplacedError(self._index_versions.active()) from None
            raise
