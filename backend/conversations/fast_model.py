"""What the turns of conversations ask of a language model beside their answers: summaries and titles."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TypeAlias

from backend.search.llm_protocol import Complete
from indexing.embedding.token_counting import CountTokens


@dataclass(frozen=True, slots=True, kw_only=True)
class FastModel:
    """The model for small tasks."""

    complete: Complete
    """What it uses is counted as its person's."""
    count_tokens: CountTokens
    window: int
    """Tokens that it reads at most."""
    answering_window: int
    """Tokens that the model reads which writes the answer."""


OpenFastModel: TypeAlias = Callable[[int], AbstractContextManager[FastModel | None]]
"""Yields the model for a person; None where none is set, or a budget of the day is used up."""
