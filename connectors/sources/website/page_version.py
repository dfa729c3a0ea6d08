"""The version of a page: a hash of its text, and the headers for a conditional request."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from email.utils import parsedate_to_datetime
from hashlib import sha256
from typing import Any

from connectors.extraction.result import ExtractionResult
from connectors.http_client.response import Response

# To be raised when the same page yields another document than before.
_FORMAT_VERSION = 1
_MAX_ETAG_LENGTH = 300
_MIN_AGE = timedelta(seconds=60)
"""A page may change twice within the second of its Last-Modified; only a time well before the response
identifies its state (RFC 9110, 8.8.2.2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageVersion:
    """The parts of `Document.version`."""

    digest: str
    is_leaf: bool
    """It has no links, so that a crawl misses none if the page is not sent again."""
    etag: str = ""
    modified: str = ""

    @classmethod
    def from_response(
        cls, extracted: ExtractionResult, response: Response, *, is_leaf: bool
    ) -> "PageVersion":
        etag = response.headers.get("etag", "")
        return cls(
            digest=_digest(extracted),
            is_leaf=is_leaf,
            etag=etag if len(etag) <= _MAX_ETAG_LENGTH else "",
            modified="" if etag else _reliable_last_modified(response),
        )

    @classmethod
    def parse(cls, text: str | None) -> "PageVersion | None":
        """Return None for a version of another format."""
        try:
            return cls._from_json(json.loads(text or "null"))
        except ValueError:
            return None

    @classmethod
    def _from_json(cls, value: Any) -> "PageVersion | None":
        match value:
            case [int(format_version), str(digest), int(leaf), str(etag), str(modified)] if (
                format_version == _FORMAT_VERSION
            ):
                return cls(digest=digest, is_leaf=bool(leaf), etag=etag, modified=modified)
            case _:
                return None

    def serialize(self) -> str:
        return json.dumps(
            [_FORMAT_VERSION, self.digest, int(self.is_leaf), self.etag, self.modified]
        )

    def request_headers(self) -> Mapping[str, str]:
        """Return the headers with which a server sends the page only if it changed."""
        if self.etag:
            return {"If-None-Match": self.etag}
        return {"If-Modified-Since": self.modified} if self.modified else {}


def _digest(extracted: ExtractionResult) -> str:
    values = [
        extracted.title,
        [[one.text, one.kind, one.place.heading_path] for one in extracted.sections],
        sorted(extracted.metadata.items()),
        [(one.name, one.email) for one in extracted.authors],
        str(extracted.created_at),
        str(extracted.updated_at),
    ]
    return sha256(json.dumps(values).encode("utf-8")).hexdigest()[:32]


def _reliable_last_modified(response: Response) -> str:
    """Return Last-Modified if it is old enough to identify this state of the page, else nothing."""
    modified = response.headers.get("last-modified", "")
    try:
        latest = parsedate_to_datetime(response.headers.get("date", "")) - _MIN_AGE
        return modified if parsedate_to_datetime(modified) <= latest else ""
    except (ValueError, TypeError, IndexError, OverflowError):
        return ""
