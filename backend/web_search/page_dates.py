"""When a page was published: as it declares, or a guess from its address or its first lines."""

import json
import re
from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from lxml.html import HtmlElement

from backend.web_search.results import PageDate
from connectors.extraction.web_page import read_meta_tags
from connectors.text_cleaning import parse_time, to_utc

_META_NAMES = (
    *("article:published_time", "og:article:published_time", "datepublished", "citation_publication_date"),
    *("parsely-pub-date", "sailthru.date", "cxenseparse:recs:publishtime", "dc.date.issued", "dcterms.created"),
    *("dcterms.issued", "dc.date", "pubdate", "publishdate", "publish-date", "publish_date", "date"),
)  # fmt: skip
_FIRST_TEXT = 400
"""Characters; a date further down is rarely that of the page."""
_MOST_JSON = 500_000
_MOST_VALUES = 2_000
_EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)
_LATER = timedelta(days=1)
"""Clocks and time zones differ: so much after now a date is still believed."""
_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan januar jänner janvier enero",
            "february feb februar février febrero",
            "march mar märz mrz mars marzo",
            "april apr avril abril",
            "may mai mayo",
            "june jun juni juin junio",
            "july jul juli juillet julio",
            "august aug août agosto",
            "september sep sept septembre septiembre",
            "october oct oktober okt octobre octubre",
            "november nov novembre noviembre",
            "december dec dezember dez décembre diciembre",
        ),
        start=1,
    )
    for name in names.split()
}
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_IN_ADDRESS = re.compile(r"(?<!\d)((?:19|20)\d\d)[/-](\d{1,2})[/-](\d{1,2})(?!\d)")
_IN_TEXT = (
    re.compile(r"(?<!\d)(?P<y>(?:19|20)\d\d)[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})(?!\d)"),
    re.compile(r"(?P<y>(?:19|20)\d\d)\s?年\s?(?P<m>\d{1,2})\s?月\s?(?P<d>\d{1,2})\s?日"),
    re.compile(r"(?P<y>(?:19|20)\d\d)\s?년\s?(?P<m>\d{1,2})\s?월\s?(?P<d>\d{1,2})\s?일"),
    re.compile(rf"\b(?P<m>{_MONTH})\.? (?P<d>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<y>(?:19|20)\d\d)\b", re.I),
    re.compile(rf"\b(?P<d>\d{{1,2}})(?:st|nd|rd|th|er|\.)? (?:de )?(?P<m>{_MONTH})\.?,? (?:de )?(?P<y>(?:19|20)\d\d)\b", re.I),
)  # fmt: skip


def find_declared_date(root: HtmlElement) -> PageDate | None:
    """Return the date that the page declares in its head, in JSON-LD, or in the only article on it."""
    texts = (*_from_meta_tags(root), *_from_json_ld(root), *_from_time_elements(root))
    return next(filter(None, map(parse_declared_date, texts)), None)


def guess_date(url: str, text: str) -> PageDate | None:
    """Conclude the date from the address, else from the first lines of the text."""
    if found := _IN_ADDRESS.search(urlsplit(url).path):
        year, month, day = map(int, found.groups())
        if guess := _make_guess(year, month, day):
            return guess
    head = text[:_FIRST_TEXT]
    for found in filter(None, (pattern.search(head) for pattern in _IN_TEXT)):
        named = found["m"].lower()
        month = _MONTHS[named] if named in _MONTHS else int(named)
        if guess := _make_guess(int(found["y"]), month, int(found["d"])):
            return guess
    return None


def parse_declared_date(text: str) -> PageDate | None:
    """Parse a date in the form of ISO 8601 or of e-mail; None for one that no page can have."""
    at = parse_time(re.sub(r" (?=[+-]\d\d:?\d\d$)", "", text.strip())) or _parse_email_date(text)
    return PageDate(at, is_guess=False) if at is not None and _is_plausible(at) else None


def _parse_email_date(text: str) -> datetime | None:
    try:
        return to_utc(parsedate_to_datetime(text))
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _make_guess(year: int, month: int, day: int) -> PageDate | None:
    try:
        at = datetime(year, month, day, tzinfo=UTC)
    except ValueError:
        return None
    return PageDate(at, is_guess=True) if _is_plausible(at) else None


def _is_plausible(at: datetime) -> bool:
    return _EARLIEST <= at <= datetime.now(UTC) + _LATER


def _from_meta_tags(root: HtmlElement) -> Iterator[str]:
    tags = read_meta_tags(root)
    return (tags[name] for name in _META_NAMES if name in tags)


def _from_json_ld(root: HtmlElement) -> Iterator[str]:
    for element in root.iter("script"):
        written = element.text or ""
        if "ld+json" not in (element.get("type") or "") or len(written) > _MOST_JSON:
            continue
        try:
            yield from _find_published(json.loads(written, strict=False))
        except (ValueError, RecursionError):
            continue


def _find_published(data: Any) -> Iterator[str]:
    """Yield `datePublished` of all objects, outer ones first."""
    waiting = deque([data])
    for _ in range(_MOST_VALUES):
        if not waiting:
            return
        match waiting.popleft():
            case {"datePublished": str(found), **others}:
                yield found
                waiting.extend(others.values())
            case dict() as value:
                waiting.extend(value.values())
            case list() as values:
                waiting.extend(values)
            case _:
                pass


def _from_time_elements(root: HtmlElement) -> Iterator[str]:
    times = [element for element in root.iter("time") if element.get("datetime")]
    marked = [
        one for one in times if one.get("itemprop") == "datePublished" or "pubdate" in one.attrib
    ]
    articles = list(root.iter("article"))
    # Of several articles, none is the page's own.
    inside = articles[0].iter("time") if len(articles) == 1 else ()
    for element in (*marked, *inside):
        yield element.get("datetime") or ""
