"""Reading pages of the open web: fetched, judged, and turned into text; in a browser where scripts write it."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, InvalidStateError, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from backend.web_search.domains import ANY_DOMAIN, DomainRules
from backend.web_search.file_content import ServedFile, read_file
from backend.web_search.isolated_page import read_page
from backend.web_search.obstacles import find_obstacle, find_refusal
from backend.web_search.page_content import PageContent
from backend.web_search.page_fetcher import PageFetcher, describe_delay, get_host
from backend.web_search.rendering import PageRenderer, RenderedPage
from backend.web_search.results import (
    BlockedPage,
    Obstacle,
    PageLink,
    PageOutcome,
    UnreadablePage,
    WebPage,
)
from connectors.errors import QuarryError
from connectors.extraction.registry import HTML
from connectors.extraction.result import ExtractionError
from connectors.extraction.web_page import decode_page, detect_served_type
from connectors.http_client.request import MEBIBYTE
from connectors.http_client.response import Response
from connectors.text_cleaning import remove_invisible
from indexing.runtime.deadline import Deadline, DeadlineExceededError

MOST_AT_ONCE = 8
"""Pages that are read at the same time for one caller."""
_LARGEST_PAGE = 5 * MEBIBYTE
_MOST_REFRESHES = 3


@dataclass(frozen=True, slots=True)
class _Opened:
    """A response that is a page or a file, and what it says."""

    url: str
    content: PageContent


class PageReader:
    """Reads pages of the public web. Thread-safe."""

    def __init__(self, fetcher: PageFetcher, render: PageRenderer | None = None) -> None:
        """Prepare to read pages; `render` opens those whose text scripts write, which without it are blocked pages."""
        self._fetcher = fetcher
        self._render = render

    def read(self, url: str, deadline: Deadline, domains: DomainRules = ANY_DOMAIN) -> PageOutcome:
        """Read one page, following redirects within the domains. Whatever goes wrong is an outcome too."""
        opened = self._open(url, deadline, domains)
        if not isinstance(opened, _Opened):
            return opened
        if self._render is not None and _may_need_scripts(opened.content):
            opened = _render(partial(self._render, domains=domains), opened, deadline)
        return _judge(url, opened)

    def read_all(
        self, urls: Iterable[str], deadline: Deadline, domains: DomainRules = ANY_DOMAIN
    ) -> Sequence[PageOutcome]:
        """Read pages in parallel, each address once; the outcomes are in the order of the addresses."""
        wanted = list(urls)
        if not wanted:
            return ()
        pool = ThreadPoolExecutor(min(MOST_AT_ONCE, len(set(wanted))), "web-page")
        try:
            reading = {
                url: pool.submit(self.read, url, deadline, domains) for url in dict.fromkeys(wanted)
            }
            _wait_until_read(reading.values(), deadline)
        finally:
            # Each ends by itself soon after the deadline.
            pool.shutdown(wait=False, cancel_futures=True)
        return [_take(reading[url], url) for url in wanted]

    def _open(
        self, url: str, deadline: Deadline, domains: DomainRules
    ) -> _Opened | BlockedPage | UnreadablePage:
        """Fetch a page, and follow where it sends a browser by itself."""
        visited, target = {url}, url
        while True:
            response = self._fetcher.fetch(target, deadline, domains)
            if isinstance(response, UnreadablePage):
                return replace(response, url=url)
            opened = _open_response(url, response, deadline)
            if not isinstance(opened, _Opened):
                return opened
            moved = opened.content.refresh
            visited.add(opened.url)
            if moved is None or moved in visited or len(visited) > _MOST_REFRESHES + 1:
                return opened
            if not _is_suspected(opened.content):
                return opened
            visited.add(moved)
            target = moved


def _open_response(
    url: str, response: Response, deadline: Deadline
) -> _Opened | BlockedPage | UnreadablePage:
    if response.status >= 300:
        return _describe_status(url, response, deadline)
    try:
        return _Opened(response.url, _read_content(response, deadline))
    except ExtractionError as error:
        return UnreadablePage(url, f"What {get_host(url)} sent cannot be read: {error}.")


def _read_content(response: Response, deadline: Deadline) -> PageContent:
    """Read what a response holds. Raises ExtractionError: it is no text, too large, or broken."""
    body, url = response.body, response.url
    media_type = detect_served_type(url, response.media_type, body)
    if media_type == HTML or not body:
        if len(body) > _LARGEST_PAGE:
            raise ExtractionError(f"the page is larger than {_LARGEST_PAGE // MEBIBYTE} MB")
        page = decode_page(body, response.charset)
        return read_page(page, url, response.headers.get("content-language"), deadline)
    return read_file(ServedFile(url, media_type, response.charset, body), deadline)


def _describe_status(
    url: str, response: Response, deadline: Deadline
) -> BlockedPage | UnreadablePage:
    host, status = get_host(url), response.status
    if response.not_found:
        return UnreadablePage(url, f"There is no page at this address of {host} (status {status}).")
    if obstacle := _find_refusal(response, deadline):
        return BlockedPage(url, obstacle)
    match status:
        case 403 | 451:
            reason = f"{host} refuses to show this page (status {status})."
        case 429:
            reason = f"{host} has had too many requests, and shows no page now (status 429)."
        case _ if status >= 500:
            reason = f"{host} reports an error of its own (status {status})."
        case _:
            reason = f"{host} does not send this page (status {status})."
    return UnreadablePage(url, reason)


def _find_refusal(response: Response, deadline: Deadline) -> Obstacle | None:
    if response.status == 401:
        return Obstacle.LOGIN
    try:
        signs = _read_content(response, deadline).signs
    except ExtractionError:
        return None
    return find_refusal(response.headers, signs) if signs else None


def _render(
    render: Callable[[str, Deadline], RenderedPage], plain: _Opened, deadline: Deadline
) -> _Opened:
    """Return the page as a browser shows it, or as it was where that says no more."""
    try:
        rendered = render(plain.url, deadline)
        content = read_page(rendered.html, rendered.url, None, deadline)
    except (QuarryError, DeadlineExceededError):
        return plain
    if plain.content.text and not content.text:
        return plain
    # Its scripts have run, so what is missing now does not wait for them.
    signs = content.signs and replace(content.signs, has_scripts=False)
    return _Opened(rendered.url, replace(content, signs=signs))


def _may_need_scripts(content: PageContent) -> bool:
    """Return whether a browser may show more: little text, and scripts."""
    signs = content.signs
    if signs is None or not signs.is_suspected:
        return False
    obstacle = find_obstacle(signs)
    return obstacle is Obstacle.SCRIPTS or (obstacle is None and signs.is_short and signs.has_scripts)  # fmt: skip


def _is_suspected(content: PageContent) -> bool:
    return content.signs is not None and content.signs.is_suspected


def _judge(url: str, opened: _Opened) -> PageOutcome:
    content = opened.content
    obstacle = find_obstacle(content.signs) if content.signs else None
    if obstacle is not None:
        return BlockedPage(url, obstacle)
    return WebPage(
        url=opened.url,
        title=remove_invisible(content.title),
        text=remove_invisible(content.text),
        published=content.published,
        language=content.language,
        links=tuple(PageLink(one.url, remove_invisible(one.text)) for one in content.links),
    )


def _wait_until_read(reading: Iterable[Future[PageOutcome]], deadline: Deadline) -> None:
    """Wait until all are read, or until the deadline ends or is cancelled."""
    expired: Future[Any] = Future()
    pending: set[Future[Any]] = set(reading)
    with deadline.on_expiry(partial(_expire, expired)):
        while pending and not expired.done():
            done, _ = wait({*pending, expired}, return_when=FIRST_COMPLETED)
            pending -= done


def _expire(expired: Future[Any]) -> None:
    with suppress(InvalidStateError):
        expired.set_result(None)


def _take(reading: Future[PageOutcome], url: str) -> PageOutcome:
    if reading.done() and not reading.cancelled():
        return reading.result()
    return UnreadablePage(url, describe_delay(url))
