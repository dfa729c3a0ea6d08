"""The editions of the local index: a folder each, and a register that says what they are.

A switch exchanges the register and then removes the former folder. A crash before the exchange has changed
nothing, one after it leaves a folder that nobody names, which the next `begin`, `switch` or `abandon` removes.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from indexing.index.version_guard import WatchedIndex, WatchedKeeper
from indexing.index.versions import Edition, Superseded, already_building, of_another
from indexing.local import manifest
from indexing.local.manifest import Placed, Register
from indexing.local.open_index import open_index, open_keeper
from indexing.local.version_guard import Watch
from indexing.local.writer_lock import sole_writer

Opened = TypeVar("Opened")


class EmbeddedEditions:
    """Implements `indexing.index.versions.Editions` over a folder that several processes may use."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def active(self) -> Edition | None:
        placed = manifest.read(self._home).active
        return placed.edition if placed else None

    def building(self) -> Edition | None:
        placed = manifest.read(self._home).building
        return placed.edition if placed else None

    def open_index(self, edition: Edition) -> WatchedIndex:
        return self._opened(edition, self._index)

    def open_keeper(self, edition: Edition) -> WatchedKeeper:
        return self._opened(edition, self._keeper)

    def begin(self, edition: Edition) -> WatchedKeeper:
        with self._alone() as known:
            building = known.building or Placed(manifest.new_folder(edition), edition)
            if building.edition.embedder != edition.embedder:
                raise already_building(building.edition, edition)
            following = replace(known, building=building)
            manifest.write(self._home, following)
            self._tidy(following)
        return self._keeper(building)

    def draft(self) -> WatchedKeeper | None:
        building = manifest.read(self._home).building
        return self._keeper(building) if building else None

    def preview(self) -> WatchedIndex:
        building = manifest.read(self._home).building
        if building is None:
            raise ValueError("no edition is being built")
        return self._index(building)

    def switch(self, edition: Edition) -> None:
        with self._alone() as known:
            following = _switched(known, edition)
            with self._no_writer(known.active):
                manifest.write(self._home, following)
            self._tidy(following)

    def abandon(self) -> None:
        with self._alone() as known:
            following = Register(active=known.active)
            manifest.write(self._home, following)
            self._tidy(following)

    def _opened(self, edition: Edition, opening: Callable[[Placed], Opened]) -> Opened:
        """What is opened while a switch goes on may be of a folder that is gone: then, once more."""
        while True:
            placed = manifest.read(self._home).active or self._first(edition)
            if placed.edition.embedder != edition.embedder:
                raise of_another(placed.edition, edition)
            try:
                return opening(placed)
            except Superseded:
                continue

    def _first(self, edition: Edition) -> Placed:
        with self._alone() as known:
            first = known.active or Placed(manifest.new_folder(edition), edition)
            if known.active is None:
                manifest.write(self._home, replace(known, active=first))
            return first

    def _index(self, placed: Placed) -> WatchedIndex:
        watch = Watch(self._home, placed.folder)
        with watch.kept():
            index = open_index(self._home / placed.folder, placed.edition.embedder)
        return WatchedIndex(index, watch)

    def _keeper(self, placed: Placed) -> WatchedKeeper:
        watch = Watch(self._home, placed.folder)
        with watch.kept():
            folder, identity = self._home / placed.folder, placed.edition.embedder
            keeper = open_keeper(folder, identity, watch.check)
        return WatchedKeeper(keeper, watch)

    @contextmanager
    def _alone(self) -> Iterator[Register]:
        """The register, which no other process exchanges within the block."""
        self._home.mkdir(parents=True, exist_ok=True)
        with sole_writer(self._home):
            yield manifest.read(self._home)

    def _no_writer(self, placed: Placed | None) -> AbstractContextManager[None]:
        """A write to the edition has either returned before the block or fails after it."""
        if placed is None or not (self._home / placed.folder).is_dir():
            return nullcontext()
        return sole_writer(self._home / placed.folder)

    def _tidy(self, known: Register) -> None:
        """Remove every folder that is not registered. Who has its files open may still read them."""
        for folder in self._home.iterdir():
            if folder.is_dir() and folder.name not in known.folders:
                shutil.rmtree(folder, ignore_errors=True)


def _switched(known: Register, edition: Edition) -> Register:
    match known:
        case Register(building=Placed(edition=Edition(embedder))) if embedder == edition.embedder:
            return Register(active=known.building)
        case Register(active=Placed(edition=Edition(embedder))) if embedder == edition.embedder:
            return known
        case _:
            raise ValueError(f"neither being built nor active: {edition.called}")
