import json
from datetime import UTC, datetime

import pytest

from connectors.document import Person
from connectors.sources.feed.entries import FeedEntry, InvalidFeedError
from connectors.sources.feed.json_feed import read_json_feed

URL = "https://news.test/feed.json"


def _read(*items: object, **more: object) -> tuple[FeedEntry, ...]:
    value = {"version": "https://jsonfeed.org/version/1.1", "items": items, **more}
    return read_json_feed(json.dumps(value), URL).entries


def test_an_item_has_its_content_people_and_times() -> None:
    (entry,) = _read(
        {
            "id": 7,
            "url": "/7",
            "title": " Pumps\n",
            "content_html": "<p>A</p>",
            "content_text": "A",
            "authors": [{"name": "Ann"}, {"url": "x"}, "Bo"],
            "tags": ["works", 3],
            "date_published": "2026-11-02T12:00:00Z",
            "date_modified": "yesterday",
        }
    )
    assert entry == FeedEntry(
        key="7",
        title="Pumps",
        link="https://news.test/7",
        html="<p>A</p>",
        authors=(Person("Ann"),),
        categories=("works",),
        published=datetime(2026, 11, 2, 12, tzinfo=UTC),
    )


def test_plain_text_and_the_author_of_the_first_version_are_read() -> None:
    text, summary = _read(
        {"id": "1", "content_text": "a < b\n\nc", "author": {"name": "Ann"}},
        {"id": "2", "summary": "In short."},
    )
    assert (text.html, text.authors) == ("<p>a &lt; b</p><p>c</p>", (Person("Ann"),))
    assert summary.html == "<p>In short.</p>"


def test_items_that_are_no_objects_are_left_out() -> None:
    assert _read("a", None, [1]) == ()


@pytest.mark.parametrize("bad", ["\ud800", "\x00"], ids=["half a character", "NUL"])
def test_what_cannot_be_stored_is_replaced_wherever_it_stands(bad: str) -> None:
    said = f"a{bad}b"
    texts = ("id", "url", "title", "content_text", "date_published")
    plain, rich = _read(
        {**dict.fromkeys(texts, said), "authors": [{"name": said}], "tags": [said]},
        {"id": "2", "content_html": said},
    )
    assert plain == FeedEntry(
        key="a\ufffdb",
        title="a\ufffdb",
        link="https://news.test/a\ufffdb",
        html="<p>a\ufffdb</p>",
        authors=(Person("a\ufffdb"),),
        categories=("a\ufffdb",),
    )
    assert rich.html == "a\ufffdb"


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"items": []}', '{"version": "2", "items": []}', "[" * 100_000],
)
def test_other_json_is_no_feed(text: str) -> None:
    with pytest.raises(InvalidFeedError, match="is not a feed: it is "):
        read_json_feed(text, URL)
