import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.document import Person
from connectors.sources.feed.entries import Feed, FeedEntry, InvalidFeedError
from connectors.sources.feed.xml_feed import read_xml_feed
from tests.support.services.feed import Post, atom, rss_1, rss_2

URL = "https://news.test/feeds/all.xml"
NOON = datetime(2026, 11, 2, 12, 0, tzinfo=UTC)


def _rss(item: str, head: str = "<title>News</title>") -> str:
    namespaces = (
        'xmlns:content="http://purl.org/rss/1.0/modules/content/"'
        ' xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:media="http://search.yahoo.com/mrss/"'
    )
    return f'<rss version="2.0" {namespaces}><channel>{head}{item}</channel></rss>'


def _entry(text: str) -> FeedEntry:
    (entry,) = read_xml_feed(text, URL).entries
    return entry


def _atom(entry: str) -> FeedEntry:
    return _entry(
        f'<feed xmlns="http://www.w3.org/2005/Atom" xml:base="/blog/"><entry>{entry}</entry></feed>'
    )


@pytest.mark.parametrize("write", [rss_2, rss_1, atom])
def test_each_format_says_the_same(write: Callable[[list[Post]], str]) -> None:
    post = Post(
        id="tag:a", title="Pumps & oil", html="<p>Twice.</p>", link="https://news.test/1", at=NOON
    )
    feed = read_xml_feed(write([post]), URL)
    assert feed.title == "News"
    (entry,) = feed.entries
    assert (entry.key, entry.title, entry.html) == ("tag:a", "Pumps & oil", "<p>Twice.</p>")
    assert entry.link == "https://news.test/1"
    assert (entry.updated or entry.published) == NOON


def test_an_item_of_rss_has_its_full_content_people_and_times() -> None:
    item = (
        "<item><title>Q&amp;amp;A</title><media:title>No</media:title><link>/1</link><guid>7</guid>"
        "<description>Short.</description><content:encoded><![CDATA[<p>Long &amp; whole.</p>]]></content:encoded>"
        "<author>ann@example.com (Ann Lee)</author><dc:creator>Bo</dc:creator>"
        "<category>Works</category><category>Works</category>"
        "<pubDate>Mon, 02 Nov 2026 14:00:00 +0200</pubDate></item>"
    )
    entry = _entry(_rss(item))
    assert entry.title == "Q&A"
    assert entry.link == "https://news.test/1"
    assert entry.html == "<p>Long &amp; whole.</p>"
    assert entry.authors == (Person("Ann Lee", "ann@example.com"), Person("Bo"))
    assert entry.categories == ("Works",)
    assert entry.published == NOON


@pytest.mark.parametrize(
    ("item", "key", "link"),
    [
        ("<guid>https://news.test/p</guid>", "https://news.test/p", "https://news.test/p"),
        ("<guid isPermaLink='false'>https://news.test/p</guid>", "https://news.test/p", ""),
        ("<link>https://news.test/p</link>", "https://news.test/p", "https://news.test/p"),
        ("<guid>a\n b</guid><link>javascript:alert(1)</link>", "a b", ""),
        ("<guid>a</guid><link>http://[</link>", "a", ""),
    ],
)
def test_an_entry_is_named_by_its_id_or_else_its_link(item: str, key: str, link: str) -> None:
    entry = _entry(_rss(f"<item><title>x</title>{item}</item>"))
    assert (entry.key, entry.link) == (key, link)


def test_an_entry_without_an_id_is_named_by_what_it_says_and_a_long_id_by_a_hash() -> None:
    same, again, other = (_entry(_rss(f"<item><title>{one}</title></item>")).key for one in "aab")
    assert same == again != other
    assert len(_entry(_rss(f"<item><guid>{'x' * 501}</guid></item>")).key) == 64


def test_the_first_of_several_entries_with_one_id_is_taken() -> None:
    items = "".join(
        f"<item><guid>1</guid><title>{title}</title></item>" for title in ("new", "old")
    )
    assert [one.title for one in read_xml_feed(_rss(items), URL).entries] == ["new"]


def test_texts_of_atom_are_plain_html_or_xhtml() -> None:
    assert _atom("<id>1</id><content>1 &lt; 2</content>").html == "<p>1 &lt; 2</p>"
    assert _atom('<id>1</id><content type="html">&lt;p&gt;A</content>').html == "<p>A"
    xhtml = '<x:div xmlns:x="http://www.w3.org/1999/xhtml">A &amp; <x:b>b</x:b></x:div>'
    assert _atom(f'<id>1</id><content type="xhtml">{xhtml}</content>').html.endswith(
        ">A &amp; <b>b</b></div>"
    )
    picture = '<content type="image/png">iVBO</content><summary>A picture.</summary>'
    assert _atom(f"<id>1</id>{picture}").html == "<p>A picture.</p>"
    assert _atom('<title type="html">&lt;b&gt;A&lt;/b&gt; &amp;amp; b</title>').title == "A & b"


