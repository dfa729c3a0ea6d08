"""Searches and pages of a session, so that what was searched or read before makes no request.

The session is that of a conversation: it ends when the conversation is deleted, or an hour has passed without a turn, and
is never another person's. A turn that belongs to no conversation has a cache in memory for itself alone.
"""

import hashlib
import logging
import threading
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol, TypeAlias

from backend.store import web_cache
from backend.store.database import Database
from backend.store.web_cache import CachedSession, CacheKind, CacheLimits, EntryKey
from backend.web_search.cached_content import (
    CachedResults,
    decode_page,
    decode_results,
    encode_page,
    encode_results,
)
from backend.web_search.results import WebPage, WebQuery, WebResult
from connectors.errors import TemporarilyUnavailableError

MAX_ENTRIES = 20
"""Searches, and as many pages; those not used for longest leave first."""
LIMITS: Mapping[CacheKind, CacheLimits] = {
    "search": CacheLimits(MAX_ENTRIES, 1 << 20),
    "page": CacheLimits(MAX_ENTRIES, 4 << 20),
}
MAX_PAGE_CHARACTERS = 2_000_000
"""Of a page that is cached."""

LOG = logging.getLogger("quarry.web")

Outcome: TypeAlias = Literal["hit", "miss"]


class CacheObserver(Protocol):
    def looked_up_in_web_cache(self, kind: CacheKind, outcome: Outcome) -> None:
        """Take note that a search or a page was looked for in a cache."""


class CacheEntries(Protocol):
    """What a cache keeps its entries in."""

    def get(self, entry: EntryKey) -> bytes | None: ...

    def put(self, entry: EntryKey, content: bytes) -> None: ...


@dataclass(frozen=True, slots=True)
class ConversationEntries:
    """Cache entries stored per conversation, for every process that serves it.

    While the database does not answer, nothing is found and nothing kept: a search needs no cache.
    """

    database: Database
    session: CachedSession
    now: Callable[[], datetime]

    def get(self, entry: EntryKey) -> bytes | None:
        content: bytes | None = None
        try:
            content = web_cache.get(self.database, self.session, entry, self.now())
            if content is not None:
                web_cache.mark_used(self.database, self.session, entry, self.now())
        except TemporarilyUnavailableError as error:
            LOG.warning("the web cache of a conversation does not answer: %s", error)
        return content

    def put(self, entry: EntryKey, content: bytes) -> None:
        limits = LIMITS[entry.kind]
        try:
            web_cache.put(self.database, self.session, entry, content, limits, self.now())
        except TemporarilyUnavailableError as error:
            LOG.warning("the web cache of a conversation does not answer: %s", error)


@dataclass(frozen=True, slots=True)
class TurnEntries:
    """Entries in memory. Safe to use from several threads."""

    _kept: OrderedDict[EntryKey, bytes] = field(default_factory=OrderedDict)
    """Those used last at the end."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, entry: EntryKey) -> bytes | None:
        with self._lock:
            if entry in self._kept:
                self._kept.move_to_end(entry)
            return self._kept.get(entry)

    def put(self, entry: EntryKey, content: bytes) -> None:
        limits = LIMITS[entry.kind]
        if len(content) > limits.size:
            return
        with self._lock:
            self._kept[entry] = content
            self._kept.move_to_end(entry)
            while self._exceeds(entry.kind, limits):
                del self._kept[next(one for one in self._kept if one.kind == entry.kind)]

    def _exceeds(self, kind: CacheKind, limits: CacheLimits) -> bool:
        sizes = [len(content) for one, content in self._kept.items() if one.kind == kind]
        return len(sizes) > limits.entries or sum(sizes) > limits.size


@dataclass(frozen=True, slots=True)
class SessionCache:
    """What one session has found and read on the web."""

    entries: CacheEntries
    observer: CacheObserver

    def find_results(self, query: WebQuery) -> tuple[WebResult, ...] | None:
        """Return the results of a query that was searched before; None where it was not."""
        content = self.entries.get(_search_key(query))
        cached = decode_results(content) if content is not None else None
        found = cached.answer(query.limit) if cached is not None else None
        self._note("search", "miss" if found is None else "hit")
        return found

    def keep_results(self, query: WebQuery, results: Sequence[WebResult]) -> None:
        cached = CachedResults(tuple(results), query.limit)
        self.entries.put(_search_key(query), encode_results(cached))

    def find_page(self, url: str) -> WebPage | None:
        """Return a page that was read before; None where it was not."""
        content = self.entries.get(_page_key(url))
        found = decode_page(content) if content is not None else None
        self._note("page", "miss" if found is None else "hit")
        return found

    def keep_page(self, url: str, page: WebPage) -> None:
        """Keep a page under the address that it was asked by; one that is too long is not kept."""
        if len(page.text) <= MAX_PAGE_CHARACTERS:
            self.entries.put(_page_key(url), encode_page(page))

    def _note(self, kind: CacheKind, outcome: Outcome) -> None:
        self.observer.looked_up_in_web_cache(kind, outcome)
        if outcome == "hit":
            LOG.info("a %s was found in the web cache of its session", kind)


def _search_key(query: WebQuery) -> EntryKey:
    """Key a search by its query, and by what else changes the results; their number is compared with the entry."""
    text = " ".join(unicodedata.normalize("NFC", query.text).split())
    return EntryKey(
        "search", _hash(text, query.freshness or "", query.language or "", *query.sites)
    )


def _page_key(url: str) -> EntryKey:
    return EntryKey("page", _hash(url.partition("#")[0]))


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()
