"""The cache of a session: what is the same search, what is counted, and that it is of one conversation or one turn."""

import logging
import threading
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.store import web_cache
from backend.store.chat import conversations
from backend.store.database import Database, open_database
from backend.store.owner import ConversationOwner
from backend.store.web_cache import SESSION, CachedSession, CacheKind, CacheLimits, EntryKey
from backend.web_search import session_cache
from backend.web_search.cached_content import (
    CachedResults,
    decode_page,
    decode_results,
    encode_page,
    encode_results,
)
from backend.web_search.results import Freshness, PageDate, PageLink, WebPage, WebQuery, WebResult
from backend.web_search.session_cache import (
    MAX_ENTRIES,
    ConversationEntries,
    Outcome,
    SessionCache,
    TurnEntries,
)
from connectors.errors import TemporarilyUnavailableError
from tests.support.conversations import OWNER, START, begin
from tests.support.databases import sqlite_in

RESULTS = tuple(
    WebResult(f"Title {n}", f"https://example.com/{n}", "…", START, "local") for n in range(5)
)
PAGE = WebPage(
    "https://example.com/a",
    "A",
    "text",
    PageDate(START, is_guess=True),
    "en",
    (PageLink("u", "t"),),
)
QUERY = WebQuery("leave law", 5)


@dataclass(frozen=True)
class Counted:
    lookups: Counter[tuple[CacheKind, Outcome]] = field(default_factory=Counter)

    def looked_up_in_web_cache(self, kind: CacheKind, outcome: Outcome) -> None:
        self.lookups[kind, outcome] += 1


@pytest.fixture(params=["turn", "conversation"])
def cache(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SessionCache]:
    if request.param == "turn":
        yield SessionCache(TurnEntries(), Counted())
        return
    clock = iter(range(1_000_000))
    with closing(open_database(sqlite_in(tmp_path))) as database:
        yield cache_of(
            database, begin_session(database), lambda: START + timedelta(milliseconds=next(clock))
        )


def begin_session(database: Database) -> CachedSession:
    return CachedSession(OWNER, begin(database).answer.conversation_id)


def cache_of(
    database: Database, session: CachedSession, now: Callable[[], datetime] = lambda: START
) -> SessionCache:
    return SessionCache(ConversationEntries(database, session, now), Counted())


def lookups(cache: SessionCache) -> Counter[tuple[CacheKind, Outcome]]:
    assert isinstance(cache.observer, Counted)
    return cache.observer.lookups


def test_a_search_is_found_again_and_counted_and_logged(
    cache: SessionCache, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "quarry.web")
    assert cache.find_results(QUERY) is None
    cache.keep_results(QUERY, RESULTS)
    assert cache.find_results(QUERY) == RESULTS
    assert cache.find_page(PAGE.url) is None
    cache.keep_page(PAGE.url, PAGE)
    assert cache.find_page(f"{PAGE.url}#part") == PAGE
    assert lookups(cache) == {
        (kind, outcome): 1 for kind in ("search", "page") for outcome in ("hit", "miss")
    }
    assert [record.message for record in caplog.records] == [
        "a search was found in the web cache of its session",
        "a page was found in the web cache of its session",
    ]
    assert "leave" not in caplog.text


@pytest.mark.parametrize("other", ["  leave\tlaw \n", unicodedata.normalize("NFD", "leave law")])
def test_blanks_and_the_form_of_letters_make_no_other_search(
    cache: SessionCache, other: str
) -> None:
    cache.keep_results(QUERY, RESULTS)
    assert cache.find_results(replace(QUERY, text=other)) == RESULTS


def test_letters_may_be_composed_or_not(cache: SessionCache) -> None:
    composed, decomposed = "Müller", unicodedata.normalize("NFD", "Müller")
    assert composed != decomposed
    cache.keep_results(WebQuery(composed, 5), RESULTS)
    assert cache.find_results(WebQuery(decomposed, 5)) == RESULTS


@pytest.mark.parametrize(
    "other",
    [
        replace(QUERY, text="Leave law"),
        replace(QUERY, text="leavelaw"),
        replace(QUERY, freshness=Freshness.DAY),
        replace(QUERY, language="de"),
        replace(QUERY, limit=6),
        replace(QUERY, sites=("example.com",)),
    ],
)
def test_what_may_have_other_results_is_another_search(
    cache: SessionCache, other: WebQuery
) -> None:
    cache.keep_results(QUERY, RESULTS)
    assert cache.find_results(other) is None


def test_a_search_for_fewer_or_of_which_there_were_no_more_is_the_same(cache: SessionCache) -> None:
    cache.keep_results(QUERY, RESULTS[:3])
    assert cache.find_results(replace(QUERY, limit=2)) == RESULTS[:2]
    assert cache.find_results(replace(QUERY, limit=50)) == RESULTS[:3]
    cache.keep_results(QUERY, ())
    assert cache.find_results(QUERY) == ()