def test_an_entry_of_atom_has_its_page_people_and_times() -> None:
    entry = _atom(
        '<id>1</id><link rel="self" href="/self"/><link rel="alternate" type="application/pdf" href="a.pdf"/>'
        '<link href="a.html"/><author><name>Ann</name><email>Ann@example.com</email></author>'
        '<author><name> </name></author><category term="ops" label="Works"/><category term="oil"/>'
        "<published>2026-11-02T12:00:00Z</published><updated>2026-11-03T12:00:00+02:00</updated>"
    )
    assert entry.link == "https://news.test/blog/a.html"
    assert entry.authors == (Person("Ann", "ann@example.com"),)
    assert entry.categories == ("Works", "oil")
    assert entry.published == NOON
    assert entry.updated == datetime(2026, 11, 3, 12, tzinfo=timezone(timedelta(hours=2)))


def test_what_many_programs_write_wrongly_is_mended() -> None:
    item = "<item><title>R&D\x0b &nbsp;caf&eacute; &amp; A&lt;B &#65;</title><description><![CDATA[a &nbsp; & b]]></description></item>"
    entry = _entry('\n<?xml version="1.0" encoding="latin-1"?>' + _rss(item))
    assert entry.title == "R&D café & A<B A"
    assert entry.html == "a &nbsp; & b"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Sign in.", "not valid XML"),
        ("<urlset><url/></urlset>", "its root element is <urlset>"),
        ("<rss version='2.0'/>", "it has no <channel>"),
        (rss_2([])[:-8], "not valid XML"),
        ("<rss><channel>" + "<item/>" * 20_001 + "</channel></rss>", "more than 20,000 entries"),
    ],
)
def test_what_is_no_feed_says_what_it_is(text: str, says: str) -> None:
    with pytest.raises(InvalidFeedError, match=says):
        read_xml_feed(text, URL)


_BOMB = '<!DOCTYPE rss [<!ENTITY a "xxxxxxxxxx">' + "".join(
    f'<!ENTITY {new} "{f"&{old};" * 10}">' for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    "text",
    [
        f"{_BOMB}]><rss version='2.0'><channel><title>&i;</title></channel></rss>",
        f"{_BOMB}]><rss version='2.0'><channel><item><guid isPermaLink='&i;'/></item></channel></rss>",
        f"<!-- <a> -->{_BOMB}]><rss version='2.0'><channel/></rss>",
        "<!DOCTYPE rss [<!ENTITY f SYSTEM 'file:///etc/passwd'>]><rss><channel><title>&f;</title></channel></rss>",
        "<rss><channel>" + "<a>" * 200_000 + "</a>" * 200_000 + "</channel></rss>",
        "<rss><channel><title>" + "<" * 1_000_000 + "</title></channel></rss>",
        "<rss><channel>" + "<![CDATA[" * 10_000,
    ],
    ids=[
        "entities",
        "in an attribute",
        "behind a comment",
        "of a file",
        "deep",
        "open",
        "open sections",
    ],
)
def test_hostile_xml_is_refused_at_once(text: str) -> None:
    began = time.thread_time()
    with pytest.raises(InvalidFeedError):
        read_xml_feed(text, URL)
    assert time.thread_time() - began < 3


@pytest.mark.parametrize(
    "text",
    [
        _rss(" " * 60_000),
        _rss(f"<item><title>A</title><author>{'@' * 30_000}</author></item>"),
        _rss(f"<item><title>A</title><author>{'a@' * 20_000} (</author></item>"),
    ],
    ids=["blanks without a declaration", "at signs", "names of hosts"],
)
def test_hostile_xml_that_is_a_feed_is_read_at_once(text: str) -> None:
    """8 seconds and more for each of these is what a pattern takes that tries each part of the text from each place in it."""
    began = time.thread_time()
    assert read_xml_feed(text, URL).title == "News"
    assert time.thread_time() - began < 3


def test_a_character_with_a_number_that_is_none_is_replaced() -> None:
    """Python refuses to read so long a number."""
    item = f"<item><title>A &amp;#{'9' * 5_000}; B &amp;#66;</title></item>"
    assert _entry(_rss(item)).title == "A \ufffd B B"


def test_sections_of_plain_text_are_left_as_they_are_where_a_feed_is_mended() -> None:
    item = "<item><title>R&D</title><description>&<![CDATA[a & b]]> &nbsp;<![CDATA[& c]]>&</description></item>"
    entry = _entry(_rss(item))
    assert (entry.title, entry.html) == ("R&D", "&a & b \xa0& c&")


def test_a_declaration_of_xml_in_a_text_stays() -> None:
    item = (
        '<item><title>A</title><description><![CDATA[<?xml version="1.0"?>]]></description></item>'
    )
    assert _entry(_rss(item)).html == '<?xml version="1.0"?>'


@given(st.integers(0, 400))
def test_no_part_of_a_feed_is_taken_for_a_feed(length: int) -> None:
    """A feed that was cut off would look like a shorter one."""
    posts = [
        Post(id=str(n), title=f"T {n}", html="x", link="https://news.test/", at=NOON)
        for n in (1, 2)
    ]
    whole = rss_2(posts)
    with pytest.raises(InvalidFeedError):
        read_xml_feed(whole[: max(0, len(whole) - 1 - length)], URL)


@given(st.text(max_size=30))
def test_any_text_is_a_feed_or_refused(text: str) -> None:
    for wrapped in (text, _rss(f"<item><title>{text}</title></item>")):
        with suppress(InvalidFeedError):
            assert isinstance(read_xml_feed(wrapped, URL), Feed)
