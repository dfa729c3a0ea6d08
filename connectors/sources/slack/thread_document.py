"""A thread as one document: what was said, by whom, with the files that were brought."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from connectors.connector import Unreadable
from connectors.document import Document, Metadata, Person, Place, Section
from connectors.extraction.media_types import TEXT
from connectors.extraction.result import (
    CannotRead,
    Extracted,
    one_line,
    safe,
    section,
    shortened,
)
from connectors.sources.slack.message_text import AS_IDS, said
from connectors.sources.slack.models import File, Message, moment, order
from connectors.sources.slack.users_and_channels import Channel
from connectors.sources.slack.workspace import Place as Where
from connectors.sources.slack.workspace import Thread, Workspace

# Raise it when messages read again would say something else than before.
_READING = 1
_SECTION = 2000
"""Characters. Messages that follow each other are read, and cited, together up to that length."""
_MOST_PEOPLE = 100
_LONGEST_TITLE = 120


@dataclass(frozen=True, slots=True)
class Threads:
    """How the threads of one source become documents."""

    source: str
    workspace: Workspace

    def id_of(self, channel_id: str, ts: str) -> str:
        return f"{self.source}:{channel_id}/{ts}"

    def own_id(self, document_id: str) -> tuple[str, str]:
        """Channel and `ts`; where the id is none of ours, what nothing has."""
        channel, _, ts = document_id.removeprefix(f"{self.source}:").partition("/")
        return channel, ts

    def shape(self, root: Message) -> str:
        """What can be told of a thread from the message that begins it."""
        told = [_READING, *self._content(root), root.reply_count]
        return _digest([*told, root.latest_reply if root.reply_count else ""])

    def version(self, thread: Thread) -> str:
        """Without the names of people and channels, which change at any time."""
        root, *answers = thread
        if not answers:
            return self.shape(root)
        return f"{self.shape(root)}.{_digest([self._content(one) for one in answers])}"

    def _content(self, message: Message) -> list[object]:
        author = (message.user, message.raw.get("bot_id"), message.raw.get("username"))
        files = [one.key for one in message.files]
        reads = bool(files) and self.workspace.reads_files
        return [message.ts, author, message.edited, said(message, AS_IDS), files, reads]

    def change(self, where: Where, thread: Thread, version: str) -> Document | Unreadable:
        root = thread[0]
        read = _Read()
        sections = tuple(self._sections(where, thread, read))
        if not sections:
            return self.unreadable(where, root, read.reason)
        return Document(
            id=self.id_of(where.channel.id, root.ts),
            source=self.source,
            title=self._title(where, thread),
            sections=sections,
            link=self.link(where.channel, root, thread),
            media_type=TEXT,
            access=where.access,
            version=version,
            metadata=self._metadata(where, thread, read),
            owners=self._owners(root),
            created_at=moment(root.ts),
            updated_at=_updated(thread),
            parents=(where.label,),
        )

    def unreadable(self, where: Where, root: Message, reason: str) -> Unreadable:
        return Unreadable(
            document_id=self.id_of(where.channel.id, root.ts),
            item=f"{where.label}: {self._title(where, (root,))}",
            reason=reason,
            link=self.link(where.channel, root, (root,)),
        )

    def link(self, channel: Channel, message: Message, thread: Thread) -> str:
        """A permalink; of a message with answers it opens the thread."""
        place = f"{self.workspace.url}/archives/{channel.id}/p{_digits(message.ts)}"
        if len(thread) == 1:
            return place
        return f"{place}?thread_ts={thread[0].ts}&cid={channel.id}"

    def _title(self, where: Where, thread: Thread) -> str:
        """The first words that are said."""
        for message in (one for one in thread if not one.is_notice):
            for line in said(message, where.names).splitlines():
                if title := one_line(line):
                    return _cut(title)
        titles = (file.title for message in thread for file in message.files)
        author = self.workspace.people.author(thread[0])
        return shortened(one_line(next(filter(None, titles), f"{author} in {where.label}")))

    def _sections(self, where: Where, thread: Thread, read: "_Read") -> Iterator[Section]:
        """Messages that follow each other stand together; what is in a file stands by itself."""
        gathered: list[str] = []
        begins = thread[0]
        for message in thread:
            told = self._told(where, message)
            if gathered and sum(map(len, gathered)) + len(told) > _SECTION:
                yield self._section(where, gathered, begins, thread)
                gathered = []
            if told:
                begins = begins if gathered else message
                gathered.append(told)
            if message.files and (brought := [*self._files(where, message, thread, read)]):
                if gathered:
                    yield self._section(where, gathered, begins, thread)
                gathered = []
                yield from brought
        if gathered:
            yield self._section(where, gathered, begins, thread)

    def _section(self, where: Where, told: list[str], begins: Message, thread: Thread) -> Section:
        place = Place(heading_path=(_when(begins),))
        made = section("\n\n".join(told), place)
        return replace(made, link=self.link(where.channel, begins, thread))

    def _told(self, where: Where, message: Message) -> str:
        """One message with its author and the names of its files; empty where it says nothing, and
        where it is Slack's own, such as the stone in the place of a deleted one."""
        if message.is_notice:
            return ""
        files = [f"[{one_line(file.title)}]" for file in message.files if file.title]
        if text := "\n".join(filter(None, [said(message, where.names), *files])):
            return f"{self.workspace.people.author(message)}: {safe(text)}"
        return ""

    def _files(
        self, where: Where, message: Message, thread: Thread, read: "_Read"
    ) -> Iterator[Section]:
        link = self.link(where.channel, message, thread)
        for file in message.files:
            title = one_line(file.title) or file.id
            heading = f"{self.workspace.people.author(message)}, {_when(message)}"
            for one in read.sections(self.workspace, file, title):
                path = (heading, title, *one.place.heading_path)
                yield replace(one, link=link, place=replace(one.place, heading_path=path))

    def _metadata(self, where: Where, thread: Thread, read: "_Read") -> Metadata:
        people = self.workspace.people
        authors = tuple(dict.fromkeys(people.author(one) for one in thread if not one.is_notice))
        found: Mapping[str, str | tuple[str, ...]] = {
            "channel": where.label,
            "authors": authors[:_MOST_PEOPLE],
            "files": tuple(read.titles),
            "files_unread": tuple(read.faults),
        }
        return {name: value for name, value in found.items() if value}

    def _owners(self, root: Message) -> tuple[Person, ...]:
        if root.is_notice:
            return ()
        people = self.workspace.people
        user = people[root.user] if root.user else None
        return (Person(people.author(root), user.email if user else None),)


class _Read:
    """What became of the files of one thread."""

    def __init__(self) -> None:
        self.titles: list[str] = []
        self.faults: list[str] = []

    @property
    def reason(self) -> str:
        return self.faults[0] if self.faults else "it holds no text"

    def sections(self, workspace: Workspace, file: File, title: str) -> tuple[Section, ...]:
        self.titles.append(title)
        try:
            found: Extracted = workspace.extracted(file)
        except CannotRead as error:
            self.faults.append(f"{title}: {error}")
            return ()
        return found.sections


def _updated(thread: Thread) -> datetime:
    stamps = (stamp for message in thread for stamp in (message.ts, message.edited) if stamp)
    return moment(max(stamps, key=order))


def _when(message: Message) -> str:
    return f"{moment(message.ts):%Y-%m-%d %H:%M} UTC"


def _digits(ts: str) -> str:
    return "{}{:06}".format(*order(ts))


def _cut(title: str) -> str:
    """Of a length that fits above a text, between two words where there are any."""
    if len(title) <= _LONGEST_TITLE:
        return title
    head, _, _ = title[:_LONGEST_TITLE].rpartition(" ")
    return f"{head or title[:_LONGEST_TITLE]}…"


def _digest(told: list[object]) -> str:
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:32]
