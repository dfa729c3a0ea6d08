"""A search for people and programs: the fused sections, before a model reads them."""

from collections.abc import Sequence

from backend.search.merging import merge_individual_chunks
from backend.search.rendering import search_doc
from backend.search.request import SearchRequest
from backend.search.search_tool import SearchTool
from backend.search.sections import SearchDoc


def find(tool: SearchTool, request: SearchRequest, limit: int) -> Sequence[SearchDoc]:
    """The `limit` best sections, numbered from 1 in their order.

    Raises:
        DeadlineExceeded, RetryLater: the index did not answer.
    """
    sections = merge_individual_chunks(tool.rank(request))[:limit]
    return [search_doc(section, number) for number, section in enumerate(sections, start=1)]
