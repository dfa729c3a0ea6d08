"""What changed on a site since a moment, by its search: the oldest change first, none left out.

The search counts its results, so what changes meanwhile moves all that comes after it. So after each
page it is asked anew from where that page ended in time; only within one minute, which is as exactly
as it can be asked, its pages are followed. Moments are told as minutes before now, which mean the same
in every time zone.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from connectors.sources.confluence.client import id_of, inside, text_of, time_of
from connectors.sources.confluence.models import ContentKind
from connectors.sources.confluence.site import Wiki

_MINUTE = timedelta(minutes=1)
_DOUBTED = 10
"""Results at the end of a page. What was changed again since the search took note of it stands where it was,
and tells the later time: a page ends no later than the earliest of these."""
_MOST_KEYS = 50
"""Spaces that the search is told; where there are more it is asked for all."""


@dataclass(frozen=True, slots=True)
class Touched:
    """One page of what changed."""

    ids: dict[str, ContentKind]
    """Of pages and blog posts: changed themselves, or a comment or an attachment of theirs was."""
    then: datetime
    """From where in time to go on after it."""


def changed(wiki: Wiki, since: datetime, keys: Sequence[str]) -> Iterator[Touched]:
    """In the spaces of these keys; where there are very many, in others too. What changed long ago may
    come with it; what changes meanwhile comes again.

    Raises:
        ActionRequiredError, TemporarilyUnavailableError, BadAnswer: see `connectors.sources.confluence.site.Wiki`.
    """
    while True:
        asked = {"cql": _question(wiki, since, keys), "expand": "container,version"}
        then = since
        for leaf in wiki.searching(wiki.api, "/rest/api/content/search", asked, ""):
            moments = [time_of(one, "version", "when") for one in leaf.results]
            then = max(since, min(moments[-_DOUBTED:], default=since) - _MINUTE)
            yield Touched(dict(filter(None, map(_place, leaf.results))), then)
            if leaf.next is None:
                return
            if then - since > _MINUTE:
                break
        since = then


def _question(wiki: Wiki, since: datetime, keys: Sequence[str]) -> str:
    minutes = max(0, math.ceil((wiki.api.now - since) / _MINUTE)) + 1
    quoted = ",".join('"' + one.replace("\\", "\\\\").replace('"', '\\"') + '"' for one in keys)
    where = f"space in ({quoted}) and " if 0 < len(keys) <= _MOST_KEYS else ""
    kinds = "type in (page,blogpost,comment,attachment)"
    return f'{where}{kinds} and lastmodified >= now("-{minutes}m") order by lastmodified asc'


def _place(raw: dict[str, Any]) -> tuple[str, ContentKind] | None:
    """Nothing of what hangs on a draft, or on what is no page."""
    holder = raw if raw.get("type") in {*ContentKind} else inside(raw, "container")
    if not isinstance(holder, dict) or text_of(holder, "type") not in {*ContentKind}:
        return None
    return id_of(holder), ContentKind(text_of(holder, "type"))
