"""A folder on this machine's disk."""

import os
import shutil
import time
from datetime import timedelta
from pathlib import Path

from connectors.access import EVERYBODY, PUBLIC, Access
from connectors.connector import Connector
from connectors.sources.folder.connector import FolderConnector, FolderSettings
from tests.contract.connector_worlds.held import list_groups
from tests.contract.connector_worlds.world import (
    ITEMS,
    SOURCE_ID,
    UNREADABLE,
    Crowds,
    Fails,
    IdOnMove,
    Moves,
    RuleReaders,
    Skews,
    World,
    edited_text,
    text,
    title,
)

_FILES_A_FOLDER = 1000


class FolderWorld(World, RuleReaders, Moves, Fails, Skews, Crowds):
    name = "folder"
    id_on_move = IdOnMove.CHANGED

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._files = root / "files"
        self._ahead = timedelta()
        for number in range(ITEMS):
            self._write(number, text(number))
        self.fail(UNREADABLE)
        self.write_rules()
        (self._group,) = list_groups(self.connect())

    def connect(self) -> Connector:
        return FolderConnector("源", SOURCE_ID, FolderSettings(path=self._files))

    def readers(self, number: int) -> Access:
        return Access.to([self._group.token]) if number % 7 == 3 else EVERYBODY

    def people(self, number: int) -> frozenset[str]:
        return frozenset(self.rule_readers if number % 7 == 3 else {PUBLIC})

    def write_rules(self) -> None:
        (self._files / "access.yaml").write_text(self.format_rules("3/**"))

    def edit(self, number: int) -> None:
        self._write(number, edited_text(number))

    def remove(self, number: int) -> None:
        self._path(number).unlink()

    def move(self, number: int) -> None:
        path = self._path(number)
        path.rename(path.with_name(f"moved {path.name}"))

    def fail(self, number: int) -> None:
        self._path(number).write_bytes(b"")

    def heal(self, number: int) -> None:
        self._write(number, text(number))

    def skew(self, by: timedelta) -> None:
        self._ahead = by

    def crowd(self, items: int) -> Connector:
        root = self.root / "crowd"
        for number in range(items):
            folder = root / str(number // _FILES_A_FOLDER)
            if number % _FILES_A_FOLDER == 0:
                folder.mkdir(parents=True)
                (folder / "first.txt").write_bytes(b"Crowd.")
            else:
                # One file by many names is made faster than many files.
                (folder / f"{number}.txt").hardlink_to(folder / "first.txt")
        return FolderConnector("crowd", SOURCE_ID, FolderSettings(path=root))

    def close(self) -> None:
        shutil.rmtree(self.root)

    def _path(self, number: int) -> Path:
        return self._files / f"{number % 7}/項目 {number:03}.md"

    def _write(self, number: int, says: str) -> None:
        path = self._path(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {title(number)}\n\n{says}")
        stamp = time.time_ns() + self._ahead // timedelta(microseconds=1) * 1000
        os.utime(path, ns=(stamp, stamp))
