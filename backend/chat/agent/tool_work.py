"""What the calls of a step come to: a search of the documents, searches of the web, pages to read."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from backend.chat.agent.concurrent_tasks import TaskFailure
from backend.chat.web_lookup import ReadPage
from backend.search.models import SearchResult
from backend.web_search.results import BlockedPage, Freshness, UnreadablePage
from backend.web_search.web_session import WebFinding


@dataclass(frozen=True, slots=True)
class InternalSearch:
    """One search for all queries of a step."""

    queries: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WebSearching:
    query: str
    withheld: tuple[str, ...] = ()
    """What was taken out of it."""
    freshness: Freshness | None = None
    """How old results may be; None for any age."""


@dataclass(frozen=True, slots=True)
class PageReading:
    url: str


Work: TypeAlias = InternalSearch | WebSearching | PageReading
Outcome: TypeAlias = SearchResult | WebFinding | ReadPage | BlockedPage | UnreadablePage
Outcomes: TypeAlias = Mapping[Work, Outcome | TaskFailure]

_WEIGHTS: Mapping[type[Work], int] = {InternalSearch: 4, PageReading: 2, WebSearching: 1}


def share_room(work: Iterable[Work], room: int) -> dict[Work, int]:
    """Divide the tokens that the results of a step may have."""
    weights = {one: _WEIGHTS[type(one)] for one in work}
    total = sum(weights.values())
    return {one: room * weight // total for one, weight in weights.items()}
