"""Conversion of a message to plain text: names instead of ids, text of blocks and attachments.

Slack writes text in its own markup ("mrkdwn"), in which <…> is a mention or a link, and &, < and > are
escaped. Emoji keep their names (:tada:), by which people search for them.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from connectors.sources.slack.models import Message, Raw, get_object, get_objects, get_text

_MARKED = re.compile(r"<([^<>\n]+)>")
_SPECIAL = re.compile(r"[<&]|:skin-tone-")
_SKIN = re.compile(r"(?<=:)(:skin-tone-[2-6]:)")
_SCHEME = re.compile(r"^(mailto:|tel:|https?://)")
_BULLET = "• "


@dataclass(frozen=True, slots=True)
class NameLookup:
    """Returns the names of users and channels for their ids."""

    get_user: Callable[[str], str]
    get_channel: Callable[[str], str]


IDS_AS_NAMES = NameLookup(str, str)
"""For text that does not change when a user or a channel is renamed."""


def get_message_text(message: Message, names: NameLookup) -> str:
    """Return the whole text of a message without its files.

    Apps usually send the same text twice, as text and as blocks or attachments: it is returned once.
    """
    raw = message.raw
    parts: list[str] = []
    own = convert_markup(get_text(raw, "text"), names).strip()
    for part in (own, *_iterate_blocks(raw, names, beside=own), *_iterate_attachments(raw, names)):
        if part and not any(_is_within(part, other) for other in parts):
            parts.append(part)
    return "\n\n".join(parts)


def convert_markup(text: str, names: NameLookup) -> str:
    """Convert Slack's markup to plain text; the signs of bold, italics, lists and code are kept."""
    if not _SPECIAL.search(text):
        return text
    plain = _MARKED.sub(lambda match: _convert_tag(match[1], names), text)
    plain = plain.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return _SKIN.sub("", plain)


def _convert_tag(inner: str, names: NameLookup) -> str:
    target, _, label = inner.partition("|")
    match target[0], target[1:]:
        case "@", user:
            return f"@{names.get_user(user)}"
        case "#", channel:
            return f"#{label or names.get_channel(channel)}"
        case "!", command:
            return _convert_command(command, label)
        case _:
            return format_link(target, label)


def _convert_command(command: str, label: str) -> str:
    """Convert a group, a date, or one of @here, @channel and @everyone."""
    kind, *_ = command.split("^")
    if kind == "date":
        return label
    return f"@{(label or ('group' if kind == 'subteam' else kind)).removeprefix('@')}"


def format_link(target: str, label: str) -> str:
    if not target:
        return label
    bare = _SCHEME.sub("", target)
    if target.startswith(("mailto:", "tel:")):
        target = bare
    if not label or label in (target, bare, bare.rstrip("/")):
        return target
    return f"{label} ({target})"


def _is_within(part: str, other: str) -> bool:
    return " ".join(part.split()) in " ".join(other.split())


def _iterate_blocks(raw: Raw, names: NameLookup, beside: str) -> Iterator[str]:
    # Rich text is what people type: the text of the message is the same.
    for block in get_objects(raw, "blocks"):
        if not (beside and get_text(block, "type") == "rich_text"):
            yield _format_block(block, names).strip()


def _format_block(block: Raw, names: NameLookup) -> str:
    match get_text(block, "type"):
        case "rich_text":
            return _join_lines(
                _format_rich_text(one, names) for one in get_objects(block, "elements")
            )
        case "table":
            return _join_lines(_format_row(row, names) for row in _get_rows(block))
        case "markdown":
            return get_text(block, "text")
        case "context":
            return _join_lines(
                _format_text_object(one, names) for one in get_objects(block, "elements")
            )
        case _:
            named = (get_object(block, name) for name in ("title", "text", "description"))
            whole = [*named, *get_objects(block, "fields"), {"alt_text": block.get("alt_text")}]
            return _join_lines(_format_text_object(one, names) for one in whole)


def _format_text_object(raw: Raw, names: NameLookup) -> str:
    if get_text(raw, "type") == "mrkdwn":
        return convert_markup(get_text(raw, "text"), names)
    return get_text(raw, "text", "alt_text")


def _get_rows(block: Raw) -> list[list[Raw]]:
    rows = block.get("rows")
    lists = (row for row in rows if isinstance(row, list)) if isinstance(rows, list) else ()
    return [[cell for cell in row if isinstance(cell, dict)] for row in lists]


def _format_row(row: list[Raw], names: NameLookup) -> str:
    cells = (get_text(cell, "text") or _format_cell(cell, names) for cell in row)
    return " | ".join(cells)


def _format_cell(cell: Raw, names: NameLookup) -> str:
    return " ".join(_format_rich_text(one, names) for one in get_objects(cell, "elements"))


def _format_rich_text(element: Raw, names: NameLookup) -> str:
    """Format a paragraph, a quotation, code, or a list, whose items are paragraphs."""
    inner = get_objects(element, "elements")
    if get_text(element, "type") == "rich_text_list":
        return "\n".join(
            f"{_BULLET}{_format_inline(get_objects(one, 'elements'), names)}" for one in inner
        )
    return _format_inline(inner, names)


def _format_inline(elements: Iterable[Raw], names: NameLookup) -> str:
    return "".join(_format_element(one, names) for one in elements)


def _format_element(raw: Raw, names: NameLookup) -> str:
    match get_text(raw, "type"):
        case "link":
            return format_link(get_text(raw, "url"), get_text(raw, "text"))
        case "user":
            return f"@{names.get_user(get_text(raw, 'user_id'))}"
        case "channel":
            return f"#{names.get_channel(get_text(raw, 'channel_id'))}"
        case "usergroup":
            return "@group"
        case "broadcast":
            return f"@{get_text(raw, 'range')}"
        case "emoji":
            return f":{get_text(raw, 'name')}:"
        case "date":
            return get_text(raw, "fallback")
        case _:
            text = raw.get("text")
            return text if isinstance(text, str) else ""


def _iterate_attachments(raw: Raw, names: NameLookup) -> Iterator[str]:
    """Yield what an app attached, and the previews of links and of other messages."""
    for attachment in get_objects(raw, "attachments"):
        blocks = [*get_objects(attachment, "blocks")]
        for message in get_objects(attachment, "message_blocks"):
            blocks += get_objects(get_object(message, "message"), "blocks")
        own = _join_lines(_iterate_fields(attachment, names))
        beside = [_format_block(one, names).strip() for one in blocks]
        whole = _join_lines([own, *(one for one in beside if not _is_within(one, own))])
        yield whole or convert_markup(get_text(attachment, "fallback"), names).strip()


def _iterate_fields(raw: Raw, names: NameLookup) -> Iterator[str]:
    for name in ("pretext", "author_name"):
        yield convert_markup(get_text(raw, name), names)
    if title := convert_markup(get_text(raw, "title"), names):
        yield format_link(get_text(raw, "title_link", "from_url"), title)
    yield convert_markup(get_text(raw, "text"), names)
    for one in get_objects(raw, "fields"):
        parts = (get_text(one, "title"), convert_markup(get_text(one, "value"), names))
        yield ": ".join(filter(None, parts))


def _join_lines(parts: Iterable[str]) -> str:
    return "\n".join(part for part in parts if part.strip())
