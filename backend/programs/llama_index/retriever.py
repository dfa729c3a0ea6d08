"""A retriever of LlamaIndex over the documents that the asker may read."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from backend.container import Container
from backend.programs.bounded_work import run_bounded
from backend.programs.document_search import MOST_PASSAGES, DocumentSearch, describe_passage
from backend.programs.home_container import HomeContainer
from backend.search.models import SearchDoc
from backend.settings import Settings
from connectors.access import Readers
from connectors.errors import InvalidInputError
from indexing.runtime.deadline import Deadline


class QuarryRetriever(BaseRetriever):
    """As `backend.programs.langchain.QuarryRetriever`."""

    def __init__(
        self, search: DocumentSearch, start_deadline: Callable[[], Deadline], k: int
    ) -> None:
        if not 1 <= k <= MOST_PASSAGES:
            raise InvalidInputError(f"k is a number from 1 to {MOST_PASSAGES}.")
        super().__init__()
        self._search, self._start_deadline, self._k = search, start_deadline, k

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._find(query_bundle.query_str, self._start_deadline())

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        query = query_bundle.query_str
        return await run_bounded(lambda bounded: self._find(query, bounded), self._start_deadline())

    def _find(self, query: str, deadline: Deadline) -> list[NodeWithScore]:
        found = self._search.find_passages(query, self._k, deadline) if query.strip() else []
        return [_to_node(doc) for doc in found]


def _to_node(doc: SearchDoc) -> NodeWithScore:
    node = TextNode(text=doc.content, metadata=describe_passage(doc))
    return NodeWithScore(node=node, score=doc.score)


@contextmanager
def open_retriever(
    *readers: str, k: int = 10, settings: Settings | None = None
) -> Iterator[QuarryRetriever]:
    """Open a retriever of at most `k` passages for one asker; takes and raises what `backend.programs.langchain.open_home` does."""
    own = Readers.of(*readers) if readers else None
    with closing(HomeContainer(Container(settings or Settings()), own)) as home:
        search = DocumentSearch(home.open_search, home.reopen, home.find_readers)
        yield QuarryRetriever(search, lambda: Deadline.after(home.settings.search_seconds), k)
