"""A home of Quarry, opened for one asker by a program on the same machine."""

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

from backend.container import Container
from backend.programs.langchain.document_search import DocumentSearch
from backend.programs.langchain.internal_search import InternalSearchTool
from backend.programs.langchain.retriever import QuarryRetriever
from backend.programs.langchain.tool_session import ToolSession
from backend.programs.langchain.web_search import ARGUMENTS, WebSearchTool
from backend.search.search_service import SearchService
from backend.settings import Settings
from backend.web_search.domains import ANY_DOMAIN, DomainRules
from backend.web_search.search import WebSearch
from backend.web_search.tool_texts import WEB_SEARCH_TEXTS, Language
from connectors.access import Readers
from connectors.errors import ConflictError
from indexing.runtime.deadline import Deadline


class OpenedHome:
    """Makes tools and retrievers for one asker. Safe to use from several threads until it is closed.

    Args:
        own: the reader tokens of the asker; None for the owner of the machine.
    """

    def __init__(self, settings: Settings, own: Readers | None) -> None:
        self._own = own
        self._lock = threading.Lock()
        self._container = Container(settings)
        self._replaced: list[Container] = []
        self._is_closed = False

    def make_tools(
        self, session: ToolSession, domains: DomainRules = ANY_DOMAIN, language: Language = "en"
    ) -> tuple[InternalSearchTool, WebSearchTool]:
        """Make the tools of an agent for one conversation.

        Args:
            domains: narrow those that the admins permit.
            language: of what the model is told of the search of the web.
        """
        internal = InternalSearchTool(
            search=self._document_search, start_deadline=self._start_deadline, session=session
        )
        web = WebSearchTool(
            description=WEB_SEARCH_TEXTS[language].description,
            args_schema=ARGUMENTS[language],
            open_web=self._open_web,
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
        with self._lock:
            self._is_closed = True
            for container in (*self._replaced, self._container):
                container.close()

    @property
    def _document_search(self) -> DocumentSearch:
        return DocumentSearch(self._open_search, self._reopen, self._find_readers)

    def _start_deadline(self) -> Deadline:
        return Deadline.after(self._container.settings.search_seconds)

    def _open_search(self) -> SearchService:
        # Opened under the lock: what several threads first use at once is made once.
        with self._lock:
            return self._check_open().chat.search

    def _open_web(self) -> WebSearch:
        with self._lock:
            return self._check_open().web_search

    def _find_readers(self) -> Readers:
        with self._lock:
            container = self._check_open()
        if self._own is not None:
            return container.resolve_readers(self._own)
        return container.resolve_readers_of_owner(Readers.of())

    def _reopen(self) -> None:
        """Open the index anew, unless another thread has done so since it was replaced."""
        with self._lock:
            container = self._check_open()
            active = container.engine.versions.active()
            if active is None or active.embedder != container.engine.version.embedder:
                # Other threads may still search it.
                self._replaced.append(container)
                self._container = container.reopen()

    def _check_open(self) -> Container:
        """Raises ConflictError: the home was closed."""
        if self._is_closed:
            raise ConflictError("The home of Quarry was closed. Open it again.")
        return self._container


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
    home = OpenedHome(settings or Settings(), own)
    with closing(home):
        yield home
