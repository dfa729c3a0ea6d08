"""What Quarry holds of a page so that it need not be read again: its text's hash, and how to ask."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from email.utils import parsedate_to_datetime
from hashlib import sha256
from typing import Any

from connectors.extraction.result import ExtractionResult
from connectors.http_client.response import Response

# Raise it when pages read again would say something else than before.
_READING = 1
_LONGEST = 300
_SETTLED = timedelta(seconds=60)
"""A page may change twice within the second that Last-Modified names, so that only a time well before
the answer tells one state of it (RFC 9110, 8.8.2.2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """`Document.version`, taken apart."""

    digest: str
    is_leaf: bool
    """It leads nowhere, so that a walk misses no link where it is not sent again."""
    etag: str = ""
    modified: str = ""

    @classmethod
    def of(cls, extracted: ExtractionResult, answer: Response, *, is_leaf: bool) -> "Version":
        etag = answer.headers.get("etag", "")
        return cls(
            digest=_digest(extracted),
            is_leaf=is_leaf,
            etag=etag if len(etag) <= _LONGEST else "",
            modified="" if etag else _settled(answer),
        )

    @classmethod
    def read(cls, text: str | None) -> "Version | None":
        """None for one that another state of this module has written."""
        try:
            return cls._from(json.loads(text or "null"))
        except ValueError:
            return None

    @classmethod
    def _from(cls, value: Any) -> "Version | None":
        match value:
            case [int(reading), str(digest), int(leaf), str(etag), str(modified)] if (
                reading == _READING
            ):
                return cls(digest=digest, is_leaf=bool(leaf), etag=etag, modified=modified)
            case _:
                return None

    def written(self) -> str:
        return json.dumps([_READING, self.digest, int(self.is_leaf), self.etag, self.modified])

    def conditions(self) -> Mapping[str, str]:
        """The headers by which a server need not send again what has not changed."""
        if self.etag:
            return {"If-None-Match": self.etag}
        return {"If-Modified-Since": self.modified} if self.modified else {}


def _digest(extracted: ExtractionResult) -> str:
    said = [
        extracted.title,
        [[one.text, one.kind, one.place.heading_path] for one in extracted.sections],
        sorted(extracted.metadata.items()),
        [(one.name, one.email) for one in extracted.authors],
        str(extracted.created_at),
        str(extracted.updated_at),
    ]
    return sha256(json.dumps(said).encode("utf-8")).hexdigest()[:32]


def _settled(answer: Response) -> str:
    """Last-Modified, where it surely tells this state of the page."""
    modified = answer.headers.get("last-modified", "")
    try:
        settled = parsedate_to_datetime(answer.headers.get("date", "")) - _SETTLED
        return modified if parsedate_to_datetime(modified) <= settled else ""
    except (ValueError, TypeError, IndexError, OverflowError):
        return ""
