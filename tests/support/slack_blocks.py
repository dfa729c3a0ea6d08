"""What Slack refuses in a message: limits and shapes of Block Kit, and some that a bot should keep to.

https://docs.slack.dev/reference/block-kit and https://docs.slack.dev/reference/methods/chat.postMessage say the limits.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

MOST_BLOCKS = 50
MOST_CHARACTERS = 13_200
"""Of all blocks together: beyond it Slack answers `msg_blocks_too_long`."""
_REFERENCE = re.compile(r"<([^<>]*)>")
_ENTITY = re.compile(r"&(?!amp;|lt;|gt;)")


def find_fault(text: str, blocks: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the code of the error with which Slack refuses a message."""
    if not text and not blocks:
        return "no_text"
    if len(text) > 40_000:
        return "msg_too_long"
    if len(blocks) > MOST_BLOCKS:
        return "invalid_blocks"
    if sum(len(part) for block in blocks for part in list_texts(block)) > MOST_CHARACTERS:
        return "msg_blocks_too_long"
    faults = [fault for block in blocks for fault in _check_block(block)]
    return f"invalid_blocks: {faults}" if faults else None


def list_texts(block: Mapping[str, Any]) -> Iterator[str]:
    """Yield every text that a block shows."""
    for key, value in block.items():
        if key in {"text", "placeholder"} and isinstance(value, str):
            yield value
        elif isinstance(value, Mapping):
            yield from list_texts(value)
        elif isinstance(value, list):
            for each in value:
                yield from list_texts(each)


def _check_block(block: Mapping[str, Any]) -> Iterator[str]:
    match block:
        case {"type": "section", "text": text, **others} if not others:
            yield from _check_text(text, "mrkdwn", 3_000)
        case {"type": "context", "elements": [*elements], **others} if not others:
            if not 1 <= len(elements) <= 10:
                yield "elements of a context"
            for each in elements:
                yield from _check_text(each, "mrkdwn", 3_000)
        case {"type": "actions", "elements": [*elements], **others} if not others:
            if not 1 <= len(elements) <= 25:
                yield "elements of actions"
            if len({each.get("action_id") for each in elements}) < len(elements):
                yield "action ids that are not distinct"
            for each in elements:
                yield from _check_element(each)
        case _:
            yield f"unknown block {block}"


def _check_element(element: Mapping[str, Any]) -> Iterator[str]:
    match element:
        case {"type": "button", "action_id": str(), "text": text, "value": str(value)}:
            yield from _check_text(text, "plain_text", 75)
            if not 1 <= len(value) <= 2_000:
                yield "value of a button"
        case {"type": "static_select", "placeholder": placeholder, "options": [*options]}:
            yield from _check_text(placeholder, "plain_text", 150)
            if not 1 <= len(options) <= 100:
                yield "options"
            for option in options:
                yield from _check_text(option["text"], "plain_text", 75)
                if not 1 <= len(option["value"]) <= 150:
                    yield "value of an option"
        case _:
            yield f"unknown element {element}"


def _check_text(text: Mapping[str, Any], kind: str, longest: int) -> Iterator[str]:
    said = text.get("text", "")
    if text.get("type") != kind:
        yield f"not {kind}: {text}"
    if not 1 <= len(said) <= longest:
        yield f"{len(said)} characters, where 1 to {longest} are allowed"
    if kind == "mrkdwn":
        yield from check_mrkdwn(said)
        if text.get("verbatim") is not True:
            yield "Slack would make links and mentions of words"


def check_mrkdwn(text: str) -> Iterator[str]:
    """Yield what is not escaped, or notifies somebody: no text of the bot may."""
    for target in _REFERENCE.findall(text):
        if not re.fullmatch(r"https?://[^\s|<>]+\|[^|<>]*", target):
            yield f"the reference <{target}>"
    if "<" in _REFERENCE.sub("", text):
        yield f"a bracket that is not escaped in {text!r}"
    if _ENTITY.search(text):
        yield f"an ampersand that is not escaped in {text!r}"
