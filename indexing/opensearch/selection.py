"""Selects documents by id, tag and set for the writer, regardless of who may read them."""

from collections.abc import Iterator, Sequence

from opensearchpy import OpenSearch

from indexing.index.protocols import SelectedDocument, Selection
from indexing.opensearch import errors
from indexing.opensearch.access_filter import any_of, match_any, none_of
from indexing.opensearch.export import COMPLETE, PAGE_SIZE
from indexing.opensearch.mapping import Body
from indexing.text.normalization import is_storable


def select_documents(
    client: OpenSearch, index: str, selection: Selection
) -> Iterator[SelectedDocument]:
    """Yield the selected documents in order of ids; each page is of one moment."""
    after = ""
    while True:
        body = {
            "query": _condition(selection),
            "sort": [{"id": "asc"}],
            "search_after": [after],
            "size": PAGE_SIZE,
            "_source": ["id", "tags", "sets"],
            "track_total_hits": False,
        }
        with errors.translate_errors():
            response = client.search(body=body, index=index, params=COMPLETE)
        found = [hit["_source"] for hit in response["hits"]["hits"]]
        if not found:
            return
        for each in found:
            yield SelectedDocument(each["id"], frozenset(each["tags"]), frozenset(each["sets"]))
        after = found[-1]["id"]


def count_documents(client: OpenSearch, index: str, selections: Sequence[Selection]) -> int:
    if not selections:
        return 0
    query = match_any([_condition(each) for each in selections])
    with errors.translate_errors():
        found: int = client.count(index=index, body={"query": query})["count"]
    return found


def _condition(selection: Selection) -> Body:
    return {"bool": {"filter": list(_conditions(selection))}}


def _conditions(selection: Selection) -> Iterator[Body]:
    yield {"term": {"kind": "document"}}
    yield {"range": {"chunks": {"gt": 0}}}
    if selection.prefix:
        storable = is_storable(selection.prefix)
        yield {"prefix": {"id": selection.prefix}} if storable else any_of("id", [])
    if selection.tag is not None:
        yield any_of("tags", [selection.tag])
    if selection.document_ids is not None:
        yield any_of("id", selection.document_ids)
    if selection.in_set is not None:
        yield any_of("sets", [selection.in_set])
    if selection.outside_set is not None:
        yield none_of("sets", [selection.outside_set])
