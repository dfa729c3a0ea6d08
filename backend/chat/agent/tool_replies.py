"""The texts that say to the model what its calls came to, and what of it can be cited.

Results of searches of the web are lines that no text of theirs can begin; documents and pages are JSON, in which none can end
its own quotation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from backend.chat import prompts
from backend.chat.agent.known_pages import KnownPages, ListedLink, RefusedPage
from backend.chat.citations.citation_processor import CitedDocument
from backend.chat.web_lookup import ReadPage, add_date, cite_page, join_snippets
from backend.search.models import SearchResult
from backend.search.sections import to_json
from backend.web_search.page_descriptions import describe_date, describe_failure
from backend.web_search.result_text import (
    CITATION_RULES,
    HOW_TO_CITE,
    MAX_RESULTS,
    MAX_TITLE_CHARACTERS,
    NumberedResult,
    format_results,
    frame_sources,
    shorten_summary,
)
from backend.web_search.results import BlockedPage, UnreadablePage, WebResult
from backend.web_search.web_session import WebFinding
from indexing.embedding.token_counting import CountTokens

FRAME = frame_sources(MAX_RESULTS)
"""What the results of a search stand in."""
MAX_LINK_CHARACTERS = 300
"""Of an address that is listed with a page."""


@dataclass(frozen=True, slots=True)
class ToolReply:
    """What the model is given about a call.

    Attributes:
        documents: Pages of the web that it was shown, by their numbers.
        shown: What it was shown of each.
    """

    text: str
    documents: Mapping[int, CitedDocument] = field(default_factory=lambda: MappingProxyType({}))
    shown: tuple[tuple[int, str], ...] = ()


def reply_to_search(result: SearchResult, note: str) -> ToolReply:
    """Tell what the documents say, as JSON between how to cite and the rules."""
    if not result.docs:
        found = result.for_model or prompts.NOTHING_FITS
        return ToolReply("\n\n".join(filter(None, (found, note))))
    count = len({doc.number for doc in result.docs})
    return ToolReply(frame_sources(count, result.for_model, note))


@dataclass(frozen=True, slots=True)
class OpenedPage:
    """A page that a call has named, and what came of it."""

    url: str
    outcome: ReadPage | BlockedPage | UnreadablePage | str
    """A text says why there is nothing to show."""
    room: int = 0
    """The tokens that it may have."""


@dataclass(frozen=True, slots=True)
class WebReplies:
    """Writes replies to calls of the tools of the web; what they show can be opened and cited from then on."""

    pages: KnownPages
    question: str
    """By which links of pages are chosen."""
    count_tokens: CountTokens

    def format_search_reply(self, finding: WebFinding, note: str, room: int) -> ToolReply:
        """Write the reply to a web search, with as many results as fit into `room` tokens."""
        if finding.problem:
            return ToolReply(
                "\n".join(filter(None, (finding.problem, prompts.WEB_UNAVAILABLE, note)))
            )
        numbered = [
            NumberedResult(self.pages.add_result(result.url), result)
            for result in finding.results[:MAX_RESULTS]
        ]
        while numbered and self.count_tokens(format_results(numbered, note)) > room:
            numbered.pop()
        if finding.results and not numbered:
            return ToolReply(prompts.NOTHING_FITS)
        return ToolReply(
            format_results(numbered, note),
            {one.number: self._cite_result(one.result) for one in numbered},
            tuple((one.number, _describe_result(one.result)) for one in numbered),
        )

    def format_pages_reply(
        self, opened: Sequence[OpenedPage | RefusedPage], note: str
    ) -> ToolReply:
        """Write the reply with the text of pages, which names those that were not read or not opened."""
        replies = [self._tell_page(one) for one in opened]
        listed = f'{{"pages": [{", ".join(one.text for one in replies)}]}}'
        documents = {number: page for one in replies for number, page in one.documents.items()}
        parts = (HOW_TO_CITE, listed, note, CITATION_RULES) if documents else (listed, note)
        shown = tuple(shown for one in replies for shown in one.shown)
        return ToolReply("\n\n".join(filter(None, parts)), documents, shown)

    def _tell_page(self, opened: OpenedPage | RefusedPage) -> ToolReply:
        match opened:
            case RefusedPage(reference, advice):
                asked = reference[:MAX_LINK_CHARACTERS]
                return ToolReply(to_json({"asked": asked, "not_opened": advice}))
            case OpenedPage(url, ReadPage() as read, room):
                return self._show_page(url, read, room)
            case OpenedPage(url, BlockedPage() | UnreadablePage() as failed):
                return ToolReply(to_json({"address": url, "not_read": describe_failure(failed)}))
            case OpenedPage(url, reason):
                return ToolReply(to_json({"address": url, "not_read": reason}))

    def _show_page(self, url: str, read: ReadPage, room: int) -> ToolReply:
        page, content = read.page, join_snippets(read.snippets)
        number = self.pages.add_page(url, page)
        title = shorten_summary(page.title, MAX_TITLE_CHARACTERS) or url
        date = describe_date(page.published) if page.published else ""
        fields = {"page": number, "title": title, "address": url, "published": date}
        shown = {name: value for name, value in fields.items() if value} | {"content": content}
        links = self.pages.list_links(url, page, self.question)
        text = self._fit_links(shown, links, room)
        if not content or text is None:
            return ToolReply(to_json({"address": url, "not_read": prompts.NOTHING_FITS}))
        document = cite_page(self.pages.identify(url), title, url)
        said = f"({date})\n{content}" if date else content
        return ToolReply(text, {number: document}, ((number, said),))

    def _fit_links(
        self, fields: Mapping[str, object], links: Sequence[ListedLink], room: int
    ) -> str | None:
        """Describe a page with as many of its links as fit; None where it does not fit without any."""
        described = [
            {"open": one.label, "text": one.link.text, "address": one.link.url}
            for one in links
            if len(one.link.url) <= MAX_LINK_CHARACTERS
        ]
        for count in range(len(described), -1, -1):
            listed = {"links": described[:count]} if count else {}
            text = to_json({**fields, **listed})
            if self.count_tokens(text) <= room:
                return text
        return None

    def _cite_result(self, result: WebResult) -> CitedDocument:
        return cite_page(self.pages.identify(result.url), result.title, result.url)


def _describe_result(result: WebResult) -> str:
    return add_date(result, shorten_summary(result.summary) or result.title)
