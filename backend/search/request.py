"""What is asked of a search."""

from dataclasses import dataclass, field

from backend.search.llm_protocol import Message
from connectors.document import Readers
from indexing.index.protocols import Filters
from indexing.runtime.deadline import Deadline


@dataclass(frozen=True, slots=True)
class Budgets:
    """Tokens of the chat model."""

    selection: int
    """What the model that selects sections may be shown."""
    answer: int
    """What the text of all sections for the answering model may come to, whatever was expanded."""

    @classmethod
    def for_window(cls, tokens: int) -> "Budgets":
        """A quarter of a model's context window, at most 12,800 tokens, for each."""
        share = min(12_800, tokens // 4)
        return cls(selection=share, answer=share)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    message: str
    """The user's own words; the original query."""
    readers: Readers
    deadline: Deadline
    budgets: Budgets
    history: tuple[Message, ...] = ()
    """The conversation before the message, oldest first."""
    model_queries: tuple[str, ...] = ()
    """What the chat model asked to be searched for."""
    filters: Filters = field(default_factory=Filters)
