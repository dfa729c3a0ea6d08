"""The compressed form in which results and pages are cached."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import zstandard

from backend.web_search.results import PageDate, PageLink, WebPage, WebResult

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class CachedResults:
    results: tuple[WebResult, ...]
    limit: int
    """How many were wanted; where there are fewer, there were no more."""

    def answer(self, limit: int) -> tuple[WebResult, ...] | None:
        """Return as many as are wanted; None where a search might find more."""
        if limit > self.limit and len(self.results) >= self.limit:
            return None
        return self.results[:limit]


def encode_results(results: CachedResults) -> bytes:
    listed = [
        {
            "title": one.title,
            "url": one.url,
            "summary": one.summary,
            "published": one.published and one.published.isoformat(),
            "provider": one.provider,
        }
        for one in results.results
    ]
    return _compress({"limit": results.limit, "results": listed})


def decode_results(content: bytes) -> CachedResults | None:
    """Reverse `encode_results`; return None if the content is damaged or of another version of the program."""
    fields = _decompress(content)
    if fields is None:
        return None
    results = (
        WebResult(
            one["title"],
            one["url"],
            one["summary"],
            _read_time(one["published"]),
            one["provider"],
        )
        for one in fields["results"]
    )
    return CachedResults(tuple(results), fields["limit"])


def encode_page(page: WebPage) -> bytes:
    published = page.published
    return _compress(
        {
            "url": page.url,
            "title": page.title,
            "text": page.text,
            "published": published and [published.at.isoformat(), published.is_guess],
            "language": page.language,
            "links": [[link.url, link.text] for link in page.links],
        }
    )


def decode_page(content: bytes) -> WebPage | None:
    """Reverse `encode_page`; return None if the content is damaged or of another version of the program."""
    fields = _decompress(content)
    if fields is None:
        return None
    published = fields["published"]
    return WebPage(
        url=fields["url"],
        title=fields["title"],
        text=fields["text"],
        published=published and PageDate(datetime.fromisoformat(published[0]), published[1]),
        language=fields["language"],
        links=tuple(PageLink(url, text) for url, text in fields["links"]),
    )


def _compress(fields: Mapping[str, object]) -> bytes:
    # Half characters, which pages may hold, are kept as escapes.
    text = json.dumps({"format": _FORMAT, **fields}, separators=(",", ":"))
    return zstandard.ZstdCompressor(write_checksum=True).compress(text.encode())


def _decompress(content: bytes) -> Mapping[str, Any] | None:
    try:
        fields: dict[str, Any] = json.loads(zstandard.ZstdDecompressor().decompress(content))
    except zstandard.ZstdError:
        return None
    return fields if fields.get("format") == _FORMAT else None


def _read_time(written: str | None) -> datetime | None:
    return datetime.fromisoformat(written) if written else None
