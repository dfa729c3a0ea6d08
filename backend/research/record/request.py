"""What somebody wants researched."""

from dataclasses import dataclass, field
from datetime import date
from typing import Literal

from backend.research.knowledge_items import Reference
from backend.research.record.budget import ResearchBudget
from backend.search.llm_protocol import ChatMessage
from backend.web_search.tool_texts import Language
from indexing.index.protocols import Filters


@dataclass(frozen=True, slots=True)
class PastMessage:
    """A message of the conversation before."""

    role: Literal["user", "assistant"]
    text: str
    """Of an answer without markers; empty where it may not be read."""
    references: tuple[Reference, ...] = ()
    """Of an answer: what its citations quote."""
    rests_on: tuple[str, ...] = ()
    """Of an answer: ids of all documents that it rests on, cited or not."""

    def to_chat_message(self) -> ChatMessage:
        return ChatMessage(self.role, self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchRequest:
    """A question, and where its answer is looked for: in documents, on the web, or both."""

    question: str
    history: tuple[PastMessage, ...] = ()
    """Oldest first, without the question."""
    uses_documents: bool = True
    uses_web: bool = False
    filters: Filters = field(default_factory=Filters)
    """Narrow the documents, besides the scope of an assistant."""
    language: Language = "en"
    """Of what Quarry itself says in the report; the model writes in the language of the question."""
    budget: ResearchBudget = field(default_factory=ResearchBudget)
    today: date | None = None


@dataclass(frozen=True, slots=True)
class Clarification:
    """What is unclear of a question; there is one round of it."""

    questions: tuple[str, ...]
    """For the person; none where all is clear."""
    answer: str | None = None
    """What the person said to them; None until then, or where they were passed over."""
