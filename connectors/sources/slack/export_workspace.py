"""A workspace by the zip that Slack exports: who and what there is in files of their own, and for each
channel a folder with a file a day. It is read from the zip as it stands; nothing of it is unpacked."""

import hashlib
import json
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from connectors.closing import Closing
from connectors.errors import ActionRequiredError
from connectors.extraction.result import CannotRead, Extracted
from connectors.http_client.response import Malformed
from connectors.sources.slack.checkpoint import Mark
from connectors.sources.slack.message_store import Spool
from connectors.sources.slack.message_text import Names
from connectors.sources.slack.models import File, Message, order
from connectors.sources.slack.users_and_channels import (
    Channel,
    ChannelKind,
    People,
    PublicReaders,
    Reading,
    named_by_id,
)
from connectors.sources.slack.workspace import Page, Place, Round, Thread

_USERS = "users.json"
_LISTS = {
    "channels.json": ChannelKind.PUBLIC,
    "groups.json": ChannelKind.PRIVATE,
    "mpims.json": ChannelKind.GROUP,
    "dms.json": ChannelKind.DIRECT,
}
_LARGEST_PART = 500_000_000
"""Bytes of one file, unpacked."""
_PAGE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """Which export, and what of it is read."""

    path: Path
    url: str
    """Of the workspace that it is of, with no slash at the end."""
    chosen: Callable[[Channel], bool]
    public: PublicReaders


class ExportWorkspace(Closing):
    """See `Workspace`. To be closed."""

    reads_files = False

    def __init__(self, archive: Archive) -> None:
        """Raises ActionRequiredError: there is no such file, or it is no export."""
        self._archive = archive
        try:
            self._zip = zipfile.ZipFile(archive.path)
        except (OSError, zipfile.BadZipFile) as error:
            raise ActionRequiredError(f"{archive.path} cannot be read as a zip: {error}") from error
        self._spool = Spool()
        self._spooled: Channel | None = None

    def close(self) -> None:
        self._zip.close()
        self._spool.close()

    @property
    def url(self) -> str:
        return self._archive.url

    @cached_property
    def people(self) -> People:
        return People(self._list(_USERS))

    @cached_property
    def _root(self) -> str:
        """The folder in the zip, with a slash at its end; mostly none."""
        found = [name for name in self._zip.namelist() if name.split("/")[-1] == _USERS]
        if not found:
            raise ActionRequiredError(
                f"{self._archive.path} is no export of Slack: there is no {_USERS} in it"
            )
        return min(found, key=len).removesuffix(_USERS)

    @cached_property
    def _found(self) -> Sequence[Channel]:
        listed = (
            Channel.of(raw, kind) for name, kind in _LISTS.items() for raw in self._list(name)
        )
        return sorted({one.id: one for one in listed}.values(), key=lambda one: one.id)

    @cached_property
    def _names(self) -> Names:
        called = named_by_id(self._found)
        return Names(self.people.name, lambda one: called.get(one, one))

    def begin(self, since: Mark | None) -> Round:
        """An export never changes: it is another, or there is nothing new in it."""
        state = {"export": self._digest()}
        channels = self.channels()
        if since is None or since.state != state:
            return Round(mark=Mark(state), channels=channels)
        return Round(mark=since, channels=channels if since.at else ())

    def channels(self) -> Sequence[Channel]:
        return [one for one in self._found if self._archive.chosen(one)]

    def place(self, channel: Channel) -> Place:
        access = Reading(self.people, self._archive.public).access(channel, channel.listed)
        return Place(channel, channel.label(self.people, channel.listed), access, self._names)

    def pages(self, channel: Channel, oldest: str, latest: str) -> Iterator[Page]:
        self._fill(channel)
        following = self._spool.roots(oldest, latest, _PAGE)
        while following:
            lowest = following[-1].ts
            yield Page(tuple(following), lowest)
            self._fill(channel)
            found = self._spool.roots(oldest, lowest, _PAGE)
            following = [one for one in found if order(one.ts) < order(lowest)]

    def thread(self, channel: Channel, root: Message) -> Thread:
        self._fill(channel)
        return self._spool.thread(root)

    def extracted(self, file: File) -> Extracted:
        del file
        raise CannotRead("an export holds only the names of files")

    def _fill(self, channel: Channel) -> None:
        if self._spooled != channel:
            self._spool.fill(self._messages(channel))
            self._spooled = channel

    def _messages(self, channel: Channel) -> Iterator[Message]:
        """Folders are called as the channel, those of conversations between two by its id."""
        for name in self._folders.get(channel.name) or self._folders.get(channel.id) or ():
            for raw in self._list(name):
                # What has no moment has no id, and nobody could answer it or link to it.
                with suppress(Malformed):
                    yield Message.of(raw)

    @cached_property
    def _folders(self) -> dict[str, list[str]]:
        """The names of the files of each folder."""
        found: dict[str, list[str]] = {}
        for name in self._zip.namelist():
            inner = name.removeprefix(self._root).split("/")
            if len(inner) == 2 and inner[1].endswith(".json"):
                found.setdefault(inner[0], []).append("/".join(inner))
        return found

    def _list(self, name: str) -> list[Any]:
        """A file that holds a list; none is an empty one.

        Raises:
            ActionRequiredError: it cannot be read, or is something else.
        """
        path = f"{self._root}{name}"
        with suppress(KeyError):
            if self._zip.getinfo(path).file_size > _LARGEST_PART:
                raise ActionRequiredError(
                    f"{path} in {self._archive.path} is larger than can be read"
                )
            try:
                found = json.loads(self._zip.read(path))
            except (ValueError, OSError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
                raise self._damaged(path, error) from error
            if isinstance(found, list):
                return found
            raise self._damaged(path, Malformed("it holds no list"))
        return []

    def _damaged(self, path: str, error: Exception) -> ActionRequiredError:
        return ActionRequiredError(
            f"{path} in {self._archive.path} cannot be read ({error}): export the workspace again"
        )

    def _digest(self) -> str:
        """Of what the zip holds, by the check sums it keeps itself, and of what is read of it."""
        told = [[one.filename, one.CRC, one.file_size] for one in self._zip.infolist()]
        chosen = [one.id for one in self.channels()]
        return hashlib.sha256(json.dumps([told, chosen]).encode()).hexdigest()[:32]
