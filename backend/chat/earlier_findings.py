"""What research found out before that speaks to a question: given to the model as references, with what it rests on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from indexing.runtime.deadline import Deadline


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierFinding:
    """An item of kept knowledge that the asker may read, and that is not stale."""

    id: str
    question: str
    answer: str
    made_at: datetime
    is_of_web: bool
    """Strangers have written some of it."""
    document_ids: frozenset[str]
    """All that it rests on: so does an answer that is written with it."""


EARLIER_SHARE = 0.25
"""Of the room for what is looked up, what earlier findings may take: the documents are what counts today."""

FindEarlier: TypeAlias = Callable[[str, Deadline], Sequence[EarlierFinding]]
"""Returns what speaks to a question, the most relevant first. Raises CompletionError."""
