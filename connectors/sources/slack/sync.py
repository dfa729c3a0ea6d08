"""What changed in a workspace, what there is, and single threads by their ids."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from connectors.connector import Change, Checkpoint, Deletion, Known, Listed, Unreadable
from connectors.document import Document
from connectors.errors import TemporarilyUnavailableError
from connectors.http_client.response import BadAnswer, Failing
from connectors.sources.slack.checkpoint import Mark, Position
from connectors.sources.slack.models import BEGINNING, Message, is_ts, order
from connectors.sources.slack.thread_document import Threads
from connectors.sources.slack.users_and_channels import Channel
from connectors.sources.slack.workspace import NoSuchPlace, Page, Place, Round, Thread, Workspace


def changes(threads: Threads, since: Checkpoint | None, known: Known) -> Iterator[Change]:
    """See `Connector.changes`. Channel by channel, in each the newest first, a checkpoint a page."""
    whole_run = threads.workspace.begin(Mark.of(since))
    at = whole_run.mark.at
    for channel in whole_run.channels:
        if at is None or channel.id >= at.channel:
            start = at if at and at.channel == channel.id else Position(channel.id, "")
            yield from _Comparison(threads, whole_run, known).channel(channel, start)
    yield whole_run.mark.done()


def listing(threads: Threads) -> Iterator[Listed]:
    """See `Connector.listing`."""
    workspace = threads.workspace
    for channel in workspace.channels():
        place: Place | None = None
        for page in _pages(workspace, channel, BEGINNING, ""):
            place = place or workspace.place(channel)
            for message in page.messages:
                if message.is_read:
                    yield Listed(threads.id_of(channel.id, message.ts), place.access)


def again(threads: Threads, document_ids: Sequence[str]) -> Iterator[Change]:
    """See `Connector.again`."""
    workspace = threads.workspace
    channels = {channel.id: channel for channel in workspace.channels()}
    for document_id in document_ids:
        channel_id, ts = threads.own_id(document_id)
        change = None
        if is_ts(ts) and channel_id in channels:
            place = workspace.place(channels[channel_id])
            root = _root(workspace, place.channel, ts)
            change = root and _read(threads, place, root)
        yield change or Deletion(document_id)


def _root(workspace: Workspace, channel: Channel, ts: str) -> Message | None:
    for page in _pages(workspace, channel, ts, ts):
        for message in page.messages:
            if message.ts == ts and message.is_read:
                return message
    return None


def _read(
    threads: Threads, place: Place, root: Message, version: str = ""
) -> Document | Unreadable | None:
    """The thread; nothing where it is of that version, or went away meanwhile."""
    try:
        thread = _whole(threads.workspace, place.channel, root)
        present = threads.version(thread)
        return None if version == present else threads.change(place, thread, present)
    except NoSuchPlace:
        return None
    except (BadAnswer, Failing) as error:
        return threads.unreadable(place, root, str(error))


def _whole(workspace: Workspace, channel: Channel, root: Message) -> Thread:
    return workspace.thread(channel, root) if root.reply_count else (root,)


def _pages(workspace: Workspace, channel: Channel, oldest: str, latest: str) -> Iterator[Page]:
    """Each message once; none of a channel that is not there any more, or not for us."""
    before: frozenset[str] = frozenset()
    try:
        for page in workspace.pages(channel, oldest, latest):
            fresh = tuple(one for one in page.messages if one.ts not in before)
            yield Page(tuple({one.ts: one for one in fresh}.values()), page.lowest)
            before = frozenset(one.ts for one in page.messages)
    except NoSuchPlace:
        return


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Of what Slack has with what Quarry holds."""

    threads: Threads
    round: Round
    known: Known

    def channel(self, channel: Channel, start: Position) -> Iterator[Change]:
        """From where it broke off. What was asked for is never asked for again, though it were all that
        Slack answers in one run."""
        oldest, latest = self.round.oldest, start.latest
        if not latest or order(latest) > order(oldest):
            for page in self._pages(channel, oldest, latest):
                yield from self._page(channel, page, Position(channel.id, page.lowest, start.whole))
            latest = oldest
            yield self._reached(Position(channel.id, latest, start.whole))
        if self.round.has_new_channels and order(latest) > order(BEGINNING):
            yield from self._older(channel, Position(channel.id, latest, start.whole))
            yield self._reached(Position(channel.id, BEGINNING))

    def _older(self, channel: Channel, start: Position) -> Iterator[Change]:
        """Of a channel of which nothing older than this run reads is held: it is new."""
        whole = start.whole
        for page in self._pages(channel, BEGINNING, start.latest):
            if not whole:
                ids = [self.threads.id_of(channel.id, one.ts) for one in page.messages]
                if self.known(ids):
                    return
                whole = any(one.is_read for one in page.messages)
            yield from self._page(channel, page, Position(channel.id, page.lowest, whole))

    def _reached(self, position: Position) -> Checkpoint:
        return self.round.mark.moved(position)

    def _pages(self, channel: Channel, oldest: str, latest: str) -> Iterator[Page]:
        return _pages(self.threads.workspace, channel, oldest, latest)

    def _page(self, channel: Channel, page: Page, end: Position) -> Iterator[Change]:
        place = self.threads.workspace.place(channel)
        roots = [one for one in page.messages if one.is_read]
        held = self.known([self.threads.id_of(channel.id, one.ts) for one in roots])
        for root in roots:
            try:
                change = self._changed(place, root, held)
            except TemporarilyUnavailableError:
                # What was read of this page need not be read again: even where Slack answers once a
                # minute, each run gets further than the one before.
                yield self._reached(Position(channel.id, root.ts, end.whole))
                raise
            if change is not None:
                yield change
        yield self._reached(end)

    def _changed(
        self, place: Place, root: Message, held: Mapping[str, str]
    ) -> Document | Unreadable | None:
        version = held.get(self.threads.id_of(place.channel.id, root.ts), "")
        if root.reply_count and self._is_settled(root, version):
            return None
        return _read(self.threads, place, root, version)

    def _is_settled(self, root: Message, version: str) -> bool:
        shape, _, _ = version.partition(".")
        is_old = order(root.latest_reply) < order(self.round.settled)
        return is_old and shape == self.threads.shape(root)
