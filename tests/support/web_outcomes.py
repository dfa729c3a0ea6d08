"""What must come out of a page of the local web, compared with what did."""

import pytest

from backend.web_search.results import BlockedPage, PageOutcome, UnreadablePage, WebPage
from tests.support.local_web import LocalWeb
from tests.support.web_pages.page import Expected, Fails, IsBlocked, Reads


def check_outcome(outcome: PageOutcome, expected: Expected, path: str, web: LocalWeb) -> None:
    match expected, outcome:
        case Reads() as reads, WebPage() as read:
            _check_page(read, reads, path, web)
        case IsBlocked(obstacle), BlockedPage() as blocked:
            assert blocked == BlockedPage(web.url(path), obstacle)
        case Fails(says), UnreadablePage() as unreadable:
            assert unreadable.url == web.url(path)
            assert says in unreadable.reason
            assert "127.0.0.1" not in unreadable.reason
            assert "secret" not in unreadable.reason
        case _:
            pytest.fail(f"{path} came out as {outcome}")


def _check_page(read: WebPage, expected: Reads, path: str, web: LocalWeb) -> None:
    assert read.url == web.url(expected.ends_at or path)
    assert read.title == expected.title
    addresses = [link.url for link in read.links]
    everything = "\n".join((read.title, read.text, *addresses, *(one.text for one in read.links)))
    assert [text for text in expected.holds if text not in read.text] == []
    assert [text for text in expected.lacks if text in everything] == []
    assert read.language == expected.language
    if path.startswith("/dated/") or expected.published:
        mark = "about " if read.published and read.published.is_guess else ""
        shown = f"{mark}{read.published.at.isoformat()}" if read.published else None
        assert shown == expected.published
    wanted = [link if link.startswith("http") else web.url(link) for link in expected.links]
    assert [link for link in wanted if link not in addresses] == []
    assert len(addresses) == len(set(addresses)) <= 1_000
