"""What search needs of a language model: a text for a few messages, by a deadline."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from connectors.errors import HandledError
from indexing.runtime.deadline import Deadline


class CompletionError(HandledError):
    """The language model gave no usable answer: an error, a timeout, an empty text."""


class ShownPicture(Protocol):
    @property
    def url(self) -> str:
        """Holds the picture itself."""
        ...


@dataclass(frozen=True, slots=True)
class ChatMessage:
    role: Literal["system", "user", "assistant"]
    text: str
    pictures: tuple[ShownPicture, ...] = ()
    """For a model that sees."""


Complete: TypeAlias = Callable[[Sequence[ChatMessage], Deadline], str]
"""Raises CompletionError and no other error that a caller must expect."""
