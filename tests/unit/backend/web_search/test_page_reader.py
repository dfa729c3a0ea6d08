"""Every page of the local web, read without a browser."""

from collections.abc import Iterator

import pytest

from backend.web_search.page_fetcher import PageFetcher
from backend.web_search.page_reader import PageReader
from indexing.runtime.deadline import Deadline
from tests.support.local_web import PAGES, LocalWeb, local_web
from tests.support.web_outcomes import check_outcome
from tests.support.web_pages.page import LocalPage

_SOON = 30.0
_SLOW_PAGES = 0.5
_FEWEST = 60


@pytest.fixture(scope="module")
def web() -> Iterator[LocalWeb]:
    with local_web() as served:
        yield served


@pytest.fixture(scope="module")
def reader(web: LocalWeb) -> PageReader:
    return PageReader(PageFetcher(web.allowed, web.resolve))


def test_the_local_web_has_pages_enough() -> None:
    assert len({page.path for page in PAGES}) >= _FEWEST


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path)
def test_each_page_comes_out_as_it_must(page: LocalPage, web: LocalWeb, reader: PageReader) -> None:
    seconds = _SLOW_PAGES if page.path.startswith("/slow/") else _SOON
    outcome = reader.read(web.url(page.path), Deadline.after(seconds))
    check_outcome(outcome, page.plain, page.path, web)
    assert web.internal_requests == []
