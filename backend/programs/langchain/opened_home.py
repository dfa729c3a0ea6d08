"""A home of Quarry, opened for one asker by a program on the same machine."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

from backend.container import Container
from backend.programs.document_search import DocumentSearch
from backend.programs.home_container import HomeContainer
from backend.programs.langchain.internal_search import InternalSearchTool
from backend.programs.langchain.retriever import QuarryRetriever
from backend.programs.langchain.tool_session import ToolSession
from backend.programs.langchain.web_search import ARGUMENTS, WebSearchTool
from backend.settings import Settings
from backend.web_search.domains import ANY_DOMAIN, DomainRules
from backend.web_search.tool_texts import WEB_SEARCH_TEXTS, Language
from connectors.access import Readers
from indexing.runtime.deadline import Deadline


class OpenedHome:
    """Makes tools and retrievers for one asker. Safe to use from several threads until it is closed."""

    def __init__(self, home: HomeContainer) -> None:
        self._home = home

    def make_tools(
        self, session: ToolSession, domains: DomainRules = ANY_DOMAIN, language: Language = "en"
    ) -> tuple[InternalSearchTool, WebSearchTool]:
        """Make the tools of an agent for one conversation.

        Args:
            domains: narrow those that the admins permit.
            language: of what the model is given about the search of the web.
        """
        internal = InternalSearchTool(
            search=self._document_search, start_deadline=self._start_deadline, session=session
        )
        web = WebSearchTool(
            description=WEB_SEARCH_TEXTS[language].description,
            args_schema=ARGUMENTS[language],
            open_web=self._home.open_web,
            domains=domains,
            start_deadline=self._start_deadline,
            session=session,
        )
        return internal, web

    def make_retriever(self, k: int = 10) -> QuarryRetriever:
        """Make a retriever of at most `k` passages."""
        return QuarryRetriever(
            search=self._document_search, start_deadline=self._start_deadline, k=k
        )

    def close(self) -> None:
        """Close all that was opened; tools and retrievers of this home then fail."""
        self._home.close()

    @property
    def _document_search(self) -> DocumentSearch:
        return DocumentSearch(self._home.open_search, self._home.reopen, self._home.find_readers)

    def _start_deadline(self) -> Deadline:
        return Deadline.after(self._home.settings.search_seconds)


@contextmanager
def open_home(*readers: str, settings: Settings | None = None) -> Iterator[OpenedHome]:
    """Open a home for one asker, and close it at the end of the block.

    Args:
        readers: whom to search as, as `quarry search --as` takes them, such as `user:ann@example.com`; without any, public
            documents, and the files of the machine's owner where there are no accounts.
        settings: by default those of the environment.

    Raises:
        ValueError: one of the readers is not valid.
    """
    own = Readers.of(*readers) if readers else None
    home = OpenedHome(HomeContainer(Container(settings or Settings()), own))
    with closing(home):
        yield home
