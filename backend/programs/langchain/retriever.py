"""A retriever of LangChain over the documents that the asker may read."""

from collections.abc import Callable

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import Field, InstanceOf

from backend.programs.bounded_work import run_bounded
from backend.programs.document_search import MOST_PASSAGES, DocumentSearch, describe_passage
from backend.search.models import SearchDoc
from connectors.errors import InvalidInputError
from indexing.runtime.deadline import Deadline


class QuarryRetriever(BaseRetriever):
    """Return the best passages for a query as a person types it.

    A retrieval raises DeadlineExceededError, TemporarilyUnavailableError or ActionRequiredError where there is no result.
    """

    search: InstanceOf[DocumentSearch] = Field(exclude=True, repr=False)
    start_deadline: Callable[[], Deadline] = Field(exclude=True, repr=False)
    """Called for each retrieval."""
    k: int = Field(default=10, ge=1, le=MOST_PASSAGES)
    """The most passages."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        del run_manager
        return self._retrieve(query, k, self.start_deadline())

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        del run_manager
        return await run_bounded(
            lambda deadline: self._retrieve(query, k, deadline), self.start_deadline()
        )

    def _retrieve(self, query: str, k: int | None, deadline: Deadline) -> list[Document]:
        limit = self.k if k is None else k
        if not 1 <= limit <= MOST_PASSAGES:
            raise InvalidInputError(f"k is a number from 1 to {MOST_PASSAGES}.")
        if not query.strip():
            return []
        return [_to_document(doc) for doc in self.search.find_passages(query, limit, deadline)]


def _to_document(doc: SearchDoc) -> Document:
    return Document(
        page_content=doc.content, metadata={**describe_passage(doc), "score": doc.score}
    )
