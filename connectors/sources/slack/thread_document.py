"""A thread as one document: its messages with their authors, and the content of files."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from connectors.connector import Unreadable
from connectors.document import Document, Metadata, Person, Place, Section
from connectors.extraction.registry import TEXT
from connectors.extraction.result import ExtractionError, make_section
from connectors.sources.slack.channel_scopes import derive_channel_access
from connectors.sources.slack.message_text import IDS_AS_NAMES, get_message_text
from connectors.sources.slack.models import File, Message, parse_ts, to_datetime
from connectors.sources.slack.users_and_channels import Channel
from connectors.sources.slack.workspace import ChannelContext, Thread, Workspace
from connectors.text_cleaning import replace_unstorable, shorten_title, to_one_line

_FORMAT = 1
"""Raised when the same messages give another document, so that all are read again."""
_SECTION_LENGTH = 2000
"""Characters. Consecutive messages form a section, which is searched and cited, up to that length."""
_MAX_AUTHORS = 100
_MAX_TITLE = 120


@dataclass(frozen=True, slots=True)
class ThreadConverter:
    """Converts the threads of a source to documents."""

    source: str
    source_id: int
    workspace: Workspace

    def to_document_id(self, channel_id: str, ts: str) -> str:
        return f"{self.source}:{channel_id}/{ts}"

    def split_document_id(self, document_id: str) -> tuple[str, str]:
        """Return channel and `ts`; parts of an id that is invalid match no channel or message."""
        channel, _, ts = document_id.removeprefix(f"{self.source}:").partition("/")
        return channel, ts

    def get_root_version(self, root: Message) -> str:
        """Return the part of the version that its first message determines, without the replies."""
        values = [_FORMAT, *self._get_content(root), root.reply_count]
        return _digest([*values, root.latest_reply if root.reply_count else ""])

    def get_version(self, thread: Thread) -> str:
        """Return the version, which does not change if a user or a channel is renamed."""
        root, *replies = thread
        if not replies:
            return self.get_root_version(root)
        return (
            f"{self.get_root_version(root)}.{_digest([self._get_content(one) for one in replies])}"
        )

    def _get_content(self, message: Message) -> list[object]:
        author = (message.user, message.raw.get("bot_id"), message.raw.get("username"))
        files = [one.key for one in message.files]
        reads_files = bool(files) and self.workspace.reads_files
        text = get_message_text(message, IDS_AS_NAMES)
        return [message.ts, author, message.edited, text, files, reads_files]

    def convert(
        self, context: ChannelContext, thread: Thread, version: str
    ) -> Document | Unreadable:
        root = thread[0]
        files = _FileReader(self.workspace)
        sections = tuple(self._iterate_sections(context, thread, files))
        if not sections:
            reason = files.failures[0] if files.failures else "it has no text"
            return self.report_unreadable(context, root, reason)
        return Document(
            id=self.to_document_id(context.channel.id, root.ts),
            source=self.source,
            title=self._get_title(context, thread),
            sections=sections,
            link=self._get_link(context.channel, root, thread),
            media_type=TEXT,
            access=derive_channel_access(self.source_id, context.channel.id),
            version=version,
            metadata=self._get_metadata(context, thread, files),
            owners=self._get_owners(root),
            created_at=to_datetime(root.ts),
            updated_at=_get_last_change(thread),
            parents=(context.label,),
        )

    def report_unreadable(self, context: ChannelContext, root: Message, reason: str) -> Unreadable:
        return Unreadable(
            document_id=self.to_document_id(context.channel.id, root.ts),
            item=f"{context.label}: {self._get_title(context, (root,))}",
            reason=reason,
            link=self._get_link(context.channel, root, (root,)),
        )

    def _get_link(self, channel: Channel, message: Message, thread: Thread) -> str:
        """Return a permalink, which opens the thread of a message with replies."""
        digits = "{}{:06}".format(*parse_ts(message.ts))
        url = f"{self.workspace.url}/archives/{channel.id}/p{digits}"
        if len(thread) == 1:
            return url
        return f"{url}?thread_ts={thread[0].ts}&cid={channel.id}"

    def _get_title(self, context: ChannelContext, thread: Thread) -> str:
        """Return the first line of text, else the name of a file, else author and channel."""
        for message in (one for one in thread if not one.is_notice):
            for line in get_message_text(message, context.names).splitlines():
                if title := to_one_line(line):
                    return _shorten_title(title)
        titles = (file.title for message in thread for file in message.files)
        author = self.workspace.users.get_author(thread[0])
        return shorten_title(
            to_one_line(next(filter(None, titles), f"{author} in {context.label}"))
        )

    def _iterate_sections(
        self, context: ChannelContext, thread: Thread, files: "_FileReader"
    ) -> Iterator[Section]:
        """Join consecutive messages; the content of a file has sections of its own."""
        texts: list[str] = []
        first = thread[0]
        for message in thread:
            text = self._format_message(context, message)
            if texts and sum(map(len, texts)) + len(text) > _SECTION_LENGTH:
                yield self._build_section(context, texts, first, thread)
                texts = []
            if text:
                first = first if texts else message
                texts.append(text)
            if message.files and (found := [*self._read_files(context, message, thread, files)]):
                if texts:
                    yield self._build_section(context, texts, first, thread)
                texts = []
                yield from found
        if texts:
            yield self._build_section(context, texts, first, thread)

    def _build_section(
        self, context: ChannelContext, texts: list[str], first: Message, thread: Thread
    ) -> Section:
        built = make_section("\n\n".join(texts), Place(heading_path=(_format_time(first),)))
        return replace(built, link=self._get_link(context.channel, first, thread))

    def _format_message(self, context: ChannelContext, message: Message) -> str:
        """Return author, text and names of files; empty without these or for messages by Slack itself."""
        if message.is_notice:
            return ""
        files = [f"[{to_one_line(file.title)}]" for file in message.files if file.title]
        lines = [get_message_text(message, context.names), *files]
        if text := "\n".join(filter(None, lines)):
            return f"{self.workspace.users.get_author(message)}: {replace_unstorable(text)}"
        return ""

    def _read_files(
        self, context: ChannelContext, message: Message, thread: Thread, files: "_FileReader"
    ) -> Iterator[Section]:
        link = self._get_link(context.channel, message, thread)
        for file in message.files:
            title = to_one_line(file.title) or file.id
            heading = f"{self.workspace.users.get_author(message)}, {_format_time(message)}"
            for one in files.read_sections(file, title):
                path = (heading, title, *one.place.heading_path)
                yield replace(one, link=link, place=replace(one.place, heading_path=path))

    def _get_metadata(
        self, context: ChannelContext, thread: Thread, files: "_FileReader"
    ) -> Metadata:
        get_author = self.workspace.users.get_author
        authors = tuple(dict.fromkeys(get_author(one) for one in thread if not one.is_notice))
        values: Mapping[str, str | tuple[str, ...]] = {
            "channel": context.label,
            "authors": authors[:_MAX_AUTHORS],
            "files": tuple(files.titles),
            "files_unread": tuple(files.failures),
        }
        return {name: value for name, value in values.items() if value}

    def _get_owners(self, root: Message) -> tuple[Person, ...]:
        if root.is_notice:
            return ()
        users = self.workspace.users
        user = users[root.user] if root.user else None
        return (Person(users.get_author(root), user.email if user else None),)


class _FileReader:
    """Reads the files of one thread, and collects which could not be read."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.titles: list[str] = []
        self.failures: list[str] = []

    def read_sections(self, file: File, title: str) -> tuple[Section, ...]:
        self.titles.append(title)
        try:
            return self._workspace.extract_file(file).sections
        except ExtractionError as error:
            self.failures.append(f"{title}: {error}")
            return ()


def _get_last_change(thread: Thread) -> datetime:
    times = (ts for message in thread for ts in (message.ts, message.edited) if ts)
    return to_datetime(max(times, key=parse_ts))


def _format_time(message: Message) -> str:
    return f"{to_datetime(message.ts):%Y-%m-%d %H:%M} UTC"


def _shorten_title(title: str) -> str:
    """Shorten the title to what fits above a text, between two words if possible."""
    if len(title) <= _MAX_TITLE:
        return title
    head, _, _ = title[:_MAX_TITLE].rpartition(" ")
    return f"{head or title[:_MAX_TITLE]}…"


def _digest(values: list[object]) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:32]
