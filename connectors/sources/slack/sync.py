"""Changes, listing and refetching of threads, for both kinds of workspace."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from connectors.connector import (
    Change,
    Checkpoint,
    Deletion,
    DocumentListing,
    KnownVersions,
    ListingItem,
    Unreadable,
)
from connectors.document import Document
from connectors.errors import TemporarilyUnavailableError
from connectors.http_client.response import ResponseError, ServerError
from connectors.sources.slack.channel_scopes import derive_channel_access
from connectors.sources.slack.checkpoint import (
    Position,
    SyncCheckpoint,
    make_listing_checkpoint,
    parse_listing_position,
)
from connectors.sources.slack.client import SlackNotFoundError
from connectors.sources.slack.models import BEGINNING, Message, is_ts, parse_ts
from connectors.sources.slack.thread_document import ThreadConverter
from connectors.sources.slack.users_and_channels import Channel
from connectors.sources.slack.workspace import ChannelContext, Page, RunPlan, Thread, Workspace


def iterate_changes(
    threads: ThreadConverter, since: Checkpoint | None, known: KnownVersions
) -> Iterator[Change]:
    """Yield what changed, channel by channel, newest first, with a checkpoint after each page."""
    plan = threads.workspace.plan_run(SyncCheckpoint.parse(since))
    position = plan.checkpoint.position
    for channel in plan.channels:
        if position is None or channel.id >= position.channel:
            is_current = position is not None and position.channel == channel.id
            start = position if position and is_current else Position(channel.id, "")
            yield from _Comparison(threads, plan, known).compare_channel(channel, start)
    yield plan.checkpoint.complete()


def list_threads(threads: ThreadConverter, since: Checkpoint | None) -> Iterator[ListingItem]:
    """Yield the threads channel by channel, newest first, with a checkpoint after each page."""
    start = parse_listing_position(since) or Position("", "")
    for channel in threads.workspace.list_channels():
        if channel.id >= start.channel:
            latest = start.latest if channel.id == start.channel else ""
            yield from _list_channel(threads, channel, latest)


def _list_channel(threads: ThreadConverter, channel: Channel, latest: str) -> Iterator[ListingItem]:
    access = derive_channel_access(threads.source_id, channel.id)
    for page in _iterate_pages(threads.workspace, channel, BEGINNING, latest):
        for message in page.messages:
            if message.is_indexed:
                document_id = threads.to_document_id(channel.id, message.ts)
                yield DocumentListing(document_id, access)
        yield make_listing_checkpoint(Position(channel.id, page.lowest))


def refetch(threads: ThreadConverter, document_ids: Sequence[str]) -> Iterator[Change]:
    workspace = threads.workspace
    channels = {channel.id: channel for channel in workspace.list_channels()}
    for document_id in document_ids:
        channel_id, ts = threads.split_document_id(document_id)
        change = None
        if is_ts(ts) and channel_id in channels:
            context = workspace.get_context(channels[channel_id])
            root = _find_root(workspace, context.channel, ts)
            change = root and _read_thread(threads, context, root)
        yield change or Deletion(document_id)


def _find_root(workspace: Workspace, channel: Channel, ts: str) -> Message | None:
    for page in _iterate_pages(workspace, channel, ts, ts):
        for message in page.messages:
            if message.ts == ts and message.is_indexed:
                return message
    return None


def _read_thread(
    threads: ThreadConverter, context: ChannelContext, root: Message, known_version: str = ""
) -> Document | Unreadable | None:
    """Return the thread; None if its version is known, or if it was deleted meanwhile."""
    try:
        thread = _get_messages(threads.workspace, context.channel, root)
        version = threads.get_version(thread)
        return None if version == known_version else threads.convert(context, thread, version)
    except SlackNotFoundError:
        return None
    except (ResponseError, ServerError) as error:
        return threads.report_unreadable(context, root, str(error))


def _get_messages(workspace: Workspace, channel: Channel, root: Message) -> Thread:
    return workspace.read_thread(channel, root) if root.reply_count else (root,)


def _iterate_pages(
    workspace: Workspace, channel: Channel, oldest: str, latest: str
) -> Iterator[Page]:
    """Yield each message once; none of a channel that no longer exists or may no longer be read."""
    previous: frozenset[str] = frozenset()
    try:
        for page in workspace.iterate_pages(channel, oldest, latest):
            fresh = {one.ts: one for one in page.messages if one.ts not in previous}
            yield Page(tuple(fresh.values()), page.lowest)
            previous = frozenset(one.ts for one in page.messages)
    except SlackNotFoundError:
        return


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Compares the channels of a workspace with the known versions."""

    threads: ThreadConverter
    plan: RunPlan
    known: KnownVersions

    def compare_channel(self, channel: Channel, start: Position) -> Iterator[Change]:
        """Compare a channel from where the last run was interrupted.

        A message that was read is never requested again by a resumed run, even if Slack allows only one
        request a run.
        """
        oldest, latest = self.plan.oldest, start.latest
        if not latest or parse_ts(latest) > parse_ts(oldest):
            for page in self._iterate_pages(channel, oldest, latest):
                end = Position(channel.id, page.lowest, start.is_new_channel)
                yield from self._compare_page(channel, page, end)
            latest = oldest
            yield self._save(Position(channel.id, latest, start.is_new_channel))
        if self.plan.has_new_channels and parse_ts(latest) > parse_ts(BEGINNING):
            position = Position(channel.id, latest, start.is_new_channel)
            yield from self._read_older(channel, position)
            yield self._save(Position(channel.id, BEGINNING))

    def _read_older(self, channel: Channel, start: Position) -> Iterator[Change]:
        """Read a channel back to its first message if it is new: if none of its messages is known."""
        is_new = start.is_new_channel
        for page in self._iterate_pages(channel, BEGINNING, start.latest):
            if not is_new:
                ids = [self.threads.to_document_id(channel.id, one.ts) for one in page.messages]
                if self.known(ids):
                    return
                is_new = any(one.is_indexed for one in page.messages)
            yield from self._compare_page(channel, page, Position(channel.id, page.lowest, is_new))

    def _save(self, position: Position) -> Checkpoint:
        return self.plan.checkpoint.advance(position)

    def _iterate_pages(self, channel: Channel, oldest: str, latest: str) -> Iterator[Page]:
        return _iterate_pages(self.threads.workspace, channel, oldest, latest)

    def _compare_page(self, channel: Channel, page: Page, end: Position) -> Iterator[Change]:
        context = self.threads.workspace.get_context(channel)
        roots = [one for one in page.messages if one.is_indexed]
        versions = self.known([self.threads.to_document_id(channel.id, one.ts) for one in roots])
        for root in roots:
            try:
                change = self._compare_thread(context, root, versions)
            except TemporarilyUnavailableError:
                # The threads of this page that were read need not be read again: even if Slack allows
                # one request a minute, each run gets further than the one before.
                yield self._save(Position(channel.id, root.ts, end.is_new_channel))
                raise
            if change is not None:
                yield change
        yield self._save(end)

    def _compare_thread(
        self, context: ChannelContext, root: Message, versions: Mapping[str, str]
    ) -> Document | Unreadable | None:
        document_id = self.threads.to_document_id(context.channel.id, root.ts)
        known_version = versions.get(document_id, "")
        if root.reply_count and self._is_settled(root, known_version):
            return None
        return _read_thread(self.threads, context, root, known_version)

    def _is_settled(self, root: Message, known_version: str) -> bool:
        """Return whether a thread is old and its first message is as it was: no need to read replies."""
        root_version, _, _ = known_version.partition(".")
        is_old = parse_ts(root.latest_reply) < parse_ts(self.plan.settled)
        return is_old and root_version == self.threads.get_root_version(root)
