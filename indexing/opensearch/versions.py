"""The index versions on the cluster: an index each, and two aliases for the searched and the built one.

Activating a version is one change of aliases, which the cluster makes completely or not at all, and which
deletes the former index too: whoever still uses that one gets an error that it was replaced.
"""

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from opensearchpy import OpenSearch

from connectors.errors import ActionRequiredError, DamagedDataError, TemporarilyUnavailableError
from indexing.embedding.embedder import EmbedderIdentity
from indexing.index.protocols import Index, IndexWriter
from indexing.index.versions import (
    IndexVersion,
    IndexVersionReplacedError,
    OpenedVersion,
    VersionCheckedIndex,
    VersionCheckedWriter,
    build_in_progress,
    embedder_mismatch,
)
from indexing.opensearch import errors
from indexing.opensearch.mapping import IndexLayout
from indexing.opensearch.naming import active_alias, building_alias, index_name
from indexing.opensearch.open_index import (
    OpenedIndex,
    add_new_fields,
    check_index,
    ensure_index,
    read_meta,
    save_model_name,
)
from indexing.opensearch.searcher import OpenSearchIndex
from indexing.opensearch.writer import OpenSearchIndexWriter
from indexing.text.analysis import BY_LANGUAGE

Opened = TypeVar("Opened")


@dataclass(frozen=True, slots=True)
class _VersionIndex:
    """An index version and its index on the cluster."""

    index: str
    index_version: IndexVersion
    meta: Mapping[str, Any]
    """The metadata of the index."""

    @classmethod
    def of(cls, index: str, meta: Mapping[str, Any]) -> "_VersionIndex":
        embedder = EmbedderIdentity(**meta["embedder"])
        return cls(index, IndexVersion(embedder, meta.get("called", embedder.model)), meta)


