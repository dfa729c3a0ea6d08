"""A workspace read from a zip that Slack exported.

It has files with users and channels, and a folder for each channel with a file for each day. It is read
in place; nothing is unpacked.
"""

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
from connectors.errors import SourceError
from connectors.extraction.result import ExtractionError, ExtractionResult
from connectors.http_client.response import MalformedResponse
from connectors.sources.slack.checkpoint import SyncCheckpoint
from connectors.sources.slack.message_store import MessageStore
from connectors.sources.slack.message_text import NameLookup
from connectors.sources.slack.models import File, Message, parse_ts
from connectors.sources.slack.users_and_channels import (
    Channel,
    ChannelKind,
    UserDirectory,
    get_channel_names,
)
from connectors.sources.slack.workspace import ChannelContext, Page, RunPlan, Thread

_USERS_FILE = "users.json"
_CHANNEL_FILES = {
    "channels.json": ChannelKind.PUBLIC,
    "groups.json": ChannelKind.PRIVATE,
    "mpims.json": ChannelKind.GROUP,
    "dms.json": ChannelKind.DIRECT,
}
_MAX_FILE_BYTES = 500_000_000
"""Of one file in the zip, unpacked."""
_PAGE_SIZE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportScope:
    """The export, and which part of it is read."""

    path: Path
    url: str
    """The URL of the workspace, without a final slash."""
    is_selected: Callable[[Channel], bool]


class ExportWorkspace(Closing):
    """Implements `connectors.sources.slack.workspace.Workspace`. To be closed."""

    reads_files = False

    def __init__(self, scope: ExportScope) -> None:
        """Open the export; raise SourceError if there is no such file or it is not a zip."""
        self._scope = scope
        try:
            self._zip = zipfile.ZipFile(scope.path)
        except (OSError, zipfile.BadZipFile) as error:
            raise SourceError(f"{scope.path} cannot be read as a zip: {error}") from error
        self._store = MessageStore()
        self._stored_channel: Channel | None = None

    def close(self) -> None:
        self._zip.close()
        self._store.close()

    @property
    def url(self) -> str:
        return self._scope.url

    @cached_property
    def users(self) -> UserDirectory:
        return UserDirectory(self._read_list(_USERS_FILE))

    @cached_property
    def _root(self) -> str:
        """The folder in the zip with a final slash; usually empty."""
        found = [name for name in self._zip.namelist() if name.split("/")[-1] == _USERS_FILE]
        if not found:
            raise SourceError(
                f"{self._scope.path} is not an export of Slack: it has no {_USERS_FILE}"
            )
        return min(found, key=len).removesuffix(_USERS_FILE)

    @cached_property
    def _channels(self) -> Sequence[Channel]:
        listed = (
            Channel.parse(raw, kind)
            for name, kind in _CHANNEL_FILES.items()
            for raw in self._read_list(name)
        )
        return sorted({one.id: one for one in listed}.values(), key=lambda one: one.id)

    @cached_property
    def _names(self) -> NameLookup:
        channel_names = get_channel_names(self._channels)
        return NameLookup(self.users.get_name, lambda one: channel_names.get(one, one))

    def plan_run(self, since: SyncCheckpoint | None) -> RunPlan:
        # An export never changes: either it is another, or there is nothing new in it.
        state = {"export": self._digest()}
        channels = self.list_channels()
        if since is None or since.state != state:
            return RunPlan(checkpoint=SyncCheckpoint(state), channels=channels)
        return RunPlan(checkpoint=since, channels=channels if since.position else ())

    def list_channels(self) -> Sequence[Channel]:
        return [one for one in self._channels if self._scope.is_selected(one)]

    def list_members(self, channel: Channel) -> Sequence[str]:
        return channel.members

    def get_context(self, channel: Channel) -> ChannelContext:
        label = channel.get_label(self.users, channel.members)
        return ChannelContext(channel, label, self._names)

    def iterate_pages(self, channel: Channel, oldest: str, latest: str) -> Iterator[Page]:
        self._load(channel)
        roots = self._store.get_roots(oldest, latest, _PAGE_SIZE)
        while roots:
            lowest = roots[-1].ts
            yield Page(tuple(roots), lowest)
            self._load(channel)
            found = self._store.get_roots(oldest, lowest, _PAGE_SIZE)
            roots = [one for one in found if parse_ts(one.ts) < parse_ts(lowest)]

    def read_thread(self, channel: Channel, root: Message) -> Thread:
        self._load(channel)
        return self._store.get_thread(root)

    def extract_file(self, file: File) -> ExtractionResult:
        del file
        raise ExtractionError("an export has only the names of files")

    def _load(self, channel: Channel) -> None:
        """Fill the store with the messages of a channel."""
        if self._stored_channel != channel:
            self._store.replace_all(self._iterate_messages(channel))
            self._stored_channel = channel

    def _iterate_messages(self, channel: Channel) -> Iterator[Message]:
        # A folder is named like the channel; that of a conversation between two has its id.
        for name in self._folders.get(channel.name) or self._folders.get(channel.id) or ():
            for raw in self._read_list(name):
                # A message without a time has no id, so nobody could reply or link to it.
                with suppress(MalformedResponse):
                    yield Message.parse(raw)

    @cached_property
    def _folders(self) -> dict[str, list[str]]:
        """The names of the files in each folder."""
        found: dict[str, list[str]] = {}
        for name in self._zip.namelist():
            inner = name.removeprefix(self._root).split("/")
            if len(inner) == 2 and inner[1].endswith(".json"):
                found.setdefault(inner[0], []).append("/".join(inner))
        return found

    def _read_list(self, name: str) -> list[Any]:
        """Read a file with a JSON list; a missing file is an empty list.

        Raises:
            SourceError: it cannot be read, or is not a list.
        """
        path = f"{self._root}{name}"
        with suppress(KeyError):
            if self._zip.getinfo(path).file_size > _MAX_FILE_BYTES:
                raise SourceError(f"{path} in {self._scope.path} is too large to be read")
            try:
                found = json.loads(self._zip.read(path))
            except (ValueError, OSError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
                raise self._damaged_error(path, str(error)) from error
            if isinstance(found, list):
                return found
            raise self._damaged_error(path, "it is not a list")
        return []

    def _damaged_error(self, path: str, reason: str) -> SourceError:
        return SourceError(
            f"{path} in {self._scope.path} cannot be read ({reason}): export the workspace again"
        )

    def _digest(self) -> str:
        """Return a digest of the zip, by the checksums in it, and of the selected channels."""
        files = [[one.filename, one.CRC, one.file_size] for one in self._zip.infolist()]
        selected = [one.id for one in self.list_channels()]
        return hashlib.sha256(json.dumps([files, selected]).encode()).hexdigest()[:32]
