"""Every page of the local web, read with Chromium where a page needs it."""

import socket
from collections.abc import Iterator

import pytest

from backend.web_search.browser.browser_reader import BrowserLimits, BrowserReader, RenderedPage
from backend.web_search.domains import DomainRules
from backend.web_search.page_fetcher import PageFetcher
from backend.web_search.page_reader import PageReader
from indexing.runtime.deadline import Deadline
from tests.support.browser import CHROMIUM
from tests.support.fake_internet import PUBLIC
from tests.support.local_web import HOST, PAGES, LocalWeb, local_web
from tests.support.web_outcomes import check_outcome
from tests.support.web_pages.page import LocalPage

_SOON = 60.0
_SLOW_PAGES = 0.5


@pytest.fixture(scope="module")
def web() -> Iterator[LocalWeb]:
    with local_web() as served:
        yield served


@pytest.fixture(scope="module")
def browser(web: LocalWeb) -> Iterator[BrowserReader]:
    """A browser for which the local web is on port 80 of a public address."""

    def resolve(host: str, port: int) -> list[str]:
        return [PUBLIC] if host == HOST else web.resolve(host, port)

    def dial(address: str, port: int, seconds: float) -> socket.socket:
        assert (address, port) == (PUBLIC, 80)
        return socket.create_connection(("127.0.0.1", web.port), timeout=seconds)

    with BrowserReader(CHROMIUM, BrowserLimits(), resolve, dial) as browser:
        yield browser


@pytest.fixture(scope="module")
def reader(web: LocalWeb, browser: BrowserReader) -> PageReader:
    def render(url: str, deadline: Deadline, domains: DomainRules) -> RenderedPage:
        page = browser.render(url.replace(web.origin, f"http://{HOST}"), deadline, domains)
        shown = page.url.replace(f"http://{HOST}", web.origin)
        return RenderedPage(shown, page.html, page.status)

    return PageReader(PageFetcher(web.allowed, web.resolve), render)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path)
def test_each_page_comes_out_as_it_must(page: LocalPage, web: LocalWeb, reader: PageReader) -> None:
    seconds = _SLOW_PAGES if page.path.startswith("/slow/") else _SOON
    outcome = reader.read(web.url(page.path), Deadline.after(seconds))
    check_outcome(outcome, page.in_browser, page.path, web)
    assert web.internal_requests == []
