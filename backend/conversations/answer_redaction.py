"""What others see of an answer leaves out what is its asker's alone, also where the answer does not rest on it.

It names no file of theirs, nor whose files a source is of, and says of no budget that they or their group have used it up.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from backend.chat.passages import KEPT_REASON_TEXTS, PRIVATE_REASONS, PassagesReason
from backend.conversations.turn_events import NumberedEvent
from backend.store.chat.messages import Message
from backend.store.files.file_source import NAMES_OF_SOURCE

_FILES = "files"
"""The event that names files, and their place in an answer."""
_DOCUMENTS = "documents"
_FOUND = frozenset({"first_results", "results", "selected"})
"""Events of what was found, of which each result names its source."""
_REASON = "passages_reason"
_SAID_TO_OTHERS = PassagesReason.WITHOUT_MODEL


def redact(message: Message) -> Message:
    """Return a stored message as others may see it."""
    return message if message.answer is None else replace(message, answer=_redact(message.answer))


def redact_event(event: NumberedEvent) -> NumberedEvent | None:
    """Return an event as others may see it; None where it is about nothing else."""
    match event.name:
        case "files":
            return None
        case "done":
            return replace(event, data={**event.data, "answer": _redact(event.data["answer"])})
        case "passages" if event.data["reason"] in PRIVATE_REASONS:
            sentence = KEPT_REASON_TEXTS[_SAID_TO_OTHERS]
            said = {"reason": _SAID_TO_OTHERS.value, "sentence": sentence}
            return replace(event, data={**event.data, **said})
        case found if found in _FOUND:
            results = list(map(_redact_document, event.data["results"]))
            return replace(event, data={**event.data, "results": results})
        case _:
            return event


def _redact(answer: Mapping[str, Any]) -> dict[str, Any]:
    left = {name: value for name, value in answer.items() if name != _FILES}
    if left.get(_REASON) in PRIVATE_REASONS:
        left[_REASON] = _SAID_TO_OTHERS.value
    if _DOCUMENTS in left:
        left[_DOCUMENTS] = list(map(_redact_document, left[_DOCUMENTS]))
    return left


def _redact_document(document: Mapping[str, Any]) -> dict[str, Any]:
    """Hide the name of a source of files: to others, "Your files" are their own, and "this project" is any."""
    is_of_files = document.get("source") in NAMES_OF_SOURCE
    return {**document, "source": ""} if is_of_files else dict(document)
