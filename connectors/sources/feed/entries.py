"""A feed and its entries, whatever their format."""

import html
import re
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from hashlib import sha256
from urllib.parse import urljoin, urlsplit, urlunsplit

from connectors.document import Person
from connectors.text_cleaning import parse_time, to_one_line, to_utc

MOST_ENTRIES = 20_000
"""Of one feed. A feed shows its latest, mostly 10 to 100."""
_LONGEST_ID = 500


class InvalidFeedError(Exception):
    """What was sent is not a feed, or damaged; the message says what it is, after the address of the feed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedEntry:
    key: str
    """What the feed identifies the entry by: its id, else its link, else what it says."""
    title: str
    link: str
    """Of a page; empty if the entry names none."""
    html: str
    """The content, or else the summary."""
    authors: tuple[Person, ...] = ()
    categories: tuple[str, ...] = ()
    published: datetime | None = None
    updated: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    title: str
    link: str
    """Of the site that it belongs to; may be empty."""
    entries: tuple[FeedEntry, ...]
    """Each key once."""


def make_feed(title: str, link: str, entries: list[FeedEntry]) -> Feed:
    """Make a feed of entries in its order; of several with one key the first is taken, which is mostly the latest.

    Raises:
        InvalidFeedError: there are too many.
    """
    if len(entries) > MOST_ENTRIES:
        raise InvalidFeedError(f"has more than {MOST_ENTRIES:,} entries, which are not read")
    unique: dict[str, FeedEntry] = {}
    for entry in entries:
        unique.setdefault(entry.key, entry)
    return Feed(title=to_one_line(title), link=link, entries=tuple(unique.values()))


def make_key(stated_id: str, link: str, *says: str) -> str:
    """Return what identifies an entry: an id that can be a part of a document's, or a hash."""
    stated = to_one_line(stated_id) or link
    if stated and len(stated) <= _LONGEST_ID:
        return stated
    return sha256("\0".join([stated, *says]).encode(errors="replace")).hexdigest()


def resolve_link(base: str, link: str) -> str:
    """Return the address of a page, or nothing if the link leads to none.

    Of the base, which is mostly the address of the feed, neither a query nor a user gets into it: they hold secrets.
    """
    try:
        address = urljoin(_strip_secrets(base), link.strip()) if link.strip() else ""
        is_page = urlsplit(address).scheme in ("http", "https")
    except ValueError:
        return ""
    return address if is_page else ""


def _strip_secrets(url: str) -> str:
    """Leave out of a URL what may be secret: its user, query and fragment. Raises ValueError."""
    scheme, host, path, _, _ = urlsplit(url)
    return urlunsplit((scheme, host.rpartition("@")[2], path, "", ""))


def text_to_html(text: str) -> str:
    """Make paragraphs of plain text."""
    return "".join(f"<p>{html.escape(part)}</p>" for part in re.split(r"\n\s*\n", text) if part)


def parse_moment(text: str) -> datetime | None:
    """Parse a time as feeds write it: by RFC 3339, or by RFC 822 as in e-mail."""
    try:
        return parse_time(text) or to_utc(parsedate_to_datetime(text))
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
