"""Who calls the tools, and what they are given: the seam between the protocol and where its server runs."""

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from pydantic import BaseModel

from backend.search.search_service import SearchService
from backend.store.database import Database
from connectors.access import Readers
from indexing.runtime.deadline import Deadline

Found = TypeVar("Found")


class ToolError(Exception):
    """A call has no result; the message tells the model why, and what to do next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentAccess:
    """The documents of one call. Used by the thread that works on it."""

    search: SearchService
    database: Database
    find_readers: Callable[[], Readers]
    """Returns what a search may find as of now."""
    find_readers_to_open: Callable[[], Readers]
    """Returns what may be opened by its id as of now."""
    find_url: Callable[[str, str, str], str]
    """Returns where a person opens a source, by its id, its link, and its kind as in `SourceKindName`."""
    deadline: Deadline


class McpAsker(Protocol):
    @property
    def may_ask(self) -> bool:
        """Whether questions are answered."""

    def note_query(self, query: str) -> None:
        """Note what is asked, for a log that says it."""

    def find_url(self, document_id: str, link: str, kind: str) -> str:
        """As `DocumentAccess.find_url`."""

    async def read_documents(self, work: Callable[[DocumentAccess], Found]) -> Found:
        """Run `work` in a thread, when it is the asker's turn; cancelling ends its deadline.

        Raises:
            ToolError: the asker's turn does not come.
            QuarryError, DeadlineExceededError: as `work` does.
        """

    def answer(self, question: str) -> AsyncGenerator[BaseModel, None]:
        """Yield the data of the events of an answer, as `POST /api/ask` sends them; closing it ends the answer.

        The last is an `AnswerDoneEvent` or a `ProblemDetails`.

        Raises:
            ToolError: the asker's turn does not come.
        """
