"""Crawling a site from its start pages along links, or along its sitemaps; pages of low depth first."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from lxml.html import HtmlElement

from connectors.closing import Closing
from connectors.connector import Checkpoint
from connectors.errors import SourceError, TemporarilyUnavailableError
from connectors.extraction import registry
from connectors.extraction.result import ExtractionError
from connectors.extraction.web_page import decode_page, parse_html
from connectors.http_client.response import Response, ResponseError, ServiceUnavailableError
from connectors.sources.website.fetcher import (
    NO_HEADERS,
    FetchedPage,
    Fetcher,
    FetchFailed,
    FetchResult,
    NotFound,
    NotModified,
)
from connectors.sources.website.frontier import Frontier, PendingUrl
from connectors.sources.website.page_document import detect_media_type, may_contain_text
from connectors.sources.website.page_links import PageHead, parse_file_head, parse_head
from connectors.sources.website.settings import Crawl, Sitemap, WebsiteSettings
from connectors.sources.website.sitemaps import list_pages

BATCH_SIZE = 200
_MAX_FAILURES = 10
"""After so many failures in a row, the start page shows whether the site is still available."""
_RETRY_AFTER = timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentPage:
    """A page or a file that becomes a document."""

    url: str
    response: Response
    media_type: str
    last_modified: str | None
    """As a sitemap states it."""
    is_leaf: bool
    """It has no links."""
    html: str = ""
    root: HtmlElement | None = None


@dataclass(frozen=True, slots=True)
class UnchangedPage:
    url: str


@dataclass(frozen=True, slots=True)
class RemovedPage:
    """There is no document at the URL, or no longer."""

    url: str


@dataclass(frozen=True, slots=True)
class UnreadablePage:
    url: str
    reason: str


CrawlResult: TypeAlias = DocumentPage | UnchangedPage | RemovedPage | UnreadablePage


class Crawler(Closing):
    """Its memory does not grow with the site."""

    def __init__(
        self, fetcher: Fetcher, settings: WebsiteSettings, since: Checkpoint | None = None
    ) -> None:
        """Begin a crawl, or go on from `since`, where an earlier crawl ended."""
        self._fetcher = fetcher
        self._settings = settings
        self._scope = fetcher.scope
        self._frontier = Frontier(settings.pages)
        self.is_started = since is not None and self._frontier.restore(since.value)
        """Whether all start pages, or all pages of the sitemaps, are known."""
        self._failures = 0

    def close(self) -> None:
        self._frontier.close()

    def batches(self) -> Iterator[list[PendingUrl]]:
        """Yield the URLs to visit; a batch must be visited before the next one is taken.

        Raises:
            TemporarilyUnavailableError: a sitemap cannot be read now.
            ActionRequiredError: a sitemap cannot be read at all.
        """
        if not self.is_started:
            self._add_start()
            self.is_started = True
        while batch := self._frontier.next_batch(BATCH_SIZE):
            yield batch

    def _add_start(self) -> None:
        start_urls = self._settings.start_urls()
        match self._settings.read:
            case Crawl():
                self._frontier.add(PendingUrl(url, 0) for url in start_urls)
            case Sitemap():
                pages = list_pages(self._fetcher, start_urls)
                self._frontier.add(page for page in pages if self._scope.includes(page.url))

    def to_checkpoint(self) -> Checkpoint:
        """Return from where another crawl goes on: all known URLs, visited or not."""
        return Checkpoint(self._frontier.dump())

    @property
    def known_count(self) -> int:
        """The number of known URLs."""
        return self._frontier.count

    @property
    def first_skipped(self) -> str | None:
        """The first URL beyond the maximum number of pages."""
        return self._frontier.first_skipped

    def follows_links(self, pending: PendingUrl) -> bool:
        match self._settings.read:
            case Crawl(depth=depth):
                return pending.depth < depth
            case Sitemap():
                return False

    def visit(
        self, pending: PendingUrl, headers: Mapping[str, str] = NO_HEADERS
    ) -> Iterator[CrawlResult]:
        """Fetch a URL; yield nothing if it was visited before, as the target of a redirect.

        Raises:
            TemporarilyUnavailableError: the site limits requests, or is no longer available.
            ActionRequiredError: a start page cannot be read, or the credential is not accepted.
        """
        if not self._frontier.claim(pending.url):
            return
        try:
            result = self._fetch(pending, headers)
        except TemporarilyUnavailableError:
            self._frontier.release(pending.url)
            raise
        match result:
            case FetchedPage(url=url):
                if url != pending.url:
                    yield RemovedPage(pending.url)
                    if not self._frontier.claim(url):
                        return
                yield self._process(pending, result)
            case NotModified(url=url):
                yield UnchangedPage(url)
            case NotFound():
                yield RemovedPage(pending.url)
            case FetchFailed(error):
                yield UnreadablePage(pending.url, str(error))

    def _fetch(self, pending: PendingUrl, headers: Mapping[str, str]) -> FetchResult:
        result = self._fetcher.fetch_page(pending.url, headers)
        if self._is_start_page(pending):
            check_start_page(pending.url, result)
        self._count_failures(result)
        return result

    def _is_start_page(self, pending: PendingUrl) -> bool:
        is_crawl = isinstance(self._settings.read, Crawl)
        return is_crawl and pending.url in self._settings.start_urls()

    def _count_failures(self, result: FetchResult) -> None:
        """End the run if the site became unavailable, rather than request each of its pages."""
        is_down = isinstance(result, FetchFailed) and isinstance(
            result.error, ServiceUnavailableError
        )
        self._failures = self._failures + 1 if is_down else 0
        if self._failures < _MAX_FAILURES:
            return
        self._failures = 0
        start_url = self._settings.start_urls()[0]
        start_result = self._fetcher.fetch_page(start_url)
        if isinstance(start_result, FetchFailed):
            check_start_page(start_url, start_result)

    def _process(self, pending: PendingUrl, page: FetchedPage) -> CrawlResult:
        result, head = parse_page(page, pending.last_modified)
        if self.follows_links(pending):
            links = filter(self._scope.includes, head.links)
            self._frontier.add(PendingUrl(link, pending.depth + 1) for link in links)
        if self._is_duplicate(pending, page.url, head):
            return RemovedPage(page.url)
        is_left_out = head.noindex or not self._scope.includes(page.url)
        return RemovedPage(page.url) if is_left_out else result

    def _is_duplicate(self, pending: PendingUrl, url: str, head: PageHead) -> bool:
        """Return whether the page names another one as canonical; that one is then added to the frontier."""
        canonical = head.canonical
        if canonical is None or canonical in (url, pending.url):
            return False
        if not self._scope.includes(canonical):
            return False
        # Two pages that name each other must not both be left out.
        if self._frontier.is_canonical(url) or self._frontier.is_canonical(pending.url):
            return False
        self._frontier.add_canonical(canonical, pending.depth)
        return True


def parse_page(page: FetchedPage, last_modified: str | None = None) -> tuple[CrawlResult, PageHead]:
    """Decide whether a page becomes a document, and read its links and robots tags."""
    url, response = page.url, page.response
    media_type = detect_media_type(response)
    html, root = "", None
    head = parse_file_head(response.headers)
    if media_type == registry.HTML:
        try:
            html = decode_page(response.body, response.charset)
            root = parse_html(html)
        except ExtractionError as error:
            return UnreadablePage(url, str(error)), PageHead()
        head = head if root is None else parse_head(root, url, response.headers)
    elif not may_contain_text(media_type):
        return RemovedPage(url), head
    document_page = DocumentPage(
        url=url,
        response=response,
        media_type=media_type,
        last_modified=last_modified,
        is_leaf=not head.links,
        html=html,
        root=root,
    )
    return document_page, head


def check_start_page(url: str, result: FetchResult) -> None:
    """Raise an error if a start page was not read: the site would look empty.

    Raises:
        TemporarilyUnavailableError: the page is not available now.
        ActionRequiredError: it does not exist, or must not be read.
    """
    match result:
        case NotFound(reason):
            raise SourceError(f"the start page {url} cannot be read: {reason}")
        case FetchFailed(ResponseError() as error):
            raise TemporarilyUnavailableError(
                f"the start page {url} cannot be read: {error}", _RETRY_AFTER
            )
        case FetchFailed(error):
            raise error
        case _:
            return
