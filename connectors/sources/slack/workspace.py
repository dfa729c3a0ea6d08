"""What both ways to a workspace offer: the API's and an export's."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from connectors.document import Access
from connectors.extraction.result import Extracted
from connectors.http_client.response import BadAnswer
from connectors.sources.slack.checkpoint import Mark
from connectors.sources.slack.message_text import Names
from connectors.sources.slack.models import BEGINNING, File, Message
from connectors.sources.slack.users_and_channels import Channel, People

Thread: TypeAlias = tuple[Message, ...]
"""A message that begins one, and all answers to it, oldest first."""


class NoSuchPlace(BadAnswer):
    """The channel or the thread is not there, or not for us."""


@dataclass(frozen=True, slots=True)
class Page:
    """Some of what was said in a channel, newest first: messages that begin threads."""

    messages: tuple[Message, ...]
    lowest: str
    """The `ts` down to which all was given; the next page begins there, with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What one run is to read."""

    mark: Mark
    channels: Sequence[Channel]
    """By id."""
    oldest: str = BEGINNING
    """Messages from then on are compared."""
    settled: str = BEGINNING
    """A thread whose last answer is older is read again only if its number of answers, or the last
    of them, is another."""
    has_new_channels: bool = False
    """Some of the channels may never have been read down to their beginning."""


@dataclass(frozen=True, slots=True)
class Place:
    """A channel, as its documents are to show it."""

    channel: Channel
    label: str
    access: Access
    names: Names = field(repr=False)


class Workspace(Protocol):
    """One workspace, for the length of one run. Any of its methods raises:

    TemporarilyUnavailableError: it does not answer now.
    ActionRequiredError: a person must mend something first.
    BadAnswer: what it answers is no sense; NoSuchPlace where a channel or a thread is not there.
    """

    reads_files: bool
    """Whether files can be had, not only their names."""

    @property
    def url(self) -> str:
        """`https://acme.slack.com`, with no slash at the end."""
        ...

    @property
    def people(self) -> People: ...

    def begin(self, since: Mark | None) -> Round:
        """What to read, after a run that ended or broke off at that mark."""
        ...

    def channels(self) -> Sequence[Channel]:
        """Those that are read, by id."""
        ...

    def place(self, channel: Channel) -> Place: ...

    def pages(self, channel: Channel, oldest: str, latest: str) -> Iterator[Page]:
        """All between, both included, newest first. An empty `latest` is now."""
        ...

    def thread(self, channel: Channel, root: Message) -> Thread:
        """Of a message with answers."""
        ...

    def extracted(self, file: File) -> Extracted:
        """What the file says. Raises CannotRead: it cannot be had or read."""
        ...
