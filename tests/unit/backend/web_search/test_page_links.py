"""Links of pages and entries of feeds."""

import pytest

from backend.web_search.feeds import read_feed
from backend.web_search.page_links import collect_links, find_refresh, resolve_link
from backend.web_search.results import PageLink
from connectors.extraction.web_page import parse_html

_URL = "https://news.test/a/page?x=1"


@pytest.mark.parametrize(
    ("link", "address"),
    [
        ("other", "https://news.test/a/other"),
        (" ../up#part ", "https://news.test/up"),
        ("//else.test/x", "https://else.test/x"),
        ("?x=2", "https://news.test/a/page?x=2"),
        ("HTTP://else.test/", "http://else.test/"),
        ("", None),
        ("mailto:a@else.test", None),
        ("javascript:void(0)", None),
        ("data:text/html,x", None),
        ("file:///etc/passwd", None),
        ("http://ann:secret@else.test/", None),
        ("http://", None),
        ("http://[", None),
        (f"/{'x' * 3_000}", None),
    ],
)
def test_a_link_is_the_address_of_a_web_page_or_none(link: str, address: str | None) -> None:
    assert resolve_link(_URL, link) == address


def test_each_address_is_there_once_with_the_first_words_that_lead_there() -> None:
    root = parse_html(
        "<body><a href='/b#1'><img></a><a href='/b#2'>To <b>B</b></a><a href='/b'>again</a>"
        "<a href='page?x=1#top'>up</a><a rel='nofollow' href='/c'>C</a></body>"
    )
    assert root is not None
    assert collect_links(root, _URL) == (
        PageLink("https://news.test/b", "To B"),
        PageLink("https://news.test/c", "C"),
    )


@pytest.mark.parametrize(
    ("content", "target"),
    [
        ("0;url=/next", "https://news.test/next"),
        ("3; URL = 'next'", "https://news.test/a/next"),
        ("0, /next", "https://news.test/next"),
        ("11; url=/next", None),
        ("5", None),
        ("0; url=javascript:alert(1)", None),
        ("9" * 5_000 + "; url=/next", None),
    ],
)
def test_where_a_page_sends_a_browser(content: str, target: str | None) -> None:
    root = parse_html(f'<head><META HTTP-EQUIV="Refresh" content="{content}"></head><body>x</body>')
    assert root is not None
    assert find_refresh(root, _URL) == target


def test_entities_of_a_feed_are_not_looked_up() -> None:
    feed = b'<!DOCTYPE rss [<!ENTITY a "lol"><!ENTITY b "&a;&a;">]><rss><channel><title>T &b; t</title></channel></rss>'
    found = read_feed(feed, _URL)
    assert found is not None
    assert "lol" not in found.title


def test_the_text_of_a_feed_is_no_longer_than_the_feed() -> None:
    nested = b"<item><description>" * 50 + b"word " * 1_000 + b"</description></item>" * 50
    found = read_feed(b"<rss><channel>" + nested + b"</channel></rss>", _URL)
    assert found is not None
    assert 0 < len(found.text) <= len(nested)


def test_of_many_long_entries_the_first_are_read() -> None:
    long = b"<item><description>&lt;p>" + b"word " * 30_000 + b"</description></item>"
    found = read_feed(b"<rss>" + long * 10 + b"</rss>", _URL)
    assert found is not None
    assert found.text.count("word") == 60_000


@pytest.mark.parametrize("body", [b"", b"<html/>", b"<rss", b"\x00", b"<tides><item/></tides>"])
def test_other_xml_is_no_feed(body: bytes) -> None:
    found = read_feed(body, _URL)
    assert found is None or found.text == ""
