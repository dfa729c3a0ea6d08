"""A search by itself: as many sections as asked for, in the order of the ranking."""

from backend.search.models import DocumentNumbers
from backend.search.search_tool import SearchTool
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.embedding.language_support import EVERYTHING
from indexing.embedding.token_counting import estimated_tokens
from tests.support.search import MemoryIndex, chunk, request

CORPUS = (
    chunk("soup", 0, "The canteen serves soup on Monday."),
    chunk("soup", 1, "The soup of Tuesday is in the canteen as well."),
    chunk("soup", 5, "Canteen soup is free on Friday."),
    *(chunk(f"menu {n:02}", 0, f"Canteen menu {n}.") for n in range(80)),
)


def tool(index: MemoryIndex) -> SearchTool:
    return SearchTool(
        index=index,
        embedder=HashingEmbedder(),
        understanding=EVERYTHING,
        count_tokens=estimated_tokens,
        complete=None,
        numbers=DocumentNumbers(),
    )


def test_consecutive_chunks_are_one_result_and_a_document_has_one_number() -> None:
    docs = tool(MemoryIndex(CORPUS)).find_sections(request("canteen soup"), 10)
    soup = [doc for doc in docs if doc.document_id == "soup"]
    assert sorted(doc.content for doc in soup) == [
        CORPUS[2].text,
        f"{CORPUS[0].text}\n{CORPUS[1].text}",
    ]
    assert len({doc.number for doc in soup}) == 1
    assert {doc.number for doc in docs} == set(range(1, len({doc.document_id for doc in docs}) + 1))


def test_as_many_as_asked_for() -> None:
    assert len(tool(MemoryIndex(CORPUS)).find_sections(request("canteen soup"), 3)) == 3
    assert len(tool(MemoryIndex(CORPUS)).find_sections(request("canteen menu"), 70)) == 70


def test_nothing_found_is_nothing() -> None:
    assert tool(MemoryIndex(())).find_sections(request("canteen"), 10) == []
