"""Who calls the tools, and what they are given: the seam between the protocol and where its server runs."""

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

from pydantic import BaseModel

from backend.conversations.turn_events import NumberedEvent
from backend.research.runs.service import OpenedResearch
from backend.schemas.mcp_tool import ResearchArguments
from backend.search.search_service import SearchService
from backend.store.database import Database
from connectors.access import Readers
from indexing.runtime.deadline import Deadline

Found = TypeVar("Found")
ResearchNews: TypeAlias = OpenedResearch | NumberedEvent
"""A run as it is, or one of its events as `GET /api/research/{id}/events` sends them."""


class ToolError(Exception):
    """A call has no result; the message tells the model why, and what to do next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentAccess:
    """The documents of one call. Used by the thread that works on it."""

    search: SearchService
    database: Database
    find_readers: Callable[[], Readers]
    """Returns what a search may find now."""
    find_readers_to_open: Callable[[], Readers]
    """Returns what may be opened by its id now."""
    find_url: Callable[[str, str, str], str]
    """Returns where a person opens a source, by its id, its link, and its kind as in `SourceKindName`."""
    deadline: Deadline


class McpAsker(Protocol):
    @property
    def may_ask(self) -> bool:
        """Whether questions are answered."""

    @property
    def may_research(self) -> bool:
        """Whether the asker may have research of their own."""

    def note_query(self, query: str) -> None:
        """Note what is asked, for a log that says it."""

    def find_url(self, document_id: str, link: str, kind: str) -> str:
        """Return the address of a document; see `DocumentAccess.find_url`."""

    def find_research_url(self, research_id: str) -> str:
        """Return where the HTTP API returns research."""

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

    def research(self, asked: ResearchArguments) -> AsyncGenerator[ResearchNews, None]:
        """Begin research, and follow it; closing this ends the following alone.

        The first is the run as it begins, the last the run as it was left, as far as the asker may see it then.

        Raises:
            ToolError: the asker may have none, or their turn does not come.
            QuarryError, DeadlineExceededError, AskerGoneError: it does not begin, or is followed no further.
        """
