"""What an agent reports of its task."""

from dataclasses import dataclass, field
from typing import Self

from backend.research.knowledge_items import KnowledgeItem
from backend.research.record.budget import Spent
from backend.research.record.plan import ResearchTask
from backend.research.record.sources import NumberedSource

NOTHING_SPENT = Spent()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskReport:
    """The end of a task, however it ended."""

    task: ResearchTask
    text: str = ""
    """Markdown with markers `[n]` of `sources`; empty where the task failed."""
    sources: tuple[NumberedSource, ...] = ()
    """Those that the text cites, by number."""
    knowledge: tuple[KnowledgeItem, ...] = ()
    gaps: tuple[str, ...] = ()
    """Questions that came up and were not answered."""
    documents: tuple[str, ...] = ()
    """Ids of all documents of the index that the agent has read, cited or not, and of those its question rests on."""
    private_text: str = ""
    """Sentences of the text that say what only documents say which not everybody may read: later queries of the web are
    kept free of it."""
    spent: Spent = field(default_factory=Spent)
    failure: str = ""
    """A sentence that says why there is no text; empty where there is one."""
    note: str = ""
    """What a reader has to know of how the text came about, such as that the budget ended first."""

    @classmethod
    def of_failure(cls, task: ResearchTask, failure: str, spent: Spent = NOTHING_SPENT) -> Self:
        """Return the report of a task that came to nothing; it repeats the question, so it rests on what that rests on."""
        return cls(task=task, failure=failure, spent=spent, documents=task.rests_on)

    @property
    def has_text(self) -> bool:
        return bool(self.text)
