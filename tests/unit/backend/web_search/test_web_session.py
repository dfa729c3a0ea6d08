"""The web as the turns of a session use it: what is asked once, what is left out, and what is said where nothing comes."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from backend.store.web_search import ProviderValues, StoredProvider
from backend.web_search.domains import DomainRules
from backend.web_search.pacing import Pacer
from backend.web_search.page_snippets import SnippetBudget
from backend.web_search.results import BlockedPage, UnreadablePage, WebPage
from backend.web_search.search import LONGEST_QUERY, WebSearch, WebSearchSetup
from connectors.errors import TemporarilyUnavailableError
from indexing.runtime.deadline import Deadline
from tests.support.chat_turns import DENMARK, FOUND, LYON, MATCH
from tests.support.open_web import OpenWeb, open_web
from tests.support.services.serving import Reply


@pytest.fixture
def web() -> Iterator[OpenWeb]:
    with open_web(FOUND) as opened:
        yield opened


def soon() -> Deadline:
    return Deadline.after(20)


def test_a_search_says_whom_it_was_sent_to_and_the_next_one_nobody(web: OpenWeb) -> None:
    session = web.session()
    first, second = (session.find("rain  in\nLyon", 5, soon()) for _ in range(2))
    assert first.query == second.query == "rain in Lyon"
    assert (
        [one.url for one in first.results] == [one.url for one in second.results] == [LYON, MATCH]
    )
    assert (first.receivers, second.receivers) == (("Tavily (127.0.0.1)",), ())
    assert web.queries == ["rain in Lyon"]


def test_what_admins_have_set_is_read_once_for_a_search_and_once_for_pages(web: OpenWeb) -> None:
    session = web.session()
    session.find("Lyon", 5, soon())
    assert web.setups_read == 1
    session.find("Lyon", 5, soon())
    assert web.setups_read == 2
    session.read([web.pages.url("/en/pool"), web.pages.url("/en/other")], soon())
    assert web.setups_read == 3


def test_more_results_than_were_cached_are_searched(web: OpenWeb) -> None:
    session = web.session()
    assert len(session.find("Lyon", 1, soon()).results) == 1
    assert len(session.find("Lyon", 5, soon()).results) == 2
    assert len(session.find("Lyon", 1, soon()).results) == 1
    assert len(web.queries) == 2


def test_what_finds_nothing_is_no_problem_and_is_not_cached(web: OpenWeb) -> None:
    session = web.session()
    for _ in range(2):
        finding = session.find("xyzzy", 5, soon())
        assert (finding.results, finding.problem) == ((), "")
    assert len(web.queries) == 2


def test_a_long_query_is_cut(web: OpenWeb) -> None:
    finding = web.session().find("Lyon " * 200, 5, soon())
    assert len(finding.query) <= LONGEST_QUERY
    assert finding.results


def test_domains_that_are_blocked_meanwhile_are_left_out_of_what_is_cached(web: OpenWeb) -> None:
    session = web.session()
    assert len(session.find("Lyon", 5, soon()).results) == 2
    web.rules = replace(web.rules, blocked_domains=("sky.example",))
    assert [one.url for one in session.find("Lyon", 5, soon()).results] == [MATCH]
    assert len(web.queries) == 1


def test_a_session_narrows_the_domains_of_the_admins(web: OpenWeb) -> None:
    session = web.session(DomainRules.of(("law.example",), ()))
    assert [one.url for one in session.find("leave Lyon", 5, soon()).results] == [DENMARK]
    [outcome] = session.read([web.pages.url("/en/pool")], soon())
    assert outcome == UnreadablePage(
        web.pages.url("/en/pool"), "Pages of news.test may not be read here."
    )
    assert web.pages.requests == []


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (Reply(status=500), "The web search does not answer now."),
        (Reply(status=429, headers={"Retry-After": "86400"}), "has reached its limit"),
    ],
)
def test_what_fails_is_said(web: OpenWeb, reply: Reply, problem: str) -> None:
    web.engine.instead = reply
    finding = web.session().find("Lyon", 5, soon())
    assert finding.results == ()
    assert problem in finding.problem
    web.engine.instead = None
    web.providers = (web.make_provider(2, "other"),)
    assert web.session().find("Lyon", 5, soon()).problem == ""


def test_no_time_and_no_switch_are_said(web: OpenWeb) -> None:
    session = web.session()
    assert "no time left" in session.find("Lyon", 5, Deadline.after(0)).problem
    web.rules = replace(web.rules, is_on=False)
    assert "switched off" in session.find("Lyon", 5, soon()).problem
    [outcome] = session.read([web.pages.url("/en/pool")], soon())
    assert isinstance(outcome, UnreadablePage)
    assert "switched off" in outcome.reason
    assert web.queries == web.pages.requests == []


def test_a_database_that_does_not_answer_is_a_finding_too(web: OpenWeb) -> None:
    def read_setup() -> WebSearchSetup:
        raise TemporarilyUnavailableError("The database does not answer.", timedelta(seconds=1))

    search = WebSearch(read_setup, web._open, web._store_wait, Pacer())
    session = replace(web.session(), search=search)
    assert session.keeps_internal_names
    assert session.find("Lyon", 5, soon()).problem == "The web search does not answer now."
    [outcome] = session.read([web.pages.url("/en/pool")], soon())
    assert outcome == UnreadablePage(web.pages.url("/en/pool"), "The database does not answer.")


def test_a_redirect_to_a_forbidden_domain_is_not_followed(web: OpenWeb) -> None:
    web.rules = replace(web.rules, blocked_domains=("internal.test",))
    moved = web.pages.url("/moved/private")
    [outcome] = web.session().read([moved], soon())
    assert outcome == UnreadablePage(moved, "Pages of internal.test may not be read here.")
    assert web.pages.requests == ["/moved/private"]
    assert web.pages.lookups == ["news.test"]


def test_pages_are_read_side_by_side_once_each_and_in_their_order(web: OpenWeb) -> None:
    session = web.session()
    urls = [web.pages.url(path) for path in ("/walls/empty", "/en/pool", "/status/404")]
    for _ in range(2):
        blocked, page, missing = session.read(urls, soon())
        assert isinstance(blocked, BlockedPage)
        assert isinstance(page, WebPage)
        assert isinstance(missing, UnreadablePage)
    assert web.pages.requests.count("/en/pool") == 1
    assert session.read([], soon()) == []


def test_parts_of_a_page_are_in_its_order(web: OpenWeb) -> None:
    text = "\n\n".join(
        f"Part {n} of the page. " + f"Word{n} is said here. " * 30 for n in range(30)
    )
    page = WebPage("https://a.example", "A", text, None, "en")
    budget = SnippetBudget(characters=2_000, snippets=3)
    chosen = web.session().choose_snippets(page, "Word20 or Word7?", budget, soon())
    assert sum(map(len, chosen)) <= 2_000
    places = [text.index(one) for one in chosen]
    assert places == sorted(places)
    assert any("Word7" in one for one in chosen)
    assert any("Word20" in one for one in chosen)


def test_providers_of_a_session_are_those_of_now(web: OpenWeb) -> None:
    session = web.session()
    web.providers = ()
    assert "No web search provider is enabled" in session.find("Lyon", 5, soon()).problem
    off = StoredProvider(
        id=3,
        values=ProviderValues(
            name="off",
            kind="tavily",
            settings={},
            sealed_credential=None,
            is_enabled=False,
            per_minute=None,
        ),
        wait=None,
    )
    web.providers = (off,)
    assert "No web search provider is enabled" in session.find("Lyon", 5, soon()).problem
