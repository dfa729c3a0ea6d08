"""The little that search needs of a language model: a text for a few messages, by a deadline."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from indexing.runtime.deadline import Deadline


class CompletionFailed(Exception):
    """The language model gave no usable answer: an error, a time-out, an empty text."""


@dataclass(frozen=True, slots=True)
class Message:
    role: Literal["system", "user", "assistant"]
    text: str


Complete: TypeAlias = Callable[[Sequence[Message], Deadline], str]
"""Raises CompletionFailed, and nothing else that a caller must expect."""
