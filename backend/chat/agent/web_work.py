"""Search the web and read its pages for a step of the model; each runs in a thread of its own."""

from collections.abc import Generator
from dataclasses import dataclass

from backend.chat.agent.tool_work import PageReading, WebSearching
from backend.chat.events import ChatEvent, PagesRead, WebSearched
from backend.chat.web_lookup import SNIPPETS, TOKEN_CHARACTERS, ReadPage, join_snippets
from backend.search.sections import to_json
from backend.web_search.page_snippets import SnippetBudget
from backend.web_search.result_text import MAX_RESULTS
from backend.web_search.results import BlockedPage, UnreadablePage, WebPage
from backend.web_search.web_session import WebFinding, WebSession
from indexing.embedding.token_counting import CountTokens
from indexing.runtime.deadline import Deadline

MAX_PAGE_CHARACTERS = 12_000
MAX_CUTS = 3
"""Of a page whose text has more tokens than characters let expect."""
CONTENT_SHARE = 0.7
"""Of the room of a page; the rest is for its title, its address and its links."""


@dataclass(frozen=True, slots=True)
class WebWorker:
    """Thread-safe."""

    session: WebSession
    question: str
    """What pages are read for: the asker's message."""
    count_tokens: CountTokens
    deadline: Deadline

    def search(self, work: WebSearching) -> Generator[ChatEvent, None, WebFinding]:
        finding = self.session.find(work.query, MAX_RESULTS, self.deadline, work.freshness)
        yield WebSearched(finding, work.withheld)
        return finding

    def read(
        self, work: PageReading, room: int
    ) -> Generator[ChatEvent, None, ReadPage | BlockedPage | UnreadablePage]:
        """Read a page, and choose what of it fits into so many tokens."""
        [outcome] = self.session.read([work.url], self.deadline)
        yield PagesRead((outcome,))
        if not isinstance(outcome, WebPage):
            return outcome
        return ReadPage(outcome, self._choose_snippets(outcome, int(room * CONTENT_SHARE)))

    def _choose_snippets(self, page: WebPage, room: int) -> tuple[str, ...]:
        characters = min(MAX_PAGE_CHARACTERS, room * TOKEN_CHARACTERS)
        for _ in range(MAX_CUTS):
            if characters < 1:
                break
            budget = SnippetBudget(characters=characters, snippets=SNIPPETS)
            chosen = self.session.choose_snippets(page, self.question, budget, self.deadline)
            cost = self.count_tokens(to_json(join_snippets(chosen)))
            if cost <= room:
                return chosen
            characters = characters * room // (cost + cost // 8)
        return ()
