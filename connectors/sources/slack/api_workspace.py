"""A workspace by Slack's Web API.

A channel is paged by the moments of its messages, not by cursors, which may expire: the next page
begins where the last one ended, with it. So a run can go on at the same place at any later time.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from connectors.document import NOBODY
from connectors.extraction.media_types import HEAD, UNKNOWN, media_type_of
from connectors.extraction.registry import can_read, extract, not_read_yet
from connectors.extraction.result import CannotRead, Extracted
from connectors.http_client.request import Params
from connectors.http_client.response import Malformed
from connectors.sources.slack.checkpoint import Mark
from connectors.sources.slack.client import Calls, items
from connectors.sources.slack.message_text import Names
from connectors.sources.slack.models import BEGINNING, File, Message, order, ts_of
from connectors.sources.slack.pagination import Steps
from connectors.sources.slack.runs import Run
from connectors.sources.slack.users_and_channels import (
    Channel,
    ChannelKind,
    People,
    PublicReaders,
    Reading,
    User,
    named_by_id,
)
from connectors.sources.slack.workspace import NoSuchPlace, Page, Place, Round, Thread

PAGE = 200
"""Messages asked for at once: what Slack recommends; it may give fewer."""

_TYPES = {
    ChannelKind.PUBLIC: "public_channel",
    ChannelKind.PRIVATE: "private_channel",
    ChannelKind.GROUP: "mpim",
    ChannelKind.DIRECT: "im",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What of a workspace is read, and how far back it is compared."""

    kinds: Sequence[ChannelKind]
    chosen: Callable[[Channel], bool]
    public: PublicReaders
    look_back: timedelta
    settles: timedelta
    """Answers that are older are not looked at again for edits."""
    compare: timedelta
    """All is compared again after that time; with zero it never is."""
    largest_file: int
    """Bytes; with 0 files are only named."""


