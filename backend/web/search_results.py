"""Search results as the page shows them: with marked words, and the reasons for their rank."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from backend.search import media_type_labels
from backend.search.models import (
    EVERY_KIND,
    DocumentNumbers,
    SearchRequest,
    Successor,
)
from backend.search.no_results import Suggestion, suggest_queries
from backend.search.query_syntax import ParsedQuery, parse_query
from backend.search.search_service import Grouping, SearchService, SectionGroup, find_grouped
from backend.search.search_tool import Ranking, SearchTool
from backend.web import highlighting, search_url, urls
from backend.web.highlighting import Piece, QueryWords
from backend.web.icons import document_icon
from backend.web.sanitizing import shorten
from backend.web.search_url import Address
from connectors.access import Readers
from connectors.text_cleaning import replace_controls
from indexing.chunking.chunk import Chunk
from indexing.index.protocols import Evidence, RankReason
from indexing.runtime.deadline import Deadline

LONGEST_TITLE = 200
_ORDINALS = {1: "st", 2: "nd", 3: "rd"}
_LEGS = {"vector": "by meaning", "keyword": "by words", "exact": "by an exact match"}
_VARIANTS = {
    "original": "your words",
    "keyword": "key words",
    "semantic": "rephrased",
    "llm": "the model's words",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    href: str
    excerpt: tuple[Piece, ...]
    headings: str
    page: int | None


@dataclass(frozen=True, slots=True)
class Link:
    text: str
    href: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A document by its best passage."""

    best: Passage
    further: tuple[Passage, ...]
    """The other passages of the document that were found, best first."""
    title: tuple[Piece, ...]
    source: str
    path: str
    """Where it lies within its source; empty where that says no more than the title."""
    format: str
    icon: str
    updated_at: datetime | None
    superseded_by: Link | None
    why: tuple[str, ...]
    """Sentences, the strongest reason first."""


@dataclass(frozen=True, slots=True)
class Found:
    results: tuple[Result, ...]
    seconds: float
    more: bool
    """There may be more results than were requested."""
    query: ParsedQuery
    request: SearchRequest
    ranking: Ranking
    tool: SearchTool
    """What has searched, to search under other filters."""

    @property
    def question_url(self) -> str:
        """The address that asks the query as a question, its filters included."""
        text = self.query.text or self.query.query
        return search_url.of_filters(text, self.request.filters).question_url

    @property
    def documents(self) -> int:
        """How many there are in the ranking, shown or not."""
        return len({hit.chunk.document_id for hit in self.ranking.hits})

    @property
    def passages(self) -> int:
        return sum(1 + len(result.further) for result in self.results)

    @property
    def suggestions(self) -> tuple[Suggestion, ...]:
        """Where nothing was found: what else to search."""
        return suggest_queries(self.query)


def search(service: SearchService, address: Address, readers: Readers, deadline: Deadline) -> Found:
    """Return the best documents that the asker may read, each by its passages.

    Raises:
        DeadlineExceededError, TemporarilyUnavailableError, ActionRequiredError: the search did not answer.
    """
    began = time.perf_counter()
    parsed = parse_query(address.text)
    infer = EVERY_KIND - address.literal
    request = service.request(parsed, readers, address.filters(), deadline, address.spelling, infer)
    tool = service.tool(None, DocumentNumbers())
    found = find_grouped(tool, request, address.limit, Grouping.DOCUMENT)
    wanted = QueryWords(request.message)
    successors = found.ranking.successors
    results = tuple(
        _result(group, wanted, address.text, successors.get(group.best.document_id))
        for group in found.groups
    )
    return Found(
        results=results,
        seconds=time.perf_counter() - began,
        more=found.more,
        query=parsed,
        request=request,
        ranking=found.ranking,
        tool=tool,
    )


def _result(
    group: SectionGroup, wanted: QueryWords, query: str, successor: Successor | None
) -> Result:
    best, chunk = group.best.best, group.best.best.chunk
    return Result(
        best=_passage(chunk, wanted, query),
        further=tuple(_passage(one.best.chunk, wanted, query) for one in group.further),
        title=highlighting.pieces(shorten(chunk.title, LONGEST_TITLE) or "Untitled", wanted),
        source=replace_controls(chunk.source),
        path=shorten(_path(chunk), LONGEST_TITLE),
        format=media_type_labels.display_name(chunk.media_type),
        icon=document_icon(chunk.media_type),
        updated_at=chunk.updated_at,
        superseded_by=_link(successor) if successor else None,
        why=(*_reasons(best.why), *_evidence(best.evidence)),
    )


def _link(successor: Successor) -> Link:
    title = shorten(successor.title, LONGEST_TITLE) or "Untitled"
    return Link(title, urls.document(successor.document_id))


def _passage(chunk: Chunk, wanted: QueryWords, query: str) -> Passage:
    text = replace_controls(highlighting.readable_text(chunk.text, chunk.media_type))
    return Passage(
        href=urls.document(chunk.document_id, chunk.section, chunk.span, query),
        excerpt=highlighting.excerpt(text, wanted),
        headings=_headings(chunk),
        page=chunk.page,
    )


def _path(chunk: Chunk) -> str:
    return next((tag.partition("=")[2] for tag in chunk.tags if tag.startswith("path=")), "")


def _headings(chunk: Chunk) -> str:
    """Return the headings above the passage, less one that repeats the title."""
    path = [shorten(heading, LONGEST_TITLE) for heading in chunk.heading_path]
    return " › ".join(path[1:] if path[:1] == [shorten(chunk.title, LONGEST_TITLE)] else path)


def _reasons(why: Sequence[RankReason]) -> list[str]:
    """Return one sentence a query: where the passage stood in each leg, the best rank first."""
    ranks: dict[str, dict[str, None]] = {}
    names: dict[str, dict[str, None]] = {}
    for one in sorted(why, key=lambda one: one.rank):
        ranks.setdefault(one.query, {})[f"{_ordinal(one.rank)} {_LEGS[one.leg]}"] = None
        names.setdefault(one.query, {})[_VARIANTS[one.variant]] = None
    return [
        f"“{shorten(query, 80)}” ({', '.join(names[query])}): {', '.join(places)}"
        for query, places in ranks.items()
    ]


def _evidence(evidence: Evidence) -> list[str]:
    sentences = []
    if evidence.exact:
        sentences.append("Exact match: a quoted phrase or a code from the query")
    if evidence.word_share:
        sentences.append(f"Contains {evidence.word_share:.0%} of the query's words")
    figures = [("cosine", evidence.cosine, 2), ("BM25", evidence.bm25, 1)]
    shown = [f"{name} {value:.{digits}f}" for name, value, digits in figures if value is not None]
    return [*sentences, *([", ".join(shown)] if shown else [])]


def _ordinal(number: int) -> str:
    teens = number % 100 in (11, 12, 13)
    return f"{number}{'th' if teens else _ORDINALS.get(number % 10, 'th')}"
