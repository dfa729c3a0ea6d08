"""The editions of an index on the cluster: an index each, and two aliases that say which is which.

One alias stands before the edition that is searched, one before the edition that is being built. A switch is
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
from indexing.index.version_guard import WatchedIndex, WatchedKeeper
from indexing.index.versions import Edition, Superseded, already_building, of_another
from indexing.opensearch import errors
from indexing.opensearch.mapping import IndexLayout
from indexing.opensearch.naming import active_alias, building_alias, edition_name
from indexing.opensearch.open_index import Laid, fitting, lay, meta_of, note_called
from indexing.opensearch.searcher import OpenSearchIndex
from indexing.opensearch.writer import OpenSearchKeeper


@dataclass(frozen=True, slots=True)
class _Placed:
    """An edition and the index that holds it."""

    index: str
    edition: Edition
    meta: Mapping[str, Any]
    """What the index says of itself."""

    @classmethod
    def of(cls, index: str, meta: Mapping[str, Any]) -> "_Placed":
        embedder = EmbedderIdentity(**meta["embedder"])
        return cls(index, Edition(embedder, meta.get("called", embedder.model)), meta)


class OpenSearchEditions:
    """Implements `indexing.index.versions.Editions` over the indexes of one prefix."""

    def __init__(self, client: OpenSearch, prefix: str, layout: IndexLayout | None = None) -> None:
        self._client = client
        self._prefix = prefix
        self._layout = layout or IndexLayout()

    def active(self) -> Edition | None:
        placed = self._behind(active_alias(self._prefix))
        return placed.edition if placed else None

    def building(self) -> Edition | None:
        placed = self._behind(building_alias(self._prefix))
        return placed.edition if placed else None

    def open_index(self, edition: Edition) -> WatchedIndex:
        return self._index(self._active(edition))

    def open_keeper(self, edition: Edition) -> WatchedKeeper:
        return self._keeper(self._active(edition))

    def begin(self, edition: Edition) -> WatchedKeeper:
        building = self._behind(building_alias(self._prefix))
        if building is None:
            # A name that was never used: who has the former index open must not take this one for it.
            name = f"{edition_name(self._prefix, edition.embedder)}-{secrets.token_hex(3)}"
            building = self._made(name, edition, building_alias(self._prefix))
        if building.edition.embedder != edition.embedder:
            raise already_building(building.edition, edition)
        return self._keeper(building)

    def draft(self) -> WatchedKeeper | None:
        building = self._behind(building_alias(self._prefix))
        return self._keeper(building) if building else None

    def preview(self) -> WatchedIndex:
        building = self._behind(building_alias(self._prefix))
        if building is None:
            raise ValueError("no edition is being built")
        return self._index(building)

    def switch(self, edition: Edition) -> None:
        active = self._behind(active_alias(self._prefix))
        building = self._behind(building_alias(self._prefix))
        if building is not None and building.edition.embedder == edition.embedder:
            self._change_aliases(self._switching(active, building))
        elif active is None or active.edition.embedder != edition.embedder:
            raise ValueError(f"neither being built nor active: {edition.called}")

    def abandon(self) -> None:
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

    def _active(self, edition: Edition) -> _Placed:
        """The active edition, made where there is none."""
        alias = active_alias(self._prefix)
        placed = self._behind(alias)
        if placed is None:
            self._made(edition_name(self._prefix, edition.embedder), edition, alias)
            placed = self._behind(alias)
        if placed is None:
            raise TemporarilyUnavailableError(
                "The index on the cluster was removed just now.", errors.SOON
            )
        if placed.edition.embedder != edition.embedder:
            raise of_another(placed.edition, edition)
        return placed

    def _made(self, index: str, edition: Edition, alias: str) -> _Placed:
        lay(self._client, index, edition.embedder, self._layout)
        meta = note_called(self._client, index, edition.called)
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

    def _index(self, placed: _Placed) -> WatchedIndex:
        laid = self._laid(placed)
        dimension = placed.edition.embedder.dimension
        index = OpenSearchIndex(self._client, laid.name, dimension, laid.vectors)
        return WatchedIndex(index, _Watch(self, laid.name))

    def _keeper(self, placed: _Placed) -> WatchedKeeper:
        laid = self._laid(placed)
        dimension = placed.edition.embedder.dimension
        keeper = OpenSearchKeeper(self._client, laid.name, dimension, laid.vectors)
        return WatchedKeeper(keeper, _Watch(self, laid.name))

    def _laid(self, placed: _Placed) -> Laid:
        return fitting(placed.index, placed.meta, placed.edition.embedder, self._layout)

    def names(self) -> frozenset[str]:
        """The indexes that are an edition now."""
        aliases = (active_alias(self._prefix), building_alias(self._prefix))
        return frozenset(placed.index for alias in aliases if (placed := self._behind(alias)))


class _Watch:
    """Looks at the aliases when something failed: an index that is gone answers nothing by itself."""

    def __init__(self, editions: OpenSearchEditions, index: str) -> None:
        self._editions = editions
        self._index = index

    @contextmanager
    def kept(self) -> Iterator[None]:
        try:
            yield
        except (ActionRequiredError, TemporarilyUnavailableError):
            if self._index not in self._editions.names():
                raise Superseded(self._editions.active()) from None
            raise
