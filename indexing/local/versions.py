"""The index versions of the local index: a folder each, and a register that says what they are.

A switch exchanges the register and then removes the former folder. A crash before the exchange has changed
nothing, one after it leaves a folder that nobody names, which the next `start_build`, `activate` or `discard_build` removes.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from indexing.index.version_guard import VersionCheckedIndex, VersionCheckedWriter
from indexing.index.versions import (
    IndexVersion,
    IndexVersionReplacedError,
    already_building,
    of_another,
)
from indexing.local import manifest
from indexing.local.manifest import Placed, Register
from indexing.local.open_index import open_index, open_writer
from indexing.local.version_guard import Watch
from indexing.local.writer_lock import sole_writer

Opened = TypeVar("Opened")


class LocalIndexVersions:
    """Implements `indexing.index.versions.IndexVersions` over a folder that several processes may use."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def active(self) -> IndexVersion | None:
        placed = manifest.read(self._home).active
        return placed.index_version if placed else None

    def building(self) -> IndexVersion | None:
        placed = manifest.read(self._home).building
        return placed.index_version if placed else None

    def open_index(self, index_version: IndexVersion) -> VersionCheckedIndex:
        return self._opened(index_version, self._index)

    def open_writer(self, index_version: IndexVersion) -> VersionCheckedWriter:
        return self._opened(index_version, self._writer)

    def start_build(self, index_version: IndexVersion) -> VersionCheckedWriter:
        with self._alone() as known:
            building = known.building or Placed(manifest.new_folder(index_version), index_version)
            if building.index_version.embedder != index_version.embedder:
                raise already_building(building.index_version, index_version)
            following = replace(known, building=building)
            manifest.write(self._home, following)
            self._tidy(following)
        return self._writer(building)

    def open_build_writer(self) -> VersionCheckedWriter | None:
        building = manifest.read(self._home).building
        return self._writer(building) if building else None

    def open_build_index(self) -> VersionCheckedIndex:
        building = manifest.read(self._home).building
        if building is None:
            raise ValueError("no index version is being built")
        return self._index(building)

    def activate(self, index_version: IndexVersion) -> None:
        with self._alone() as known:
            following = _switched(known, index_version)
            with self._no_writer(known.active):
                manifest.write(self._home, following)
            self._tidy(following)

    def discard_build(self) -> None:
        with self._alone() as known:
            following = Register(active=known.active)
            manifest.write(self._home, following)
            self._tidy(following)

    def _opened(self, index_version: IndexVersion, opening: Callable[[Placed], Opened]) -> Opened:
        """What is opened while a switch goes on may be of a folder that is gone: then, once more."""
        while True:
            placed = manifest.read(self._home).active or self._first(index_version)
            if placed.index_version.embedder != index_version.embedder:
                raise of_another(placed.index_version, index_version)
            try:
                return opening(placed)
            except IndexVersionReplacedError:
                continue

    def _first(self, index_version: IndexVersion) -> Placed:
        with self._alone() as known:
            first = known.active or Placed(manifest.new_folder(index_version), index_version)
            if known.active is None:
                manifest.write(self._home, replace(known, active=first))
            return first

    def _index(self, placed: Placed) -> VersionCheckedIndex:
        watch = Watch(self._home, placed.folder)
        with watch.kept():
            index = open_index(self._home / placed.folder, placed.index_version.embedder)
        return VersionCheckedIndex(index, watch)

    def _writer(self, placed: Placed) -> VersionCheckedWriter:
        watch = Watch(self._home, placed.folder)
        with watch.kept():
            folder, identity = self._home / placed.folder, placed.index_version.embedder
            writer = open_writer(folder, identity, watch.check)
        return VersionCheckedWriter(writer, watch)

    @contextmanager
    def _alone(self) -> Iterator[Register]:
        """The register, which no other process exchanges within the block."""
        self._home.mkdir(parents=True, exist_ok=True)
        with sole_writer(self._home):
            yield manifest.read(self._home)

    def _no_writer(self, placed: Placed | None) -> AbstractContextManager[None]:
        """A write to the index version has either returned before the block or fails after it."""
        if placed is None or not (self._home / placed.folder).is_dir():
            return nullcontext()
        return sole_writer(self._home / placed.folder)

    def _tidy(self, known: Register) -> None:
        """Remove every folder that is not registered. Who has its files open may still read them."""
        for folder in self._home.iterdir():
            if folder.is_dir() and folder.name not in known.folders:
                shutil.rmtree(folder, ignore_errors=True)


def _switched(known: Register, index_version: IndexVersion) -> Register:
    match known:
        case Register(building=Placed(index_version=IndexVersion(embedder))) if (
            embedder == index_version.embedder
        ):
            return Register(active=known.building)
        case Register(active=Placed(index_version=IndexVersion(embedder))) if (
            embedder == index_version.embedder
        ):
            return known
        case _:
            raise ValueError(f"neither being built nor active: {index_version.called}")
