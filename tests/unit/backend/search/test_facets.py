"""Facets of a search: of what it retrieves, each field without its own filter."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import pytest

from backend.search.facets import count_found, count_hits
from backend.search.models import DocumentNumbers
from backend.search.query_syntax import parse_query
from backend.search.search_service import SearchService
from connectors.access import Access, Readers
from connectors.document import Person
from indexing.chunking.chunk import Chunk
from indexing.embedding.embedder import Vectors
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.index.person_keys import PersonCount
from indexing.index.protocols import Facets, Filters
from indexing.runtime.deadline import Deadline
from tests.support.search import MemoryIndex, chunk, make_service, ranked

BOARD = Access.to(["group:board"])
CORPUS = (
    chunk("soup", 0, "The canteen serves soup on Monday."),
    chunk("soup", 1, "The soup of Tuesday is in the canteen as well."),
    chunk("menu", 0, "Canteen menu of the week.", source="mail"),
    chunk("tasting", 0, "The board tries the canteen.", BOARD, source="secret"),
    *(chunk(f"notice {n}", 0, "The notice period is three months.") for n in range(9)),
)


def _service(corpus: Sequence[Chunk]) -> SearchService:
    return make_service(MemoryIndex(tuple(corpus)))


def _facets(query: str, filters: Filters | None = None, *tokens: str) -> Facets:
    service = _service(CORPUS)
    asked = service.request(
        parse_query(query), Readers.of(*tokens), filters or Filters(), service.deadline()
    )
    tool = service.tool(None, DocumentNumbers())
    return count_found(tool, asked, tool.rank(asked, 10), 10)


def test_only_documents_that_the_query_finds_are_counted_each_once() -> None:
    found = _facets("canteen")
    assert found.sources == {"wiki": 1, "mail": 1}
    assert found.months == {"2026-03": 2}
    assert _facets("zzzqqq xyzzy").sources == {}


def test_nothing_is_counted_that_the_asker_may_not_read() -> None:
    assert "secret" not in _facets("canteen").sources
    assert _facets("canteen", None, "group:board").sources["secret"] == 1


def test_each_field_is_counted_without_its_own_filter() -> None:
    found = _facets("canteen", Filters(sources=frozenset({"mail"})))
    assert found.sources == {"wiki": 1, "mail": 1}
    assert found.media_types == {"text/plain": 1}


def test_an_unfiltered_search_is_made_once() -> None:
    service = _service(CORPUS)
    asked = service.request(parse_query("canteen"), Readers.of(), Filters(), service.deadline())
    tool = service.tool(None, DocumentNumbers())
    count_found(tool, asked, tool.rank(asked, 10), 10)
    assert isinstance(service.index, MemoryIndex)
    assert len(service.index.finds) == 1


@dataclass(frozen=True)
class CountingEmbedder(HashingEmbedder):
    texts: list[str] = field(default_factory=list)

    def embed_queries(self, texts: Sequence[str], deadline: Deadline) -> Vectors:
        self.texts.extend(texts)
        return super().embed_queries(texts, deadline)


def test_the_query_is_embedded_once_for_all_fields() -> None:
    embedder = CountingEmbedder()
    service = make_service(MemoryIndex(CORPUS), embedder=embedder)
    filters = Filters(sources=frozenset({"mail"}), media_types=frozenset({"text/plain"}))
    asked = service.request(parse_query("canteen"), Readers.of(), filters, service.deadline())
    tool = service.tool(None, DocumentNumbers())
    count_found(tool, asked, tool.rank(asked, 10), 10)
    assert embedder.texts == ["canteen"]
    assert isinstance(service.index, MemoryIndex)
    assert len(service.index.finds) == 3


@pytest.mark.parametrize(
    ("moment", "months"),
    [
        (datetime(899, 1, 31, tzinfo=UTC), {"0899-01": 1}),
        (datetime(2026, 12, 31, 23, 59, tzinfo=UTC), {"2026-12": 1}),
        (None, {}),
    ],
)
def test_months_are_of_the_calendar_of_utc(moment: datetime | None, months: object) -> None:
    assert count_hits([ranked(replace(CORPUS[0], updated_at=moment))]).months == months


def test_a_person_of_several_names_is_counted_by_the_usual_one() -> None:
    owners = [
        ("Ann", "ann@example.com"),
        ("Ann Lee", "ANN@example.com"),
        ("Ann Lee", "ann@example.com"),
    ]
    hits = [
        ranked(replace(chunk(f"d{n}", 0), owners=(Person(name, email),)))
        for n, (name, email) in enumerate(owners)
    ]
    assert count_hits(hits).people == {"ann@example.com": PersonCount("Ann Lee", 3)}