class OnlineWorkspace:
    """See `Workspace`."""

    def __init__(self, calls: Calls, scope: Scope) -> None:
        self._calls = calls
        self._scope = scope
        self._place: Place | None = None
        self.reads_files = scope.largest_file > 0

    @cached_property
    def url(self) -> str:
        return str(self._self.get("url") or "https://slack.com").rstrip("/")

    @cached_property
    def people(self) -> People:
        return People(self._calls.all("users.list", "members"), self._stranger)

    @cached_property
    def _self(self) -> Mapping[str, Any]:
        return self._calls.patient("auth.test")

    @cached_property
    def _found(self) -> Sequence[Channel]:
        types = ",".join(_TYPES[kind] for kind in self._scope.kinds)
        raws = self._calls.all("conversations.list", "channels", {"types": types})
        # Pages may shift while they are asked for, and give one twice.
        found = {one.id: one for one in map(Channel.of, raws)}
        return sorted(found.values(), key=lambda one: one.id)

    @cached_property
    def _names(self) -> Names:
        called = named_by_id(self._found)
        return Names(self.people.name, lambda one: called.get(one, one))

    def begin(self, since: Mark | None) -> Round:
        channels = self.channels()
        now = datetime.now(UTC).timestamp()
        run = Run.of(since)
        if since is None or run is None:
            run, at = Run(began=now, compared=now, channels=_digest(channels)), None
        elif since.at is not None:
            at = since.at
        else:
            run, at = self._next(run, now, channels), None
        settled = min(run.began, now) - self._settles(run).total_seconds()
        return Round(
            mark=Mark(run.state(), at),
            channels=channels,
            oldest=run.oldest,
            settled=ts_of(settled),
            has_new_channels=run.has_new_channels,
        )

    def _settles(self, run: "Run") -> timedelta:
        """In a comparison of all, edits are looked for further back."""
        scope = self._scope
        return max(scope.settles, scope.look_back) if run.oldest == BEGINNING else scope.settles

    def _next(self, last: "Run", now: float, channels: Sequence[Channel]) -> "Run":
        digest = _digest(channels)
        compare = self._scope.compare.total_seconds()
        if compare and not 0 <= now - last.compared < compare:
            return Run(began=now, compared=now, channels=digest)
        oldest = min(last.began, now) - self._scope.look_back.total_seconds()
        return Run(
            began=now,
            compared=last.compared,
            channels=digest,
            oldest=ts_of(oldest),
            has_new_channels=digest != last.channels,
        )

    def channels(self) -> Sequence[Channel]:
        """An app reads only where it was invited; a person's token every public channel."""
        is_app = bool(self._self.get("bot_id"))
        return [
            one
            for one in self._found
            if self._scope.chosen(one) and (one.is_member or not (is_app and one.is_named))
        ]

    def place(self, channel: Channel) -> Place:
        if self._place is None or self._place.channel != channel:
            self._place = self._made(channel)
        return self._place

    def _made(self, channel: Channel) -> Place:
        reading = Reading(self.people, self._scope.public)
        members: list[str] = []
        access = NOBODY
        try:
            if reading.needs_members(channel):
                asked = {"channel": channel.id}
                members += map(str, self._calls.all("conversations.members", "members", asked))
            access = reading.access(channel, members)
        except NoSuchPlace:
            pass
        return Place(channel, channel.label(self.people, members), access, self._names)

    def pages(self, channel: Channel, oldest: str, latest: str) -> Iterator[Page]:
        asked: Params = {
            "channel": channel.id,
            "limit": PAGE,
            "inclusive": "true",
            "oldest": oldest,
        }
        steps = Steps("conversations.history", latest)
        while True:
            bound = {"latest": steps.reached} if steps.reached else {}
            answer = self._calls.quick("conversations.history", {**asked, **bound, **steps.cursor})
            messages = _messages(answer, "conversations.history")
            more = steps.go(answer, min((one.ts for one in messages), key=order, default=""))
            if messages:
                yield Page(tuple(messages), steps.reached)
            if not more:
                return

    def thread(self, channel: Channel, root: Message) -> Thread:
        asked: Params = {"channel": channel.id, "ts": root.ts, "limit": PAGE, "inclusive": "true"}
        steps = Steps("conversations.replies", "", forwards=True)
        found: dict[str, Message] = {}
        call = self._calls.quick
        while True:
            bound = {"oldest": steps.reached} if steps.reached else {}
            answer = call("conversations.replies", {**asked, **bound, **steps.cursor})
            messages = _messages(answer, "conversations.replies")
            found |= {one.ts: one for one in messages if one.thread_ts == root.ts}
            if not steps.go(answer, max((one.ts for one in messages), key=order, default="")):
                return _thread(found, root)
            # A thread is had whole or not at all, however slowly its pages come.
            call = self._calls.patient

    def extracted(self, file: File) -> Extracted:
        largest = self._scope.largest_file
        if not file.url:
            raise CannotRead("it does not lie with Slack")
        if not largest or file.size > largest:
            raise CannotRead(f"it has {file.size:,} bytes; the limit is {largest:,}")
        named = media_type_of(file.name, b"")
        if not (can_read(named) or (named == UNKNOWN and file.is_text)):
            raise not_read_yet(named)
        data = self._calls.file(file.url, largest)
        return extract(data, media_type_of(file.name, data[:HEAD]))

    def _stranger(self, user_id: str) -> User | None:
        """Somebody of another workspace, who is not among the users of this one."""
        try:
            return User.of(self._calls.patient("users.info", {"user": user_id}).get("user"))
        except (NoSuchPlace, Malformed):
            return None


def _messages(answer: Mapping[str, Any], method: str) -> list[Message]:
    return [Message.of(raw) for raw in items(answer, "messages", method)]


def _thread(found: Mapping[str, Message], root: Message) -> Thread:
    """Raises Malformed: the message that begins it is not among them."""
    first, *answers = sorted(found.values(), key=lambda one: order(one.ts)) or (None,)
    if first is None or first.ts != root.ts:
        raise Malformed("Slack answers without the message that begins the thread")
    return (first, *answers)


def _digest(channels: Sequence[Channel]) -> str:
    return hashlib.sha256(" ".join(one.id for one in channels).encode()).hexdigest()[:32]
