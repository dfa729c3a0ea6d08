"""A workspace read with Slack's Web API.

A channel is paged by the timestamps of its messages, not by cursors, which may expire: the next page
begins where the last one ended. So a run can resume at the same position at any later time.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from connectors.extraction.registry import (
    HEAD_SIZE,
    UNKNOWN,
    detect_media_type,
    extract,
    is_supported,
    unsupported_format,
)
from connectors.extraction.result import ExtractionError, ExtractionResult
from connectors.http_client.api_client import get_field
from connectors.http_client.request import Params
from connectors.http_client.response import MalformedResponse
from connectors.sources.slack.checkpoint import ApiRunState, SyncCheckpoint
from connectors.sources.slack.client import SlackClient, SlackNotFoundError
from connectors.sources.slack.message_text import NameLookup
from connectors.sources.slack.models import BEGINNING, File, Message, format_ts, parse_ts
from connectors.sources.slack.pagination import TimestampPager
from connectors.sources.slack.users_and_channels import (
    Channel,
    ChannelKind,
    PublicReaders,
    User,
    UserDirectory,
    get_channel_names,
)
from connectors.sources.slack.workspace import ChannelContext, Page, RunPlan, Thread

PAGE_SIZE = 200
"""Slack's recommendation; it may return fewer messages."""

