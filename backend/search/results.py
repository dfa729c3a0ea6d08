"""A search by itself: the best sections as a person reads them, with no model in between."""

from backend.search.merging import merge_individual_chunks
from backend.search.models import SearchDoc
from backend.search.request import SearchRequest
from backend.search.result_format import DocumentNumbers, search_doc
from backend.search.retrieval import HITS_PER_VARIANT
from backend.search.search_tool import SearchTool


def find(tool: SearchTool, request: SearchRequest, limit: int) -> list[SearchDoc]:
    """The best `limit` sections as they were found, numbered by document.

    Raises:
        DeadlineExceededError, TemporarilyUnavailableError, ActionRequiredError: the index did not answer.
    """
    numbers = DocumentNumbers()
    ranking = tool.rank(request, max(limit, HITS_PER_VARIANT))
    sections = merge_individual_chunks(ranking)[:limit]
    return [search_doc(section, numbers.number(section.document_id)) for section in sections]
