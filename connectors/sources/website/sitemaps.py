"""Reading sitemaps (sitemaps.org): the pages of a site, and when they were last modified."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from io import BytesIO

import httpx
from lxml import etree

from connectors.errors import SourceError, TemporarilyUnavailableError
from connectors.http_client.decompression import Decompressor
from connectors.http_client.response import ResponseError
from connectors.sources.website.fetcher import (
    FetchedPage,
    Fetcher,
    FetchFailed,
    NotFound,
    NotModified,
)
from connectors.sources.website.frontier import PendingUrl
from connectors.sources.website.urls import normalize_url

_MAX_BYTES = 52_428_800
"""Uncompressed; the limit of sitemaps.org."""
_MAX_SITEMAPS = 2_000
"""In one run."""
_RETRY_AFTER = timedelta(minutes=10)
_GZIP = b"\x1f\x8b"


class InvalidSitemapError(Exception):
    """The file is not a sitemap, or damaged; the message says what it is."""


@dataclass(frozen=True, slots=True)
class SitemapEntry:
    url: str
    is_sitemap: bool
    last_modified: str | None
    """As the sitemap states it."""


def list_pages(fetcher: Fetcher, start_urls: Sequence[str]) -> Iterator[PendingUrl]:
    """Yield the pages in the sitemaps, and in those that they refer to.

    Raises:
        TemporarilyUnavailableError: a sitemap cannot be read now, or is damaged; its pages would otherwise
            look deleted.
        SourceError: a sitemap does not exist or is of another host, or there are too many.
    """
    pending, seen = list(start_urls), set(start_urls)
    while pending:
        url = pending.pop(0)
        for entry in _read_sitemap(fetcher, url):
            if not entry.is_sitemap:
                yield PendingUrl(entry.url, 0, entry.last_modified)
            elif entry.url not in seen:
                seen.add(entry.url)
                pending.append(entry.url)
        if len(seen) > _MAX_SITEMAPS:
            raise SourceError(
                f"{start_urls[0]} refers to more than {_MAX_SITEMAPS:,} sitemaps: split them into"
                " several sources"
            )


def _read_sitemap(fetcher: Fetcher, url: str) -> Iterator[SitemapEntry]:
    match fetcher.fetch_file(url, _MAX_BYTES):
        case FetchedPage(response=response):
            try:
                yield from parse_sitemap(decompress(response.body, url), url)
            except (InvalidSitemapError, ResponseError) as error:
                raise TemporarilyUnavailableError(
                    f"{url} cannot be read as a sitemap: {error}", _RETRY_AFTER
                ) from error
        case NotFound(reason):
            raise SourceError(
                f"the sitemap {url} cannot be read: {reason}. Correct the settings, or the sitemap"
                " that refers to it."
            )
        case FetchFailed(ResponseError() as error):
            raise TemporarilyUnavailableError(
                f"the sitemap cannot be read: {error}", _RETRY_AFTER
            ) from error
        case FetchFailed(error):
            raise error
        case NotModified():
            return


def decompress(data: bytes, url: str) -> bytes:
    """Decompress a gzip file, whatever the response headers say; return other data unchanged.

    Raises:
        ResponseError: it is truncated, damaged or too large.
    """
    if not data.startswith(_GZIP):
        return data
    decompressor = Decompressor(httpx.URL(url))
    decompressed = decompressor(data, _MAX_BYTES)
    if len(decompressed) > _MAX_BYTES:
        raise ResponseError(f"it is larger than {_MAX_BYTES:,} bytes")
    decompressor.finish()
    return decompressed


def parse_sitemap(data: bytes, url: str) -> Iterator[SitemapEntry]:
    """Parse the sitemap at `url`: XML, or plain text with one URL per line.

    Raises:
        InvalidSitemapError: it is neither.
    """
    if re.match(rb"(\xef\xbb\xbf)?\s*https?://", data):
        yield from _parse_lines(data, url)
        return
    found = etree.iterparse(
        BytesIO(data), events=("start", "end"), resolve_entities=False, no_network=True
    )
    try:
        for number, (event, element) in enumerate(found):
            name = etree.QName(element).localname
            if number == 0 and name not in ("urlset", "sitemapindex"):
                raise InvalidSitemapError(f"its root element is <{name}>")
            if event == "end" and name in ("url", "sitemap"):
                yield from _parse_entry(element, name, url)
                element.clear()
                while element.getprevious() is not None:
                    del element.getparent()[0]
    except etree.XMLSyntaxError as error:
        raise InvalidSitemapError(f"it is not valid XML: {error.msg}") from error


def _parse_lines(data: bytes, base: str) -> Iterator[SitemapEntry]:
    for line in data.decode("utf-8-sig", "replace").splitlines():
        if url := normalize_url(line, base) if line.strip() else None:
            yield SitemapEntry(url, is_sitemap=False, last_modified=None)


def _parse_entry(element: etree._Element, name: str, base: str) -> Iterator[SitemapEntry]:
    location = (element.findtext("{*}loc") or "").strip()
    if url := normalize_url(location, base) if location else None:
        last_modified = (element.findtext("{*}lastmod") or "").strip() or None
        yield SitemapEntry(url, is_sitemap=name == "sitemap", last_modified=last_modified)