_CHANNEL_TYPES = {
    ChannelKind.PUBLIC: "public_channel",
    ChannelKind.PRIVATE: "private_channel",
    ChannelKind.GROUP: "mpim",
    ChannelKind.DIRECT: "im",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which part of a workspace is read, and how far back it is compared."""

    kinds: Sequence[ChannelKind]
    is_selected: Callable[[Channel], bool]
    public: PublicReaders
    look_back: timedelta
    settles_after: timedelta
    """Older replies are not checked again for edits."""
    compare_interval: timedelta
    """After that time everything is compared again; zero means never."""
    max_file_bytes: int
    """With 0, only the names of files are indexed."""


class ApiWorkspace:
    """Implements `connectors.sources.slack.workspace.Workspace`."""

    def __init__(self, client: SlackClient, scope: Scope) -> None:
        self._client = client
        self._scope = scope
        self._context: ChannelContext | None = None
        self.reads_files = scope.max_file_bytes > 0

    @cached_property
    def url(self) -> str:
        return str(self._account.get("url") or "https://slack.com").rstrip("/")

    @cached_property
    def users(self) -> UserDirectory:
        return UserDirectory(self._client.list_items("users.list", "members"), self._find_user)

    @cached_property
    def _account(self) -> Mapping[str, Any]:
        return self._client.call_patiently("auth.test")

    @cached_property
    def _channels(self) -> Sequence[Channel]:
        types = ",".join(_CHANNEL_TYPES[kind] for kind in self._scope.kinds)
        listed = self._client.list_items("conversations.list", "channels", {"types": types})
        # The pages may shift while they are requested, and return a channel twice.
        found = {one.id: one for one in map(Channel.parse, listed)}
        return sorted(found.values(), key=lambda one: one.id)

    @cached_property
    def _names(self) -> NameLookup:
        channel_names = get_channel_names(self._channels)
        return NameLookup(self.users.get_name, lambda one: channel_names.get(one, one))

    def plan_run(self, since: SyncCheckpoint | None) -> RunPlan:
        channels = self.list_channels()
        now = datetime.now(UTC).timestamp()
        state = ApiRunState.parse(since)
        position = since.position if since and state else None
        if state is None:
            digest = _digest(channels)
            state = ApiRunState(started_at=now, compared_at=now, channels_digest=digest)
        elif position is None:
            state = self._start_run(state, now, channels)
        settled = min(state.started_at, now) - self._get_settle_time(state).total_seconds()
        return RunPlan(
            checkpoint=SyncCheckpoint(state.to_state(), position),
            channels=channels,
            oldest=state.oldest,
            settled=format_ts(settled),
            has_new_channels=state.has_new_channels,
        )

    def _get_settle_time(self, state: ApiRunState) -> timedelta:
        """Return how far back replies are checked for edits: further in a complete comparison."""
        scope = self._scope
        if state.oldest == BEGINNING:
            return max(scope.settles_after, scope.look_back)
        return scope.settles_after

    def _start_run(self, last: ApiRunState, now: float, channels: Sequence[Channel]) -> ApiRunState:
        digest = _digest(channels)
        interval = self._scope.compare_interval.total_seconds()
        if interval and not 0 <= now - last.compared_at < interval:
            return ApiRunState(started_at=now, compared_at=now, channels_digest=digest)
        oldest = min(last.started_at, now) - self._scope.look_back.total_seconds()
        return ApiRunState(
            started_at=now,
            compared_at=last.compared_at,
            channels_digest=digest,
            oldest=format_ts(oldest),
            has_new_channels=digest != last.channels_digest,
        )

    def list_channels(self) -> Sequence[Channel]:
        # An app reads only channels to which it was invited; the token of a person reads every
        # public channel.
        is_app = bool(self._account.get("bot_id"))
        return [
            one
            for one in self._channels
            if self._scope.is_selected(one) and (one.is_member or not (is_app and one.is_named))
        ]

    def list_members(self, channel: Channel) -> Sequence[str]:
        params = {"channel": channel.id}
        try:
            listed = self._client.list_items("conversations.members", "members", params)
            return tuple(map(str, listed))
        except SlackNotFoundError:
            return ()

    def get_context(self, channel: Channel) -> ChannelContext:
        if self._context is None or self._context.channel != channel:
            self._context = self._read_context(channel)
        return self._context

    def _read_context(self, channel: Channel) -> ChannelContext:
        members = () if channel.is_named else self.list_members(channel)
        return ChannelContext(channel, channel.get_label(self.users, members), self._names)

    def iterate_pages(self, channel: Channel, oldest: str, latest: str) -> Iterator[Page]:
        params: Params = {
            "channel": channel.id,
            "limit": PAGE_SIZE,
            "inclusive": "true",
            "oldest": oldest,
        }
        pager = TimestampPager("conversations.history", latest)
        while True:
            bound = {"latest": pager.reached} if pager.reached else {}
            result = self._client.call("conversations.history", {**params, **bound, **pager.cursor})
            messages = _parse_messages(result)
            edge = min((one.ts for one in messages), key=parse_ts, default="")
            has_more = pager.advance(result, edge)
            if messages:
                yield Page(tuple(messages), pager.reached)
            if not has_more:
                return

    def read_thread(self, channel: Channel, root: Message) -> Thread:
        params: Params = {
            "channel": channel.id,
            "ts": root.ts,
            "limit": PAGE_SIZE,
            "inclusive": "true",
        }
        pager = TimestampPager("conversations.replies", "", forwards=True)
        found: dict[str, Message] = {}
        call = self._client.call
        while True:
            bound = {"oldest": pager.reached} if pager.reached else {}
            result = call("conversations.replies", {**params, **bound, **pager.cursor})
            messages = _parse_messages(result)
            found |= {one.ts: one for one in messages if one.thread_ts == root.ts}
            if not pager.advance(
                result, max((one.ts for one in messages), key=parse_ts, default="")
            ):
                return _build_thread(found, root)
            # A thread that was begun is read to its end, however slowly: it cannot be resumed.
            call = self._client.call_patiently

    def extract_file(self, file: File) -> ExtractionResult:
        max_bytes = self._scope.max_file_bytes
        if not file.url:
            raise ExtractionError("the file is not stored by Slack")
        if not max_bytes or file.size > max_bytes:
            raise ExtractionError(f"it has {file.size:,} bytes; the limit is {max_bytes:,}")
        by_name = detect_media_type(file.name, b"")
        if not (is_supported(by_name) or (by_name == UNKNOWN and file.is_text)):
            raise unsupported_format(by_name)
        data = self._client.download(file.url, max_bytes)
        return extract(data, detect_media_type(file.name, data[:HEAD_SIZE]))

    def _find_user(self, user_id: str) -> User | None:
        """Request a user of another workspace, who is not in the list of users of this one."""
        try:
            result = self._client.call_patiently("users.info", {"user": user_id})
            return User.parse(result.get("user"))
        except (SlackNotFoundError, MalformedResponse):
            return None


def _parse_messages(result: Mapping[str, Any]) -> list[Message]:
    return [Message.parse(raw) for raw in get_field(result, "messages", list)]


def _build_thread(found: Mapping[str, Message], root: Message) -> Thread:
    """Return the messages in order; raise MalformedResponse if the first of the thread is missing."""
    first, *replies = sorted(found.values(), key=lambda one: parse_ts(one.ts)) or (None,)
    if first is None or first.ts != root.ts:
        raise MalformedResponse("Slack returns a thread without its first message")
    return (first, *replies)


def _digest(channels: Sequence[Channel]) -> str:
    return hashlib.sha256(" ".join(one.id for one in channels).encode()).hexdigest()[:32]
