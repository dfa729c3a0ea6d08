"""Pages in parallel, and pages that need a browser."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from backend.web_search.domains import ANY_DOMAIN, DomainRules
from backend.web_search.page_fetcher import PageFetcher
from backend.web_search.page_reader import MOST_AT_ONCE, PageReader
from backend.web_search.rendering import RenderedPage
from backend.web_search.results import BlockedPage, Obstacle, UnreadablePage, WebPage
from connectors.errors import SourceError
from connectors.http_client.response import Response
from indexing.runtime.deadline import CancelToken, Deadline, DeadlineExceededError
from tests.support.local_web import LocalWeb, local_web

_SOON = 30.0
_RENDERED = (
    "<html><body><p>Made by a script, and long enough to be told from nothing.</p></body></html>"
)


@pytest.fixture(scope="module")
def web() -> Iterator[LocalWeb]:
    with local_web() as served:
        yield served


class _MeetingFetcher(PageFetcher):
    """Lets no page pass until so many are fetched at once."""

    def __init__(self, web: LocalWeb, parties: int) -> None:
        super().__init__(web.allowed, web.resolve)
        self._barrier = threading.Barrier(parties)
        self.running = self.most = 0
        self._lock = threading.Lock()

    def fetch(
        self, url: str, deadline: Deadline, domains: DomainRules = ANY_DOMAIN
    ) -> Response | UnreadablePage:
        with self._lock:
            self.running += 1
            self.most = max(self.most, self.running)
        self._barrier.wait(_SOON)
        found = super().fetch(url, deadline, domains)
        with self._lock:
            self.running -= 1
        return found


def test_pages_are_read_at_the_same_time_and_come_back_in_order(web: LocalWeb) -> None:
    fetcher = _MeetingFetcher(web, MOST_AT_ONCE)
    paths = ["/en/pool", "/walls/login-de", "/status/404", "/fr/bibliotheque"] * 2
    urls = [web.url(f"{path}?{number}") for number, path in enumerate(paths)]
    outcomes = PageReader(fetcher).read_all([*urls, urls[0]], Deadline.after(_SOON))
    assert [type(outcome) for outcome in outcomes] == [
        *(WebPage, BlockedPage, UnreadablePage, WebPage) * 2,
        WebPage,
    ]
    assert [outcome.url for outcome in outcomes] == [*urls, urls[0]]
    assert fetcher.most == MOST_AT_ONCE
    assert web.requests.count("/en/pool?0") == 1


def test_no_more_than_some_are_read_at_the_same_time(web: LocalWeb) -> None:
    fetcher = _MeetingFetcher(web, MOST_AT_ONCE)
    urls = [web.url(f"/files/tides.txt?many={number}") for number in range(2 * MOST_AT_ONCE)]
    outcomes = PageReader(fetcher).read_all(urls, Deadline.after(_SOON))
    assert all(isinstance(outcome, WebPage) for outcome in outcomes)
    assert fetcher.most <= MOST_AT_ONCE


def test_a_page_that_never_ends_keeps_no_other_back(web: LocalWeb) -> None:
    urls = [web.url("/slow/drip"), web.url("/files/tides.txt?beside")]
    slow, quick = PageReader(PageFetcher(web.allowed, web.resolve)).read_all(
        urls, Deadline.after(2.0)
    )
    assert slow == UnreadablePage(urls[0], "news.test takes too long to answer.")
    assert isinstance(quick, WebPage)


def test_a_cancelled_turn_waits_for_no_page(web: LocalWeb) -> None:
    """The server ends this one after three seconds: were it waited for, it would be an empty page."""
    token = CancelToken()
    timer = threading.Timer(0.2, token.cancel)
    timer.start()
    [outcome] = PageReader(PageFetcher(web.allowed, web.resolve)).read_all(
        [web.url("/slow/silent")], Deadline.after(60.0, token)
    )
    timer.join()
    assert outcome == UnreadablePage(web.url("/slow/silent"), "news.test takes too long to answer.")


def test_nothing_is_read_of_nothing(web: LocalWeb) -> None:
    reader = PageReader(PageFetcher(web.allowed, web.resolve))
    assert list(reader.read_all([], Deadline.after(_SOON))) == []


@dataclass(frozen=True)
class _Rendered:
    url: str
    html: str


@dataclass(frozen=True)
class _Browser:
    """A browser that always shows the same."""

    html: str = _RENDERED
    fails: Exception | None = None
    opened: list[str] = field(default_factory=list)
    domains: list[DomainRules] = field(default_factory=list)

    def __call__(self, url: str, deadline: Deadline, domains: DomainRules) -> RenderedPage:
        del deadline
        self.domains.append(domains)
        self.opened.append(url)
        if self.fails:
            raise self.fails
        return _Rendered(f"{url}?rendered", self.html)


def _read(web: LocalWeb, path: str, browser: _Browser) -> object:
    reader = PageReader(PageFetcher(web.allowed, web.resolve), browser)
    return reader.read(web.url(path), Deadline.after(_SOON))


def test_a_browser_is_told_which_domains_it_may_read(web: LocalWeb) -> None:
    browser, domains = _Browser(), DomainRules.of((), ("blocked.example",))
    reader = PageReader(PageFetcher(web.allowed, web.resolve), browser)
    assert isinstance(reader.read(web.url("/walls/shell"), Deadline.after(_SOON), domains), WebPage)
    assert browser.domains == [domains]


@pytest.mark.parametrize("path", ["/walls/scripts-en", "/walls/shell", "/scripted/fetched"])
def test_what_scripts_write_is_read_in_a_browser(path: str, web: LocalWeb) -> None:
    browser = _Browser()
    outcome = _read(web, path, browser)
    assert isinstance(outcome, WebPage)
    assert outcome.url == web.url(f"{path}?rendered")
    assert "Made by a script" in outcome.text
    assert browser.opened == [web.url(path)]


@pytest.mark.parametrize(
    "path", ["/en/pool", "/plain/short", "/walls/captcha-en", "/walls/empty", "/files/tides.txt"]
)
def test_no_browser_is_opened_for_what_needs_none(path: str, web: LocalWeb) -> None:
    browser = _Browser()
    _read(web, path, browser)
    assert browser.opened == []


def test_what_a_browser_shows_is_judged_again(web: LocalWeb) -> None:
    wall = "<html><body><p>You must log in to continue.</p></body></html>"
    outcome = _read(web, "/walls/shell", _Browser(wall))
    assert outcome == BlockedPage(web.url("/walls/shell"), Obstacle.LOGIN)


@pytest.mark.parametrize("error", [SourceError("no browser"), DeadlineExceededError("late")])
def test_without_a_browser_the_page_is_what_it_was(error: Exception, web: LocalWeb) -> None:
    outcome = _read(web, "/walls/shell", _Browser(fails=error))
    assert outcome == BlockedPage(web.url("/walls/shell"), Obstacle.SCRIPTS)
