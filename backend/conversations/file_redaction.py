"""What others see of an answer names no file of its asker's: they are their owner's alone, also where the answer does not rest on them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from backend.conversations.turn_events import NumberedEvent
from backend.store.messages import Message

_FILES = "files"
"""The event that names files, and their place in an answer."""


def hide_files(message: Message) -> Message:
    """Return a stored message without the names of files."""
    return message if message.answer is None else replace(message, answer=_without(message.answer))


def hide_files_of_event(event: NumberedEvent) -> NumberedEvent | None:
    """Return an event without the names of files; None where it is about nothing else."""
    match event.name:
        case "files":
            return None
        case "done":
            return replace(event, data={**event.data, "answer": _without(event.data["answer"])})
        case _:
            return event


def _without(answer: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name != _FILES}
