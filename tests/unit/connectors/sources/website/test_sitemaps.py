import gzip

import pytest

from connectors.http_client.response import ResponseError
from connectors.sources.website.sitemaps import (
    InvalidSitemapError,
    SitemapEntry,
    decompress,
    parse_sitemap,
)

_XML = b"""<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
<url><loc> https://example.com/a?x=1&amp;y=2 </loc><lastmod>2024-05-01</lastmod></url>
<url><loc>mailto:ann@example.com</loc></url><url></url>
<url><loc>/b</loc></url></urlset>"""
_AT = "https://example.com/sitemap.xml"


def test_pages_are_listed_with_their_last_change() -> None:
    assert list(parse_sitemap(_XML, _AT)) == [
        SitemapEntry("https://example.com/a?x=1&y=2", is_sitemap=False, last_modified="2024-05-01"),
        SitemapEntry("https://example.com/b", is_sitemap=False, last_modified=None),
    ]


def test_an_index_names_sitemaps() -> None:
    index = b"<sitemapindex><sitemap><loc>https://example.com/1.xml</loc></sitemap></sitemapindex>"
    (found,) = parse_sitemap(index.replace(b"<sitemapindex>", b"<sitemapindex xmlns='urn:x'>"), _AT)
    assert found == SitemapEntry("https://example.com/1.xml", is_sitemap=True, last_modified=None)


def test_a_text_has_an_address_on_each_line() -> None:
    found = parse_sitemap(b"https://example.com/a\n\nhttps://example.com/b\n", _AT)
    assert [one.url[-1] for one in found] == ["a", "b"]


@pytest.mark.parametrize("data", [b"", b"<html></html>", _XML[:-20], b'{"a": 1}'])
def test_what_is_no_sitemap_or_half_a_one_is_reported(data: bytes) -> None:
    with pytest.raises(InvalidSitemapError):
        list(parse_sitemap(data, _AT))


def test_no_entity_is_read_from_this_machine() -> None:
    evil = (
        b'<!DOCTYPE urlset [<!ENTITY x SYSTEM "file:///etc/hostname">]>'
        b"<urlset xmlns='urn:x'><url><loc>https://example.com/&x;</loc></url></urlset>"
    )
    assert [one.url for one in parse_sitemap(evil, _AT)] == ["https://example.com/"]


def test_a_packed_sitemap_is_unpacked_and_half_a_one_is_not() -> None:
    packed = gzip.compress(_XML)
    assert decompress(packed, _AT) == _XML == decompress(_XML, _AT)
    with pytest.raises(ResponseError, match="cut off"):
        decompress(packed[:-12], _AT)


def test_a_bomb_is_not_decompress() -> None:
    with pytest.raises(ResponseError, match="larger than"):
        decompress(gzip.compress(bytes(60_000_000), 1), _AT)
