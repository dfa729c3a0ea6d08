"""What a message says, as a person reads it: names for ids, and the text that stands in blocks.

Slack writes text in a markup of its own ("mrkdwn"), in which <…> is a mention or a link, and &, < and >
are escaped. Emoji stay in their names (:tada:), by which people search for them.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from connectors.sources.slack.models import Message, Raw, object_at, objects_at, text_at

_MARKED = re.compile(r"<([^<>\n]+)>")
_SPECIAL = re.compile(r"[<&]|:skin-tone-")
_SKIN = re.compile(r"(?<=:)(:skin-tone-[2-6]:)")
_SCHEME = re.compile(r"^(mailto:|tel:|https?://)")
_BULLET = "• "


@dataclass(frozen=True, slots=True)
class Names:
    """How ids are called."""

    person: Callable[[str], str]
    channel: Callable[[str], str]


AS_IDS = Names(str, str)
"""What is said, however people and channels are called at the time."""


def said(message: Message, names: Names) -> str:
    """All that the message says, but for what stands in files; empty where that is nothing.

    Programs mostly say the same twice, as text and as blocks or attachments: it is told once.
    """
    raw = message.raw
    parts: list[str] = []
    own = worded(text_at(raw, "text"), names).strip()
    for part in (own, *_in_blocks(raw, names, beside=own), *_attached(raw, names)):
        if part and not any(_within(part, other) for other in parts):
            parts.append(part)
    return "\n\n".join(parts)


def worded(text: str, names: Names) -> str:
    """Slack's markup as plain text; the signs of bold, italics, lists and code stay."""
    if not _SPECIAL.search(text):
        return text
    plain = _MARKED.sub(lambda match: _marked(match[1], names), text)
    plain = plain.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return _SKIN.sub("", plain)


def _marked(inner: str, names: Names) -> str:
    target, _, label = inner.partition("|")
    match target[0], target[1:]:
        case "@", person:
            return f"@{names.person(person)}"
        case "#", channel:
            return f"#{label or names.channel(channel)}"
        case "!", command:
            return _command(command, label)
        case _:
            return linked(target, label)


def _command(command: str, label: str) -> str:
    """A group, a date, or one of @here, @channel and @everyone."""
    kind, *_ = command.split("^")
    if kind == "date":
        return label
    return f"@{(label or ('group' if kind == 'subteam' else kind)).removeprefix('@')}"


def linked(target: str, label: str) -> str:
    if not target:
        return label
    bare = _SCHEME.sub("", target)
    if target.startswith(("mailto:", "tel:")):
        target = bare
    if not label or label in (target, bare, bare.rstrip("/")):
        return target
    return f"{label} ({target})"


def _within(part: str, other: str) -> bool:
    return " ".join(part.split()) in " ".join(other.split())


def _in_blocks(raw: Raw, names: Names, beside: str) -> Iterator[str]:
    """Rich text is what people type: the text of their message says the same."""
    for block in objects_at(raw, "blocks"):
        if not (beside and text_at(block, "type") == "rich_text"):
            yield _block(block, names).strip()


def _block(block: Raw, names: Names) -> str:
    match text_at(block, "type"):
        case "rich_text":
            return _lines(_rich(one, names) for one in objects_at(block, "elements"))
        case "table":
            return _lines(_row(row, names) for row in _rows(block))
        case "markdown":
            return text_at(block, "text")
        case "context":
            return _lines(_text_object(one, names) for one in objects_at(block, "elements"))
        case _:
            named = (object_at(block, name) for name in ("title", "text", "description"))
            whole = [*named, *objects_at(block, "fields"), {"alt_text": block.get("alt_text")}]
            return _lines(_text_object(one, names) for one in whole)


def _text_object(raw: Raw, names: Names) -> str:
    if text_at(raw, "type") == "mrkdwn":
        return worded(text_at(raw, "text"), names)
    return text_at(raw, "text", "alt_text")


def _rows(block: Raw) -> list[list[Raw]]:
    rows = block.get("rows")
    lists = (row for row in rows if isinstance(row, list)) if isinstance(rows, list) else ()
    return [[cell for cell in row if isinstance(cell, dict)] for row in lists]


def _row(row: list[Raw], names: Names) -> str:
    cells = (text_at(cell, "text") or _cell(cell, names) for cell in row)
    return " | ".join(cells)


def _cell(cell: Raw, names: Names) -> str:
    return " ".join(_rich(one, names) for one in objects_at(cell, "elements"))


def _rich(element: Raw, names: Names) -> str:
    """A paragraph, a quotation, code, or a list, whose items are paragraphs."""
    inner = objects_at(element, "elements")
    if text_at(element, "type") == "rich_text_list":
        return "\n".join(f"{_BULLET}{_inline(objects_at(one, 'elements'), names)}" for one in inner)
    return _inline(inner, names)


def _inline(elements: Iterable[Raw], names: Names) -> str:
    return "".join(_piece(one, names) for one in elements)


def _piece(raw: Raw, names: Names) -> str:
    match text_at(raw, "type"):
        case "link":
            return linked(text_at(raw, "url"), text_at(raw, "text"))
        case "user":
            return f"@{names.person(text_at(raw, 'user_id'))}"
        case "channel":
            return f"#{names.channel(text_at(raw, 'channel_id'))}"
        case "usergroup":
            return "@group"
        case "broadcast":
            return f"@{text_at(raw, 'range')}"
        case "emoji":
            return f":{text_at(raw, 'name')}:"
        case "date":
            return text_at(raw, "fallback")
        case _:
            text = raw.get("text")
            return text if isinstance(text, str) else ""


def _attached(raw: Raw, names: Names) -> Iterator[str]:
    """What a program attached, and the previews of links and of other messages."""
    for attachment in objects_at(raw, "attachments"):
        blocks = [*objects_at(attachment, "blocks")]
        for message in objects_at(attachment, "message_blocks"):
            blocks += objects_at(object_at(message, "message"), "blocks")
        own = _lines(_attachment(attachment, names))
        beside = [_block(one, names).strip() for one in blocks]
        whole = _lines([own, *(one for one in beside if not _within(one, own))])
        yield whole or worded(text_at(attachment, "fallback"), names).strip()


def _attachment(raw: Raw, names: Names) -> Iterator[str]:
    for name in ("pretext", "author_name"):
        yield worded(text_at(raw, name), names)
    if title := worded(text_at(raw, "title"), names):
        yield linked(text_at(raw, "title_link", "from_url"), title)
    yield worded(text_at(raw, "text"), names)
    for one in objects_at(raw, "fields"):
        told = (text_at(one, "title"), worded(text_at(one, "value"), names))
        yield ": ".join(filter(None, told))


def _lines(parts: Iterable[str]) -> str:
    return "\n".join(part for part in parts if part.strip())
