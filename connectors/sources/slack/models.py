"""One message, as the API and the exports both write it, and which messages are read."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, TypeAlias

from connectors.http_client.response import Malformed

Raw: TypeAlias = Mapping[str, Any]
"""An object of Slack's, as JSON gives it. Any of its values may be missing or null."""

BEGINNING = "0"
"""Before every message."""

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
"""Subtypes by which Slack itself speaks: of people who come and go, of what was deleted."""
_NEVER_READ = {"tombstone", "hidden_by_limit", "external"}
"""Modes of files that are not with Slack, or not any more."""


def text_at(raw: Raw, *names: str) -> str:
    """The first of these values that is a text with something in it."""
    for name in names:
        if isinstance(value := raw.get(name), str) and value.strip():
            return value
    return ""


def objects_at(raw: Raw, name: str) -> list[Raw]:
    value = raw.get(name)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def object_at(raw: Raw, name: str) -> Raw:
    value = raw.get(name)
    return value if isinstance(value, dict) else {}


def number_at(raw: Raw, name: str) -> int:
    value = raw.get(name)
    return value if isinstance(value, int) else 0


def is_ts(text: str) -> bool:
    return bool(_TS.fullmatch(text))


def order(ts: str) -> tuple[int, int]:
    """Seconds since 1970 and microseconds, of a `ts` such as 1700000000.000100."""
    seconds, _, fraction = ts.partition(".")
    return int(seconds), int(fraction.ljust(6, "0"))


def moment(ts: str) -> datetime:
    seconds, micros = order(ts)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=micros)


def ts_of(seconds: float) -> str:
    """Of a moment in seconds since 1970; of one before, that year."""
    return f"{max(seconds, 0.0):.6f}"


@dataclass(frozen=True, slots=True)
class File:
    """A file that a message brings."""

    raw: Raw = field(repr=False)

    @property
    def id(self) -> str:
        return text_at(self.raw, "id")

    @property
    def title(self) -> str:
        return text_at(self.raw, "title", "name")

    @property
    def name(self) -> str:
        return text_at(self.raw, "name", "title")

    @property
    def size(self) -> int:
        return number_at(self.raw, "size")

    @property
    def is_text(self) -> bool:
        """By what Slack says; a name need not tell it."""
        return text_at(self.raw, "mimetype").startswith("text/")

    @property
    def url(self) -> str:
        """Where its bytes are; empty where Slack has none."""
        if self.raw.get("is_external") or text_at(self.raw, "mode") in _NEVER_READ:
            return ""
        return text_at(self.raw, "url_private_download", "url_private")

    @property
    def key(self) -> tuple[str, str, int, int]:
        """What changes when the file does. The addresses differ between the API and an export."""
        return (self.id, self.title, self.size, number_at(self.raw, "edit_timestamp"))


@dataclass(frozen=True)
class Message:
    """Of a channel it is known by its `ts`, which is also its moment."""

    raw: Raw = field(repr=False)
    ts: str

    @classmethod
    def of(cls, raw: object) -> "Message":
        """Raises Malformed: it is not a message."""
        match raw:
            case {"ts": str(ts)} if is_ts(ts) and isinstance(raw, dict):
                return cls(raw, ts)
            case _:
                raise Malformed("Slack gives for a message what is none")

    @cached_property
    def thread_ts(self) -> str:
        """Of the message that it answers, or is itself."""
        found = text_at(self.raw, "thread_ts")
        return found if is_ts(found) else self.ts

    @property
    def is_root(self) -> bool:
        """It begins a thread, though nobody may have answered."""
        return self.thread_ts == self.ts

    @property
    def reply_count(self) -> int:
        return number_at(self.raw, "reply_count")

    @property
    def latest_reply(self) -> str:
        found = text_at(self.raw, "latest_reply")
        return found if is_ts(found) else self.ts

    @cached_property
    def edited(self) -> str:
        """The moment of its last edit; empty where there was none."""
        found = text_at(object_at(self.raw, "edited"), "ts")
        return found if is_ts(found) else ""

    @cached_property
    def user(self) -> str:
        return text_at(self.raw, "user")

    @cached_property
    def is_notice(self) -> bool:
        return text_at(self.raw, "subtype") in _NOTICES

    @cached_property
    def files(self) -> tuple[File, ...]:
        return tuple(map(File, objects_at(self.raw, "files")))

    @property
    def is_read(self) -> bool:
        """Whether a document begins with it, though perhaps an unreadable one."""
        says = any(self.raw.get(name) for name in ("text", "blocks", "attachments", "files"))
        return self.is_root and (self.reply_count > 0 or (says and not self.is_notice))
