"""Reading JSON Feed (jsonfeed.org), versions 1 and 1.1."""

import json
from collections.abc import Iterator
from typing import Any

from connectors.document import Person
from connectors.sources.feed.entries import (
    Feed,
    FeedEntry,
    InvalidFeedError,
    make_feed,
    make_key,
    parse_moment,
    resolve_link,
    text_to_html,
)
from connectors.text_cleaning import replace_unstorable, to_one_line


def read_json_feed(text: str, url: str) -> Feed:
    """Read a feed that was sent from this address.

    Raises:
        InvalidFeedError: it is not one.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidFeedError("is not a feed: it is not valid JSON") from error
    match value:
        case {"version": str(version), "items": [*items]} if "jsonfeed.org/" in version:
            entries = [_read_item(item, url) for item in items if isinstance(item, dict)]
            return make_feed(
                _get_text(value, "title"),
                resolve_link(url, _get_text(value, "home_page_url")),
                entries,
            )
        case _:
            raise InvalidFeedError("is not a feed: it is JSON without the version of JSON Feed")


def _read_item(item: dict[str, Any], url: str) -> FeedEntry:
    title, link = to_one_line(_get_text(item, "title")), resolve_link(url, _get_text(item, "url"))
    text = _get_text(item, "content_text") or _get_text(item, "summary")
    body = _get_text(item, "content_html") or text_to_html(text)
    return FeedEntry(
        key=make_key(_get_text(item, "id"), link, title, body),
        title=title,
        link=link,
        html=body,
        authors=tuple(_read_people(item)),
        categories=tuple(
            replace_unstorable(one) for one in _get_list(item, "tags") if isinstance(one, str)
        ),
        published=parse_moment(_get_text(item, "date_published")),
        updated=parse_moment(_get_text(item, "date_modified")),
    )


def _read_people(item: dict[str, Any]) -> Iterator[Person]:
    # Version 1 knows one author.
    for author in [*_get_list(item, "authors"), item.get("author")]:
        if isinstance(author, dict) and (name := to_one_line(_get_text(author, "name"))):
            yield Person(name)


def _get_list(value: dict[str, Any], name: str) -> list[Any]:
    found = value.get(name)
    return found if isinstance(found, list) else []


def _get_text(value: dict[str, Any], name: str) -> str:
    """Return a text that can be stored: JSON can spell NUL and halves of characters. Ids are numbers in some feeds."""
    found = value.get(name)
    return replace_unstorable(str(found)) if isinstance(found, str | int | float) else ""