def test_the_least_recently_used_of_twenty_leaves(cache: SessionCache) -> None:
    queries = [WebQuery(f"query {n}", 5) for n in range(MAX_ENTRIES + 1)]
    cache.keep_page(PAGE.url, PAGE)
    for query in queries[:-1]:
        cache.keep_results(query, RESULTS)
    assert cache.find_results(queries[0]) == RESULTS
    cache.keep_results(queries[-1], RESULTS)
    assert MAX_ENTRIES == 20
    assert cache.find_results(queries[1]) is None
    assert all(cache.find_results(query) for query in (queries[0], *queries[2:]))
    assert cache.find_page(PAGE.url) == PAGE


def test_pages_are_bounded_in_bytes(cache: SessionCache, monkeypatch: pytest.MonkeyPatch) -> None:
    one = len(encode_page(PAGE))
    monkeypatch.setitem(session_cache.LIMITS, "page", CacheLimits(20, 2 * one + 10))
    for name in "abc":
        cache.keep_page(name, PAGE)
    assert [cache.find_page(name) is not None for name in "abc"] == [False, True, True]
    cache.keep_page("huge", replace(PAGE, text="".join(map(chr, range(0x4E00, 0x9000)))))
    cache.keep_page("too long", replace(PAGE, text="a" * 2_000_001))
    assert cache.find_page("huge") is None
    assert cache.find_page("too long") is None
    assert cache.find_page("c") == PAGE


def test_the_session_of_a_conversation_is_that_of_every_process_and_of_no_other(
    database_url: str,
) -> None:
    with (
        closing(open_database(database_url)) as here,
        closing(open_database(database_url)) as there,
    ):
        session, other = begin_session(here), begin_session(here)
        cache_of(here, session).keep_results(QUERY, RESULTS)
        assert cache_of(there, session).find_results(QUERY) == RESULTS
        assert cache_of(there, other).find_results(QUERY) is None
        stranger = CachedSession(ConversationOwner(7), session.conversation_id)
        assert cache_of(there, stranger).find_results(QUERY) is None
        assert cache_of(there, session, lambda: START + SESSION).find_results(QUERY) is None
        conversations.remove(here, OWNER, session.conversation_id)
        assert cache_of(there, session).find_results(QUERY) is None
        cache_of(there, session).keep_results(QUERY, RESULTS)


def test_turns_share_nothing() -> None:
    one, other = (SessionCache(TurnEntries(), Counted()) for _ in range(2))
    one.keep_results(QUERY, RESULTS)
    assert other.find_results(QUERY) is None


def test_many_threads_keep_what_one_would() -> None:
    cache = SessionCache(TurnEntries(), Counted())

    def work(first: int) -> None:
        for n in range(first, first + 40):
            cache.keep_results(WebQuery(str(n), 5), RESULTS)
            cache.find_results(WebQuery(str(n % 7), 5))

    threads = [threading.Thread(target=work, args=(50 * n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    found = [cache.find_results(WebQuery(str(n), 5)) for n in range(400)]
    assert sum(one is not None for one in found) == MAX_ENTRIES


def test_a_database_that_does_not_answer_costs_the_cache_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise TemporarilyUnavailableError("the database is locked", timedelta())

    with closing(open_database(sqlite_in(tmp_path))) as database:
        cache = cache_of(database, begin_session(database))
        cache.keep_results(QUERY, RESULTS)
        monkeypatch.setattr(web_cache, "mark_used", fail)
        assert cache.find_results(QUERY) == RESULTS
        for name in ("get", "put"):
            monkeypatch.setattr(web_cache, name, fail)
        assert cache.find_results(QUERY) is None
        cache.keep_results(QUERY, RESULTS)
    assert "the database is locked" in caplog.text


times = st.none() | st.datetimes(timezones=st.just(UTC))
results = st.builds(WebResult, st.text(), st.text(), st.text(), times, st.text())
found_pages = st.builds(
    WebPage,
    st.text(),
    st.text(),
    st.text(st.characters()),
    st.none() | st.builds(PageDate, st.datetimes(timezones=st.just(UTC)), st.booleans()),
    st.none() | st.text(),
    st.lists(st.builds(PageLink, st.text(), st.text())).map(tuple),
)


@given(st.lists(results).map(tuple), st.integers(1, 99))
def test_results_come_back_as_they_were(given_ones: tuple[WebResult, ...], limit: int) -> None:
    cached = CachedResults(given_ones, limit)
    assert decode_results(encode_results(cached)) == cached


@given(found_pages)
def test_pages_come_back_as_they_were(page: WebPage) -> None:
    assert decode_page(encode_page(page)) == page
    assert decode_page(encode_page(replace(page, text="\ud800"))) == replace(page, text="\ud800")


@given(st.binary())
def test_damaged_content_is_a_miss(content: bytes) -> None:
    entries = TurnEntries()
    cache = SessionCache(entries, Counted())
    cache.keep_results(QUERY, RESULTS)
    (entry,) = entries._kept
    entries.put(entry, content)
    entries.put(EntryKey("page", entry.key), content)
    assert cache.find_results(QUERY) is None
    assert decode_page(content) is None
