import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.sources.feed.entries import resolve_link
from connectors.sources.feed.json_feed import read_json_feed
from connectors.sources.feed.xml_feed import read_xml_feed

SECRET = "s3cret"
URL = f"https://ann:{SECRET}@news.test/feeds/all?token={SECRET}#{SECRET}"


@pytest.mark.parametrize(
    ("link", "address"),
    [
        ("#c1", "https://news.test/feeds/all#c1"),
        ("?page=2", "https://news.test/feeds/all?page=2"),
        ("/1", "https://news.test/1"),
        ("1?a=b#c", "https://news.test/feeds/1?a=b#c"),
        ("//other.test/1", "https://other.test/1"),
        ("http://other.test/1?a=b", "http://other.test/1?a=b"),
        (" ", ""),
        ("mailto:ann@news.test", ""),
    ],
)
def test_a_link_is_that_of_a_page_without_the_secrets_of_the_feed(link: str, address: str) -> None:
    assert resolve_link(URL, link) == address


@given(st.text("/?#:@.a;=&", max_size=8))
def test_no_link_holds_a_secret_of_the_feed(link: str) -> None:
    assert SECRET not in resolve_link(URL, link)


@pytest.mark.parametrize(
    "text",
    [
        "<rss><channel><link>#</link><item><link>#c1</link></item></channel></rss>",
        "<rss><channel><item xml:base='#x'><link>#c1</link></item></channel></rss>",
        '<feed xmlns="http://www.w3.org/2005/Atom"><link href="#"/><entry><link href="#c1"/></entry></feed>',
    ],
)
def test_neither_the_link_nor_the_id_of_an_entry_of_xml_holds_a_secret(text: str) -> None:
    feed = read_xml_feed(text, URL)
    (entry,) = feed.entries
    assert entry.key == entry.link == "https://news.test/feeds/all#c1"
    assert SECRET not in feed.link


def test_neither_the_link_nor_the_id_of_an_item_of_json_holds_a_secret() -> None:
    text = """{"version": "https://jsonfeed.org/version/1", "items": [{"url": "#c1"}]}"""
    (entry,) = read_json_feed(text, URL).entries
    assert entry.key == entry.link == "https://news.test/feeds/all#c1"
