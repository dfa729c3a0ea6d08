"""Results as they are shown: plain text, web addresses alone, each page once."""

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from backend.web_search.addresses import normalize_address
from backend.web_search.domains import DomainRules
from backend.web_search.results import WebResult
from connectors.http_client.address_guard import validate_url
from connectors.text_cleaning import parse_time, shorten_title, to_one_line, to_utc

LONGEST_SUMMARY = 1_000

_TAG = re.compile(r"<(/?[a-zA-Z]|!)[^<>]*>")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_CONTROL = re.compile("[\x01-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\ufeff]")
_AGO = re.compile(r"([0-9]{1,3}) (minute|hour|day|week|month|year)s? ago", re.IGNORECASE)
_DAYS = {"minute": 0.0, "hour": 1 / 24, "day": 1.0, "week": 7.0, "month": 30.0, "year": 365.0}
_WRITTEN = ("%b %d, %Y", "%B %d, %Y", "%d %b %Y", "%Y/%m/%d")


def clean_results(found: Iterable[WebResult], rules: DomainRules) -> Iterator[WebResult]:
    """Yield the results with a web address that the rules permit, each page once, at its best place."""
    seen: set[str] = set()
    for result in found:
        address = normalize_address(result.url)
        if address is None or address in seen or not rules.permits(result.url):
            continue
        seen.add(address)
        yield _clean_result(result)


def _clean_result(result: WebResult) -> WebResult:
    url = str(validate_url(result.url.strip()))
    title = shorten_title(to_plain_text(result.title))
    summary = _shorten_summary(to_plain_text(result.summary))
    return replace(result, url=url, title=title or url, summary=summary)


def to_plain_text(text: str) -> str:
    """Return the text of HTML, or of a text that may hold some, on one line."""
    edge = " " if _is_block(text) else ""
    plain = html.unescape(_TAG.sub(edge, _remove_comments(text, edge)))
    return to_one_line(_CONTROL.sub("", plain))


def _remove_comments(text: str, edge: str) -> str:
    # Where none ends, none is looked for: each beginning would be followed to the end of the text.
    before, end, rest = text.rpartition("-->")
    return _COMMENT.sub(edge, before + end) + rest


def _is_block(text: str) -> bool:
    """Return whether its tags stand between words, as those of blocks do, and not in the middle of one."""
    return bool(re.search(r"</?(p|br|div|li|ul|ol|td|tr|h[1-6])\b", text, re.IGNORECASE))


def _shorten_summary(text: str) -> str:
    """Cut at a blank, where there is one near the end."""
    if len(text) <= LONGEST_SUMMARY:
        return text
    cut = text[:LONGEST_SUMMARY]
    words = cut.rpartition(" ")[0]
    return f"{words if len(words) > LONGEST_SUMMARY - 100 else cut}…"


def parse_published(text: object, now: datetime) -> datetime | None:
    """Return the time that a search engine states: a date in one of its usual forms, or such as `3 days ago`."""
    if not isinstance(text, str) or not text.strip():
        return None
    stated = text.strip()
    moment = parse_time(stated) or _parse_mail_date(stated) or _parse_written(stated)
    moment = moment or _parse_age(stated, now)
    # A page of tomorrow is one of another time zone; one of next year is a mistake.
    return moment if moment is not None and moment < now + timedelta(days=2) else None


def _parse_mail_date(text: str) -> datetime | None:
    try:
        return to_utc(parsedate_to_datetime(text))
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _parse_written(text: str) -> datetime | None:
    for form in _WRITTEN:
        try:
            return datetime.strptime(text, form).replace(tzinfo=UTC)
        except ValueError:
            continue
    return None


def _parse_age(text: str, now: datetime) -> datetime | None:
    found = _AGO.fullmatch(text)
    return now - timedelta(days=int(found[1]) * _DAYS[found[2].lower()]) if found else None
