"""What changed on a site since a time, found with its search: the oldest change first, none left out.

The search is paged by position, so a change meanwhile shifts all results that follow. Therefore, after
each page, the search is repeated from the time at which that page ended; only within one minute, the
resolution of a search, its pages are followed. Times are given as minutes before now, which are the same
in every time zone.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from connectors.http_client.api_client import find_text, find_value, get_time
from connectors.sources.confluence.client import get_id
from connectors.sources.confluence.models import ContentKind
from connectors.sources.confluence.site import Site

_MINUTE = timedelta(minutes=1)
_UNCERTAIN = 10
"""Results at the end of a page whose time is uncertain: a content that was changed again after the search
indexed it keeps its position but has the later time. A page ends no later than the earliest of these."""
_MAX_KEYS = 50
"""Space keys in one search; if there are more, all spaces are searched."""


@dataclass(frozen=True, slots=True)
class ChangedContents:
    """One page of a search for changes."""

    kinds: dict[str, ContentKind]
    """Ids of pages and blog posts that were changed, or that have a changed comment or attachment."""
    resume_since: datetime
    """The time from which to search after this page."""


def iterate_changes(site: Site, since: datetime, keys: Sequence[str]) -> Iterator[ChangedContents]:
    """Search for changes in the spaces with these keys.

    If there are many keys, changes in other spaces are included. Older changes may be included too; what
    changes meanwhile comes again.

    Raises:
        SourceAuthError, TemporarilyUnavailableError, ResponseError: see `ApiClient`.
    """
    while True:
        params = {"cql": _build_query(site, since, keys), "expand": "container,version"}
        resume_since = since
        for page in site.iterate_search(site.client, "/rest/api/content/search", params, ""):
            times = [get_time(one, "version", "when") for one in page.results]
            earliest = min(times[-_UNCERTAIN:], default=since)
            resume_since = max(since, earliest - _MINUTE)
            kinds = dict(filter(None, map(_find_content, page.results)))
            yield ChangedContents(kinds, resume_since)
            if page.next is None:
                return
            if resume_since - since > _MINUTE:
                break
        since = resume_since


def _build_query(site: Site, since: datetime, keys: Sequence[str]) -> str:
    minutes = max(0, math.ceil((site.client.now - since) / _MINUTE)) + 1
    quoted = ",".join('"' + one.replace("\\", "\\\\").replace('"', '\\"') + '"' for one in keys)
    in_spaces = f"space in ({quoted}) and " if 0 < len(keys) <= _MAX_KEYS else ""
    kinds = "type in (page,blogpost,comment,attachment)"
    return f'{in_spaces}{kinds} and lastmodified >= now("-{minutes}m") order by lastmodified asc'


def _find_content(raw: dict[str, Any]) -> tuple[str, ContentKind] | None:
    """Return the content that a result belongs to; None for drafts and other kinds of content."""
    content = raw if raw.get("type") in {*ContentKind} else find_value(raw, "container")
    if not isinstance(content, dict) or find_text(content, "type") not in {*ContentKind}:
        return None
    return get_id(content), ContentKind(find_text(content, "type"))