class OpenSearchIndexVersions:
    """Implements `indexing.index.versions.IndexVersions` over the indexes of one prefix."""

    def __init__(self, client: OpenSearch, prefix: str, layout: IndexLayout | None = None) -> None:
        self._client = client
        self._prefix = prefix
        self._layout = layout or IndexLayout()

    def active(self) -> IndexVersion | None:
        found = self._resolve(active_alias(self._prefix))
        return found.index_version if found else None

    def building(self) -> IndexVersion | None:
        found = self._resolve(building_alias(self._prefix))
        return found.index_version if found else None

    def has_current_words(self) -> bool:
        found = self._resolve(active_alias(self._prefix))
        return found is None or found.meta["analysis"] == BY_LANGUAGE.fingerprint

    def open_index(self, index_version: IndexVersion) -> VersionCheckedIndex:
        return VersionCheckedIndex(lambda: self._open_index(self._active(index_version)))

    def open_writer(self, index_version: IndexVersion) -> VersionCheckedWriter:
        return VersionCheckedWriter(lambda: self._open_writer(self._active(index_version)))

    def start_build(self, index_version: IndexVersion) -> VersionCheckedWriter:
        building = self._resolve(building_alias(self._prefix))
        if building is None:
            # A name that was never used, so that it cannot be taken for an index that was open before.
            name = f"{index_name(self._prefix, index_version.embedder)}-{secrets.token_hex(3)}"
            building = self._create(name, index_version, building_alias(self._prefix))
        if building.index_version.embedder != index_version.embedder:
            raise build_in_progress(building.index_version, index_version)
        return VersionCheckedWriter(partial(self._open_named, building, self._open_writer))

    def open_build_writer(self) -> VersionCheckedWriter | None:
        building = self._resolve(building_alias(self._prefix))
        return (
            VersionCheckedWriter(partial(self._open_named, building, self._open_writer))
            if building
            else None
        )

    def open_build_index(self) -> VersionCheckedIndex:
        building = self._resolve(building_alias(self._prefix))
        if building is None:
            raise ValueError("no index version is being built")
        return VersionCheckedIndex(partial(self._open_named, building, self._open_index))

    def activate(self, index_version: IndexVersion) -> None:
        active = self._resolve(active_alias(self._prefix))
        building = self._resolve(building_alias(self._prefix))
        if building is not None and building.index_version.embedder == index_version.embedder:
            self._change_aliases(self._switch_actions(active, building))
        elif active is None or active.index_version.embedder != index_version.embedder:
            raise ValueError(f"neither being built nor active: {index_version.model_name}")

    def discard_build(self) -> None:
        building = self._resolve(building_alias(self._prefix))
        if building is not None:
            self._change_aliases([{"remove_index": {"index": building.index}}])

    def _switch_actions(
        self, active: _VersionIndex | None, building: _VersionIndex
    ) -> list[dict[str, Any]]:
        aliases = {
            "remove": building_alias(self._prefix),
            "add": active_alias(self._prefix),
        }
        actions: list[dict[str, Any]] = [
            {action: {"index": building.index, "alias": alias}} for action, alias in aliases.items()
        ]
        return actions + ([{"remove_index": {"index": active.index}}] if active else [])

    def _active(self, index_version: IndexVersion) -> _VersionIndex:
        """Return the active index version; create it if there is none."""
        alias = active_alias(self._prefix)
        found = self._resolve(alias)
        if found is None:
            self._create(index_name(self._prefix, index_version.embedder), index_version, alias)
            found = self._resolve(alias)
        if found is None:
            raise TemporarilyUnavailableError(
                "The index on the cluster was just deleted.", errors.RETRY_SOON
            )
        if found.index_version.embedder != index_version.embedder:
            raise embedder_mismatch(found.index_version, index_version)
        return found

    def _create(self, index: str, index_version: IndexVersion, alias: str) -> _VersionIndex:
        ensure_index(self._client, index, index_version.embedder, self._layout)
        meta = save_model_name(self._client, index, index_version.model_name)
        self._change_aliases([{"add": {"index": index, "alias": alias}}])
        return _VersionIndex.of(index, meta)

    def _resolve(self, alias: str) -> _VersionIndex | None:
        """Return the index version of an alias.

        Raises:
            DamagedDataError: the alias has several indexes, created at the same moment or by hand.
        """
        with errors.translate_errors():
            while (index := self._index_of_alias(alias)) is not None:
                meta = read_meta(self._client, index)
                # An index that is gone was switched meanwhile, and its alias too.
                if meta is not None:
                    return _VersionIndex.of(index, meta)
        return None

    def _index_of_alias(self, alias: str) -> str | None:
        found = self._client.indices.get_alias(name=alias, params={"ignore": 404})
        names = [] if "error" in found else sorted(found)
        if len(names) > 1:
            raise DamagedDataError(
                f"The alias {alias} has several indexes: {', '.join(names)}. Remove it from all but the one"
                " that is to be searched."
            )
        return names[0] if names else None

    def _change_aliases(self, actions: Sequence[dict[str, Any]]) -> None:
        with errors.translate_errors():
            self._client.indices.update_aliases(body={"actions": list(actions)})

    def _open_named(
        self, found: _VersionIndex, open_version: Callable[[_VersionIndex], Opened]
    ) -> Opened:
        """Open this version alone. Raises IndexVersionReplacedError: it is gone."""
        if found.index not in self.names():
            raise IndexVersionReplacedError(self.active())
        return open_version(found)

    def _open_index(self, found: _VersionIndex) -> OpenedVersion[Index]:
        opened = self._open(found)
        dimension = found.index_version.embedder.dimension
        index = OpenSearchIndex(
            self._client, opened.name, dimension, opened.vectors, opened.analysis
        )
        return OpenedVersion(index, _AliasGuard(self, opened.name))

    def _open_writer(self, found: _VersionIndex) -> OpenedVersion[IndexWriter]:
        opened = self._open(found)
        add_new_fields(self._client, opened.name)
        dimension = found.index_version.embedder.dimension
        writer = OpenSearchIndexWriter(
            self._client, opened.name, dimension, opened.vectors, opened.analysis
        )
        return OpenedVersion(writer, _AliasGuard(self, opened.name))

    def _open(self, found: _VersionIndex) -> OpenedIndex:
        return check_index(found.index, found.meta, found.index_version.embedder, self._layout)

    def names(self) -> frozenset[str]:
        """Return the indexes of the present index versions."""
        aliases = (active_alias(self._prefix), building_alias(self._prefix))
        return frozenset(found.index for alias in aliases if (found := self._resolve(alias)))


class _AliasGuard:
    """Checks the aliases after an error: an index that was replaced no longer exists."""

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
