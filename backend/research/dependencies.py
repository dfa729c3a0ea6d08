"""What a research run works with, and what whoever runs it decides."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeAlias

from backend.chat.earlier_findings import EarlierFinding
from backend.chat.llm.client import ChatModel
from backend.chat.turn_settings import PLAIN, AssistantSettings
from backend.research.events import ResearchEvent
from backend.research.knowledge_items import KnowledgeItem
from backend.research.record.research_record import ResearchRecord
from backend.search.llm_protocol import Complete
from backend.search.models import DocumentNumbers, ReadWords, read_nothing
from backend.search.search_tool import SearchTool
from backend.web_search.web_session import WebSession
from connectors.access import Readers
from connectors.errors import HandledError
from indexing.embedding.embedder import QueryEmbedder
from indexing.embedding.language_support import EmbedderWithLanguages
from indexing.embedding.token_counting import CountTokens
from indexing.index.protocols import Filters, Index
from indexing.runtime.deadline import CancelToken, Deadline

ReadersNow: TypeAlias = Callable[[], Readers | None]
"""Returns what the person may read now; None where the account or the session has ended."""

ResolveAssistant: TypeAlias = Callable[[Readers], AssistantSettings | None]
"""Returns how the assistant now answers somebody who may read so much: `scope` is all that it searches, with its own files and
those of the project. None where it was deleted, or is not for the person any more."""

OpenSearch: TypeAlias = Callable[[Complete | None, DocumentNumbers, Filters], SearchTool]
"""As `SearchService.tool`: makes what searches the documents in a scope for one agent, with the model that it is to ask."""

FindFindings: TypeAlias = Callable[[str, Readers, Deadline], Sequence[EarlierFinding]]
"""Returns what research found out before that speaks to a question, as far as somebody may read it who may read so much; nothing that is
stale. Raises CompletionError."""

Calculate: TypeAlias = Callable[[str, str, Deadline], KnowledgeItem | str]
"""Runs a program for a question, and returns what is known by it, or a sentence that says why it gave nothing."""


class ResearchInterruptedError(HandledError):
    """The process that runs it has to end; the run goes on from its record elsewhere."""


class ResearchFailedError(HandledError):
    """There is nothing to report of.

    Attributes:
        advice: What the person can do about it.
    """

    advice: str

    def __init__(self, message: str, advice: str) -> None:
        super().__init__(message, advice)


@dataclass(frozen=True, slots=True)
class ResearchRefusal:
    """Why nothing more is searched, and no model is asked. What there is, is reported."""

    reason: str
    advice: str
    """What the person can do about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchDependencies:
    """All of it is used by several threads at the same time."""

    writer: ChatModel
    """Decides what to do, and writes."""
    fast: ChatModel
    """Judges answers and claims; may be the writer."""
    count_tokens: CountTokens
    resolve_readers: ReadersNow
    """Asked anew for each task, and before the report is shown."""
    index: Index
    """Tells which documents may still be read."""
    open_search: OpenSearch | None
    """None where no documents are searched."""
    web: WebSession | None
    """None where the web is switched off."""
    embedding: EmbedderWithLanguages
    sentence_embedder: QueryEmbedder
    """Compares claims with passages when citations are checked."""
    person_id: int
    resolve_assistant: ResolveAssistant = lambda _: PLAIN
    """Asked anew for each step and each task: what an assistant is limited to, and whose it is, may change in mid-run."""
    find_earlier: FindFindings | None = None
    """None where no kept knowledge is used."""
    refusal: ResearchRefusal | None = None
    """Since a process took the run up."""
    calculate: Calculate | None = None
    """None where there is no sandbox."""
    infer: ReadWords = read_nothing
    """Reads words of a query as filters."""
    search_seconds: float = 30.0
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


def _ignore(_: object) -> None:
    """Do nothing: nobody follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchControl:
    """How a run is followed and ended. Its callables are called from several threads, one at a time."""

    emit: Callable[[ResearchEvent], None] = _ignore
    save: Callable[[ResearchRecord], None] = _ignore
    """Called after each finished step with the record as it is then, in order. What it raises ends the run."""
    stop: CancelToken = field(default_factory=CancelToken)
    """The person wants the report of what there is."""
    interrupt: CancelToken = field(default_factory=CancelToken)
    """The process has to end: `ResearchInterruptedError` is raised, and no report is written."""
