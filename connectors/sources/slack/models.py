"""Messages and files as the API and exports both represent them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, TypeAlias

from connectors.http_client.response import MalformedResponse

Raw: TypeAlias = Mapping[str, Any]
"""A JSON object of Slack. Any of its values may be missing or null."""

BEGINNING = "0"
"""A `ts` before every message."""

_TS = re.compile(r"\d{1,11}(\.\d{1,6})?")
_NOTICES = frozenset(
    f"{place}_{event}"
    for place in ("channel", "group")
    for event in ("join", "leave", "topic", "purpose", "name", "archive", "unarchive")
) | {
    "bot_add",
    "bot_disable",
    "bot_enable",
    "bot_remove",
    "channel_convert_to_private",
    "channel_posting_permissions",
    "ekm_access_denied",
    "huddle_thread",
    "message_changed",
    "message_deleted",
    "message_replied",
    "pinned_item",
    "reminder_add",
    "sh_room_created",
    "tombstone",
    "unpinned_item",
}
"""Subtypes of messages that Slack itself creates: people join and leave, a message was deleted."""
_NOT_STORED = {"tombstone", "hidden_by_limit", "external"}
"""Modes of files that Slack does not store, or no longer."""


def get_text(raw: Raw, *names: str) -> str:
    """Return the first of these values that is a text and not blank."""
    for name in names:
        if isinstance(value := raw.get(name), str) and value.strip():
            return value
    return ""


def get_objects(raw: Raw, name: str) -> list[Raw]:
    value = raw.get(name)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def get_object(raw: Raw, name: str) -> Raw:
    value = raw.get(name)
    return value if isinstance(value, dict) else {}


def get_number(raw: Raw, name: str) -> int:
    value = raw.get(name)
    return value if isinstance(value, int) else 0


def is_ts(text: str) -> bool:
    return bool(_TS.fullmatch(text))


def parse_ts(ts: str) -> tuple[int, int]:
    """Split a `ts` such as 1700000000.000100 into Unix seconds and microseconds."""
    seconds, _, fraction = ts.partition(".")
    return int(seconds), int(fraction.ljust(6, "0"))


def to_datetime(ts: str) -> datetime:
    seconds, micros = parse_ts(ts)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=micros)


def format_ts(seconds: float) -> str:
    """Format a Unix time; a negative one counts as 0."""
    return f"{max(seconds, 0.0):.6f}"


@dataclass(frozen=True, slots=True)
class File:
    """A file in a message."""

    raw: Raw = field(repr=False)

    @property
    def id(self) -> str:
        return get_text(self.raw, "id")

    @property
    def title(self) -> str:
        return get_text(self.raw, "title", "name")

    @property
    def name(self) -> str:
        return get_text(self.raw, "name", "title")

    @property
    def size(self) -> int:
        return get_number(self.raw, "size")

    @property
    def is_text(self) -> bool:
        """By the media type that Slack returns, for a file whose name has no known suffix."""
        return get_text(self.raw, "mimetype").startswith("text/")

    @property
    def url(self) -> str:
        """The URL of its content; empty if Slack does not store it."""
        if self.raw.get("is_external") or get_text(self.raw, "mode") in _NOT_STORED:
            return ""
        return get_text(self.raw, "url_private_download", "url_private")

    @property
    def key(self) -> tuple[str, str, int, int]:
        """Changes when the file does. The URLs are left out: they differ between the API and an export."""
        return (self.id, self.title, self.size, get_number(self.raw, "edit_timestamp"))


@dataclass(frozen=True)
class Message:
    """A message is identified within its channel by its `ts`, which is also its time."""

    raw: Raw = field(repr=False)
    ts: str

    @classmethod
    def parse(cls, raw: object) -> "Message":
        """Parse a message; raise MalformedResponse if it is not one."""
        match raw:
            case {"ts": str(ts)} if is_ts(ts) and isinstance(raw, dict):
                return cls(raw, ts)
            case _:
                raise MalformedResponse("Slack returns an invalid message")

    @cached_property
    def thread_ts(self) -> str:
        """The `ts` of the message to which it replies, else its own."""
        found = get_text(self.raw, "thread_ts")
        return found if is_ts(found) else self.ts

    @property
    def is_root(self) -> bool:
        """Whether it begins a thread, even one without replies."""
        return self.thread_ts == self.ts

    @property
    def reply_count(self) -> int:
        return get_number(self.raw, "reply_count")

    @property
    def latest_reply(self) -> str:
        found = get_text(self.raw, "latest_reply")
        return found if is_ts(found) else self.ts

    @cached_property
    def edited(self) -> str:
        """The `ts` of its last edit; empty if there was none."""
        found = get_text(get_object(self.raw, "edited"), "ts")
        return found if is_ts(found) else ""

    @cached_property
    def user(self) -> str:
        return get_text(self.raw, "user")

    @cached_property
    def is_notice(self) -> bool:
        return get_text(self.raw, "subtype") in _NOTICES

    @cached_property
    def files(self) -> tuple[File, ...]:
        return tuple(map(File, get_objects(self.raw, "files")))

    @property
    def is_indexed(self) -> bool:
        """Whether a document begins with it, even an unreadable one."""
        has_content = any(self.raw.get(name) for name in ("text", "blocks", "attachments", "files"))
        return self.is_root and (self.reply_count > 0 or (has_content and not self.is_notice))
