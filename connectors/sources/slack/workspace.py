"""The interface of a workspace, which the API and an export implement."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from connectors.extraction.result import ExtractionResult
from connectors.sources.slack.checkpoint import SyncCheckpoint
from connectors.sources.slack.message_text import NameLookup
from connectors.sources.slack.models import BEGINNING, File, Message
from connectors.sources.slack.users_and_channels import Channel, UserDirectory

Thread: TypeAlias = tuple[Message, ...]
"""A message and all replies to it, oldest first."""


@dataclass(frozen=True, slots=True)
class Page:
    """Some messages of a channel that begin threads, newest first."""

    messages: tuple[Message, ...]
    lowest: str
    """The `ts` down to which all messages were returned; the next page begins with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """What one run reads."""

    checkpoint: SyncCheckpoint
    channels: Sequence[Channel]
    """Ordered by id."""
    oldest: str = BEGINNING
    """Messages from then on are compared."""
    settled: str = BEGINNING
    """A thread whose last reply is older is read again only if the number of replies, or the last of
    them, has changed."""
    has_new_channels: bool = False
    """Some channels may never have been read back to their first message."""


@dataclass(frozen=True, slots=True)
class ChannelContext:
    """A channel with what its documents show of it."""

    channel: Channel
    label: str
    names: NameLookup = field(repr=False)


class Workspace(Protocol):
    """One workspace during one run.

    Any method raises:
        TemporarilyUnavailableError: the workspace is not available now.
        ActionRequiredError: a person must correct something.
        ResponseError: the data cannot be used; SlackNotFoundError: the channel or thread does not exist.
    """

    reads_files: bool
    """Whether the content of files is available, not only their names."""

    @property
    def url(self) -> str:
        """`https://acme.slack.com`, without a final slash."""
        ...

    @property
    def users(self) -> UserDirectory: ...

    def plan_run(self, since: SyncCheckpoint | None) -> RunPlan:
        """Return what to read after a run that ended or was interrupted at that checkpoint."""
        ...

    def list_channels(self) -> Sequence[Channel]:
        """Return the channels to read, ordered by id."""
        ...

    def list_members(self, channel: Channel) -> Sequence[str]:
        """Return the ids of the members; none if the channel no longer exists or may not be read."""
        ...

    def get_context(self, channel: Channel) -> ChannelContext: ...

    def iterate_pages(self, channel: Channel, oldest: str, latest: str) -> Iterator[Page]:
        """Yield the messages between two times, both included, newest first; empty `latest` is now."""
        ...

    def read_thread(self, channel: Channel, root: Message) -> Thread:
        """Return the thread of a message that has replies."""
        ...

    def extract_file(self, file: File) -> ExtractionResult:
        """Return the content of a file; raise ExtractionError if it cannot be downloaded or read."""
        ...
