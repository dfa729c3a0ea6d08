"""Documents, queries and expectations for words that are read as filters, the same on every engine."""

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime

from backend.search.inferred_filters import FilterInference
from backend.search.models import EVERY_KIND, DocumentNumbers, FilterKind, SearchRequest
from backend.search.query_syntax import parse_query
from backend.search.search_tool import Ranking
from backend.search.visible_names import VisibleNamesCache
from connectors.access import Access, Readers
from connectors.document import Person
from connectors.extraction.registry import EML, MARKDOWN, PDF, XLSX
from indexing.chunking.chunk import Chunk
from indexing.index.protocols import Filters, Index
from tests.support.search import chunk, make_service

TODAY = date(2026, 11, 23)
FINANCE = "group:finance"
ANN, OKAFOR = Person("Ann Lee", "ann@example.com"), Person("Wilhelmina Okafor")


def page(document_id: str, text: str, **fields: object) -> Chunk:
    plain = chunk(document_id, 0, text)
    return replace(plain, media_type=MARKDOWN, owners=(ANN,), **fields)  # type: ignore[arg-type]


def _at(year: int, month: int) -> datetime:
    return datetime(year, month, 15, tzinfo=UTC)


_SCAN = page("scan", "The travel policy as it was signed.", updated_at=_at(2026, 1))
_SECRET = page("secret", "The travel policy of the board.", updated_at=_at(2026, 4), source="vault")
CORPUS = (
    page("rules", "The travel policy tells what a journey may cost.", updated_at=_at(2025, 5)),
    replace(_SCAN, media_type=PDF, owners=(OKAFOR,)),
    page("talk", "Is the travel policy for trains too? asked somebody.", source="team-chat"),
    page("kitchen", "Soup is served on Monday.", source="team-chat", updated_at=_at(2026, 1)),
    page("report", "The travel report of January 2026 was late.", updated_at=_at(2026, 2)),
    replace(_SECRET, media_type=XLSX, owners=(Person("Mole Hill"),), access=Access.to([FINANCE])),
    replace(page("letter", "Lamps for the yard.", updated_at=_at(2024, 7)), media_type=EML),
)


@dataclass(frozen=True)
class ReadQuery:
    """A query, what is read as a filter in it, and what stands first then."""

    query: str
    kind: FilterKind
    words: str
    meaning: str
    first: str

    def __str__(self) -> str:
        return self.query


READ_BY_ALL = (
    ReadQuery("travel policy in Slack", FilterKind.SOURCE, "in Slack", "team-chat", "talk"),
    ReadQuery(
        "travel policy in the team chat", FilterKind.SOURCE, "in the team chat", "team-chat", "talk"
    ),
    ReadQuery("travel policy PDF", FilterKind.TYPE, "PDF", "PDF", "scan"),
    ReadQuery("PDFs about the travel policy", FilterKind.TYPE, "PDFs", "PDF", "scan"),
    ReadQuery(
        "travel policy by Wilhelmina Okafor",
        FilterKind.PERSON,
        "by Wilhelmina Okafor",
        "Wilhelmina Okafor",
        "scan",
    ),
    ReadQuery(
        "travel policy in January 2026",
        FilterKind.DATE,
        "in January 2026",
        "updated 2026-01-01 to 2026-01-31",
        "scan",
    ),
)
READ_BY_FINANCE = (
    ReadQuery(
        "travel policy by Mole Hill", FilterKind.PERSON, "by Mole Hill", "Mole Hill", "secret"
    ),
    ReadQuery("travel policy in vault", FilterKind.SOURCE, "in vault", "vault", "secret"),
    ReadQuery("travel policy in Confluence", FilterKind.SOURCE, "in Confluence", "vault", "secret"),
    ReadQuery("travel policy spreadsheet", FilterKind.TYPE, "spreadsheet", "Excel", "secret"),
)
"""What these name, nobody else may see."""


def make_inference(index: Index) -> FilterInference:
    """Read filters from words, for an index to which `CORPUS` was written."""
    return FilterInference(
        names=VisibleNamesCache(index),
        source_kinds=lambda: {"wiki": "folder", "team-chat": "slack", "vault": "confluence"},
        today=lambda: TODAY,
    )


def ask(
    index: Index,
    query: str,
    *tokens: str,
    filters: Filters | None = None,
    infer: frozenset[FilterKind] = EVERY_KIND,
) -> tuple[SearchRequest, Ranking]:
    """Search as the reader of these tokens."""
    service = make_service(index, make_inference(index))
    request = service.request(
        parse_query(query),
        Readers.of(*tokens),
        filters or Filters(),
        service.deadline(),
        infer=infer,
    )
    return request, service.tool(None, DocumentNumbers()).rank(request)


def read(index: Index, query: str, *tokens: str) -> list[tuple[FilterKind, str, str]]:
    """Return kind, words and meaning of the filters that a query is read as."""
    request, _ = ask(index, query, *tokens)
    return [(one.kind, one.words, one.meaning) for one in request.inference.inferred]


def found(ranking: Ranking) -> list[str]:
    """Return document ids, best first."""
    return [one.document_id for one in ranking.sections]


def check_preferred(index: Index, one: ReadQuery, *tokens: str) -> None:
    """What passes the filter stands first, and nothing is lost by it."""
    assert read(index, one.query, *tokens) == [(one.kind, one.words, one.meaning)]
    _, ranking = ask(index, one.query, *tokens)
    assert found(ranking)[0] == one.first
    assert [each.kind for each in ranking.inferred] == [one.kind]
    _, literal = ask(index, one.query, *tokens, infer=EVERY_KIND - {one.kind})
    assert literal.inferred == ()
    assert set(found(literal)) <= set(found(ranking))


def check_hidden(index: Index, one: ReadQuery) -> None:
    """Who may not see what a query names is answered as if it named nothing that there is."""
    seen, ranking = ask(index, one.query)
    unknown, _ = ask(index, "travel policy by Nobody Known")
    assert seen.inference == unknown.inference
    assert ranking.inferred == ()
    assert one.first not in found(ranking)


def check_hidden_dates(index: Index) -> None:
    """A date is read for everybody, and prefers only what the asker may read."""
    query = "travel policy in April 2026"
    for tokens, kinds in (((), []), ((FINANCE,), [FilterKind.DATE])):
        request, ranking = ask(index, query, *tokens)
        assert [each.kind for each in request.inference.inferred] == [FilterKind.DATE]
        assert [each.kind for each in ranking.inferred] == kinds
        assert (found(ranking)[0] == "secret") == bool(kinds)
        assert ("secret" in found(ranking)) == bool(kinds)
