"""A folder of mbox files."""

from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from connectors.access import Access
from connectors.connector import Connector
from connectors.sources.mbox.connector import MboxConnector, MboxSettings
from tests.contract.connector_worlds.world import (
    ITEMS,
    UNREADABLE,
    Crowds,
    IdOnMove,
    Moves,
    World,
    edited_text,
    text,
    title,
)
from tests.support.services.imap import message

_LARGEST = 20_000
_SEPARATOR = b"From ann@example.com Mon Jan  5 10:00:00 2026\n"
_CROWDED = """\
From ann@example.com Mon Jan  5 10:00:00 2026
From: Ann Lee <ann@example.com>
Date: Mon, 5 Jan 2026 10:00:00 +0000
Message-ID: <crowd-{number}@mail.example.com>
Subject: Crowd {number}

Crowd.

"""


class MboxWorld(World, Moves, Crowds):
    name = "mbox"
    id_on_move = IdOnMove.KEPT

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._files = root / "files"
        (self._files / "2026").mkdir(parents=True)
        for part in range(7):
            _write(self._path(part), (_item(number) for number in range(part, ITEMS, 7)))

    def connect(self) -> Connector:
        settings = MboxSettings(
            path=self._files, readers=("group:three",), largest_message=_LARGEST
        )
        return MboxConnector("源", settings)

    def readers(self, number: int) -> Access:
        """Files have no readers of their own but those of the settings."""
        del number
        return Access.to(["group:three"])

    def edit(self, number: int) -> None:
        """Mail is never edited; it is answered."""
        answer = message(
            f"Re: {title(number)}",
            edited_text(number),
            f"answer-{number:03}",
            From="Bo Ek <bo@example.com>",
            Date="Tue, 06 Jan 2026 10:00:00 +0000",
            In_Reply_To=f"<item-{number:03}@mail.example.com>",
        )
        with self._path(number).open("ab") as file:
            file.write(_SEPARATOR + answer + b"\n")

    def remove(self, number: int) -> None:
        names = (f"item-{number:03}@".encode(), f"answer-{number:03}@".encode())
        self._keep(number, lambda data: not any(name in data for name in names))

    def move(self, number: int) -> None:
        name = f"item-{number:03}@".encode()
        self._keep(number, lambda data: name not in data)
        _write(self._files / "2026" / "moved", [_item(number)])

    def crowd(self, items: int) -> Connector:
        path = self.root / "crowd.mbox"
        with path.open("w") as file:
            file.writelines(_CROWDED.format(number=number) for number in range(items))
        return MboxConnector("crowd", MboxSettings(path=path, readers=("public",)))

    def _path(self, number: int) -> Path:
        return self._files / f"{number % 7}.mbox"

    def _keep(self, number: int, wanted: Callable[[bytes], bool]) -> None:
        path = self._path(number)
        messages = path.read_bytes().split(_SEPARATOR)[1:]
        _write(path, [one.removesuffix(b"\n") for one in messages if wanted(one)])


def _write(path: Path, messages: Iterable[bytes]) -> None:
    path.write_bytes(b"".join(_SEPARATOR + one + b"\n" for one in messages))


@cache
def _item(number: int) -> bytes:
    filling = "\n" + "x" * 70
    body = text(number) + (filling * (_LARGEST // 60) if number == UNREADABLE else "")
    return message(title(number), body, f"item-{number:03}")
