"""Sitemaps (sitemaps.org): which pages a site lists, and when each was changed last."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from io import BytesIO

import httpx
from lxml import etree

from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from connectors.http_client.decompression import Decompressor
from connectors.http_client.response import ResponseError
from connectors.sources.website.fetcher import Absent, Failed, Fetcher, Page, Same
from connectors.sources.website.frontier import Waiting
from connectors.sources.website.urls import page_address

_LARGEST = 52_428_800
"""Bytes, unpacked: what sitemaps.org allows."""
_MOST = 2_000
"""Sitemaps of one run."""
_LATER = timedelta(minutes=10)
_GZIP = b"\x1f\x8b"


class NoSitemap(Exception):
    """It is something else, or broken; the message says what."""


@dataclass(frozen=True, slots=True)
class Entry:
    address: str
    is_sitemap: bool
    told: str | None
    """The time of the last change, as it is written there."""


def listed(fetcher: Fetcher, begins: Sequence[str]) -> Iterator[Waiting]:
    """The pages of the site that the sitemaps and those they name list.

    Raises:
        TemporarilyUnavailableError: one of them cannot be had now, or is broken: fewer pages are never taken for all.
        ActionRequiredError: there is no sitemap, one of them is of another host, or there are too many.
    """
    waiting, seen = list(begins), set(begins)
    while waiting:
        address = waiting.pop(0)
        for entry in _read(fetcher, address):
            if not entry.is_sitemap:
                yield Waiting(entry.address, 0, entry.told)
            elif entry.address not in seen:
                seen.add(entry.address)
                waiting.append(entry.address)
        if len(seen) > _MOST:
            raise ActionRequiredError(
                f"{address} and others name more than {_MOST:,} sitemaps: name some of"
                " them alone in a source of its own"
            )


def _read(fetcher: Fetcher, address: str) -> Iterator[Entry]:
    match fetcher.file(address, _LARGEST):
        case Page(answer=answer):
            try:
                yield from entries(unpacked(answer.body, address), address)
            except (NoSitemap, ResponseError) as error:
                raise TemporarilyUnavailableError(
                    f"{address} cannot be read as a sitemap: {error}", _LATER
                ) from error
        case Absent(reason):
            raise ActionRequiredError(
                f"the sitemap {address} cannot be read: {reason}. Mend the settings, or"
                " the sitemap that names it"
            )
        case Failed(ResponseError() as error):
            raise TemporarilyUnavailableError(
                f"the sitemap cannot be read: {error}", _LATER
            ) from error
        case Failed(error):
            raise error
        case Same():
            return


def unpacked(data: bytes, address: str) -> bytes:
    """A file that is packed by itself, whatever the server says.

    Raises:
        MalformedResponse: it is cut off or not gzip at all.
    """
    if not data.startswith(_GZIP):
        return data
    inflation = Decompressor(httpx.URL(address))
    inflated = inflation(data, _LARGEST)
    if len(inflated) > _LARGEST:
        raise ResponseError(f"it is larger than {_LARGEST:,} bytes")
    inflation.finish()
    return inflated


def entries(data: bytes, address: str) -> Iterator[Entry]:
    """What the sitemap at `address` lists: XML, or a text with an address on each line.

    Raises:
        NoSitemap: it is neither.
    """
    if re.match(rb"(\xef\xbb\xbf)?\s*https?://", data):
        yield from _lines(data, address)
        return
    found = etree.iterparse(
        BytesIO(data), events=("start", "end"), resolve_entities=False, no_network=True
    )
    try:
        for number, (event, element) in enumerate(found):
            name = etree.QName(element).localname
            if number == 0 and name not in ("urlset", "sitemapindex"):
                raise NoSitemap(f"it is not one, but <{name}>")
            if event == "end" and name in ("url", "sitemap"):
                yield from _entry(element, name, address)
                element.clear()
                while element.getprevious() is not None:
                    del element.getparent()[0]
    except etree.XMLSyntaxError as error:
        raise NoSitemap(f"it is not XML, or cut off: {error.msg}") from error


def _lines(data: bytes, base: str) -> Iterator[Entry]:
    for line in data.decode("utf-8-sig", "replace").splitlines():
        if address := page_address(line, base) if line.strip() else None:
            yield Entry(address, is_sitemap=False, told=None)


def _entry(element: etree._Element, name: str, base: str) -> Iterator[Entry]:
    address = page_address(element.findtext("{*}loc") or "", base)
    if address and (element.findtext("{*}loc") or "").strip():
        told = (element.findtext("{*}lastmod") or "").strip() or None
        yield Entry(address, is_sitemap=name == "sitemap", told=told)
