"""The chain of providers: who is asked, who answers, and what is told of those that fail."""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from backend.store.web_search import ProviderValues, StoredProvider, Wait, WebRules
from backend.web_search.domains import DomainRules
from backend.web_search.pacing import Pacer
from backend.web_search.providers.provider import QuotaExceededError, SearchProvider
from backend.web_search.results import Freshness, WebQuery, WebResult
from backend.web_search.search import LONGEST_QUERY, WebSearch, WebSearchSetup
from backend.web_search.search_outcome import FailureKind, WebOutcome
from connectors.errors import (
    ConflictError,
    InvalidInputError,
    NotConfiguredError,
    SourceAuthError,
    SourceError,
    TemporarilyUnavailableError,
)
from connectors.http_client.address_guard import AddressNotAllowedError
from connectors.http_client.response import RateLimitedError
from indexing.runtime.deadline import CancelToken, Deadline, DeadlineExceededError

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
Answer = Callable[[WebQuery, Deadline], Sequence[WebResult]] | Exception | Sequence[str]


def stored(number: int, name: str, **values: Any) -> StoredProvider:
    wait = values.pop("wait", None)
    chosen = {
        "kind": "searxng",
        "settings": {"api_url": f"https://{name}.example.com"},
        "sealed_credential": None,
        "is_enabled": True,
        "per_minute": None,
        **values,
    }
    return StoredProvider(id=number, values=ProviderValues(name=name, **chosen), wait=wait)


class Chain:
    """A web search whose providers answer as they are told."""

    def __init__(self, **answers: Answer) -> None:
        self.answers = answers
        self.providers = [stored(number, name) for number, name in enumerate(answers, 1)]
        self.rules = WebRules(
            is_on=True, allowed_domains=(), blocked_domains=(), keeps_internal_names=True
        )
        self.asked: list[tuple[str, WebQuery]] = []
        self.waits: list[tuple[str, Wait | None]] = []
        self.pacer = Pacer()
        self.web = WebSearch(self._setup, self._open, self._store, self.pacer)

    def _setup(self) -> WebSearchSetup:
        return WebSearchSetup(rules=self.rules, providers=tuple(self.providers))

    def _open(self, provider: StoredProvider) -> SearchProvider:
        chain, answer = self, self.answers[provider.name]

        class Scripted:
            def search(self, query: WebQuery, deadline: Deadline) -> Sequence[WebResult]:
                chain.asked.append((provider.name, query))
                match answer:
                    case Exception():
                        raise answer
                    case list():
                        return [make(url, provider.name) for url in answer]
                    case _:
                        return answer(query, deadline)  # type: ignore[operator]

        return Scripted()

    def _store(self, provider: StoredProvider, wait: Wait | None) -> None:
        self.waits.append((provider.name, wait))

    def search(self, seconds: float = 20, **more: Any) -> WebOutcome:
        given = {"query": "leave", "limit": 5, "freshness": None, "language": None, **more}
        return self.web.search(**{"deadline": Deadline.after(seconds), **given})


def make(url: str, provider: str) -> WebResult:
    return WebResult("Title", url, "Summary", None, provider)


A, B = "https://a.example/", "https://b.example/"


def failures(outcome: WebOutcome) -> list[tuple[str, FailureKind | None]]:
    return [(one.provider, one.failure.kind if one.failure else None) for one in outcome.attempts]


def test_the_first_provider_answers_and_no_other_is_asked() -> None:
    chain = Chain(one=[A, B], two=[B])
    outcome = chain.search(freshness=Freshness.WEEK, language="en")
    assert [one.url for one in outcome.results] == [A, B]
    assert outcome.answered_by == "one"
    assert chain.asked == [("one", WebQuery("leave", 5, Freshness.WEEK, "en"))]
    (attempt,) = outcome.attempts
    assert (attempt.found, attempt.service, attempt.receiver) == (2, "SearXNG", "one.example.com")
    assert attempt.sent == WebQuery("leave", 5, Freshness.WEEK, "en")


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (SourceAuthError("the key is wrong"), FailureKind.CREDENTIAL),
        (QuotaExceededError("used up", HOUR), FailureKind.QUOTA),
        (RateLimitedError("wait", MINUTE), FailureKind.RATE_LIMIT),
        (RateLimitedError("wait", 30 * 24 * HOUR), FailureKind.QUOTA),
        (TemporarilyUnavailableError("down", MINUTE), FailureKind.UNAVAILABLE),
        (DeadlineExceededError(), FailureKind.TOO_SLOW),
        (SourceError("nonsense"), FailureKind.UNUSABLE),
        (AddressNotAllowedError("desk is in a private network"), FailureKind.SETTINGS),
        (InvalidInputError("not valid any more"), FailureKind.SETTINGS),
        (NotConfiguredError("an extra is missing"), FailureKind.SETTINGS),
        ([], FailureKind.NOTHING_FOUND),
        (["javascript:alert(1)"], FailureKind.NOTHING_FOUND),
    ],
)
def test_the_next_provider_answers_where_one_does_not(answer: Answer, kind: FailureKind) -> None:
    chain = Chain(one=answer, two=[A])
    outcome = chain.search()
    assert outcome.answered_by == "two"
    assert {one.provider for one in outcome.results} == {"two"}
    assert failures(outcome) == [("one", kind), ("two", None)]
    first = outcome.attempts[0]
    assert first.failure is not None
    assert first.failure.reason[0].isupper()
    assert first.failure.reason.endswith(".")
    assert first.sent == WebQuery("leave", 5)


def test_where_none_answers_all_failures_are_told() -> None:
    outcome = Chain(one=SourceError("no"), two=[], three=SourceAuthError("key")).search()
    assert outcome.results == ()
    assert outcome.answered_by is None
    assert failures(outcome) == [
        ("one", FailureKind.UNUSABLE),
        ("two", FailureKind.NOTHING_FOUND),
        ("three", FailureKind.CREDENTIAL),
    ]


def test_a_provider_that_cannot_be_opened_is_a_failure() -> None:
    chain = Chain(one=[A], two=[B])
    opened = chain._open

    def refuse(provider: StoredProvider) -> SearchProvider:
        if provider.name == "one":
            raise NotConfiguredError("A credential cannot be decrypted")
        return opened(provider)

    chain.web = WebSearch(chain._setup, refuse, chain._store, chain.pacer)
    assert failures(chain.search()) == [("one", FailureKind.SETTINGS), ("two", None)]


def test_a_provider_that_fails_in_the_middle_of_its_work_is_replaced() -> None:
    """It answers the first search, and fails within the second."""
    calls = []

    def answer(query: WebQuery, deadline: Deadline) -> list[WebResult]:
        assert deadline.remaining()
        calls.append(query)
        if len(calls) > 1:
            raise TemporarilyUnavailableError("the connection broke", MINUTE)
        return [make(A, "one")]

    chain = Chain(one=answer, two=[B])
    assert chain.search().answered_by == "one"
    assert chain.search().answered_by == "two"


def test_a_slow_provider_leaves_time_for_the_next() -> None:
    had: dict[str, float] = {}

    def wait(_: WebQuery, deadline: Deadline) -> list[WebResult]:
        name = "slow" if "slow" not in had else "slower"
        had[name] = deadline.remaining()
        deadline.sleep(60)
        raise TemporarilyUnavailableError("no response", MINUTE)

    def answer(_: WebQuery, deadline: Deadline) -> list[WebResult]:
        had["last"] = deadline.remaining()
        return [make(A, "last")]

    outcome = Chain(slow=wait, slower=wait, last=answer).search(seconds=2.0)
    assert failures(outcome) == [
        ("slow", FailureKind.TOO_SLOW),
        ("slower", FailureKind.TOO_SLOW),
        ("last", None),
    ]
    assert had["slow"] <= 1.0
    assert had["last"] > 0


def test_the_only_provider_has_all_the_time() -> None:
    had: list[float] = []

    def answer(_: WebQuery, deadline: Deadline) -> list[WebResult]:
        had.append(deadline.remaining())
        return [make(A, "one")]

    chain = Chain(one=answer, two=[B])
    chain.providers[1] = stored(2, "two", wait=Wait(until=datetime.now(UTC) + HOUR, reason="Used."))
    chain.search(seconds=100)
    assert had[0] > 90


def test_a_wait_is_stored_and_kept_to() -> None:
    chain = Chain(one=RateLimitedError("wait", 2 * HOUR), two=[A])
    chain.search()
    ((name, wait),) = chain.waits
    assert name == "one"
    assert wait is not None
    assert timedelta() <= datetime.now(UTC) + 2 * HOUR - wait.until < MINUTE
    chain.providers[0] = stored(1, "one", wait=wait)
    outcome = chain.search()
    assert [name for name, _ in chain.asked] == ["one", "two", "two"]
    assert failures(outcome) == [("one", FailureKind.QUOTA), ("two", None)]
    assert outcome.attempts[0].sent is None
    assert outcome.attempts[0].failure is not None
    assert "It is asked again after" in outcome.attempts[0].failure.reason


def test_a_wait_that_has_passed_is_over() -> None:
    chain = Chain(one=[A])
    over = Wait(until=datetime.now(UTC) - MINUTE, reason="Used up.")
    chain.providers[0] = stored(1, "one", wait=over)
    assert chain.search().answered_by == "one"


def test_a_short_wait_is_kept_to_without_being_stored() -> None:
    chain = Chain(one=RateLimitedError("wait", timedelta(seconds=30)), two=[A])
    chain.search()
    outcome = chain.search()
    assert chain.waits == []
    assert [name for name, _ in chain.asked] == ["one", "two", "two"]
    assert failures(outcome)[0] == ("one", FailureKind.RATE_LIMIT)


def test_the_limit_of_a_provider_is_kept_to() -> None:
    chain = Chain(one=[A], two=[B])
    chain.providers[0] = stored(1, "one", per_minute=2)
    answered = [chain.search().answered_by for _ in range(4)]
    assert answered == ["one", "one", "two", "two"]


def test_a_wait_that_cannot_be_stored_does_not_end_the_search() -> None:
    chain = Chain(one=QuotaExceededError("used up", HOUR), two=[A])

    def fail(_: StoredProvider, __: Wait | None) -> None:
        raise TemporarilyUnavailableError("The database is locked.", MINUTE)

    chain.web = WebSearch(chain._setup, chain._open, fail, chain.pacer)
    assert chain.search().answered_by == "two"


def test_domains_of_admins_and_assistants_are_kept_to() -> None:
    urls = [A, "https://docs.b.example/x", "https://c.example/", "https://bad.b.example/"]
    chain = Chain(one=urls)
    chain.rules = WebRules(
        is_on=True,
        allowed_domains=("a.example", "b.example"),
        blocked_domains=("bad.b.example",),
        keeps_internal_names=True,
    )
    assert [one.url for one in chain.search().results] == urls[:2]
    own = DomainRules.of(["b.example"], [])
    assert [one.url for one in chain.search(domains=own).results] == urls[1:2]
    assert chain.asked[0][1] == WebQuery("leave", 20, sites=("a.example", "b.example"))
    assert chain.asked[1][1].sites == ("b.example",)
    apart = chain.search(domains=DomainRules.of(["c.example"], []))
    assert (apart.results, apart.attempts) == ((), ())
    assert len(chain.asked) == 2


def test_the_number_of_results_is_kept_to_after_the_rules() -> None:
    chain = Chain(one=[f"https://{number}.example/" for number in range(30)])
    chain.rules = WebRules(
        is_on=True, allowed_domains=(), blocked_domains=("0.example",), keeps_internal_names=True
    )
    results = chain.search(limit=3).results
    assert [one.url for one in results] == [f"https://{number}.example/" for number in (1, 2, 3)]


def test_many_allowed_domains_are_filtered_alone() -> None:
    chain = Chain(one=["https://d7.example/"])
    many = tuple(f"d{number}.example" for number in range(30))
    chain.rules = WebRules(
        is_on=True, allowed_domains=many, blocked_domains=(), keeps_internal_names=True
    )
    assert len(chain.search().results) == 1
    assert chain.asked[0][1].sites == ()


def test_queries_are_one_bounded_line() -> None:
    chain = Chain(one=[A])
    chain.search(query=f" parental\n leave {'x' * 1_000}")
    sent = chain.asked[0][1].text
    assert sent.startswith("parental leave x")
    assert len(sent) == LONGEST_QUERY


def test_the_web_that_is_off_asks_nobody() -> None:
    chain = Chain(one=[A])
    chain.rules = WebRules(
        is_on=False, allowed_domains=(), blocked_domains=(), keeps_internal_names=True
    )
    assert not chain.web.is_on
    with pytest.raises(ConflictError, match="quarry web on"):
        chain.search()
    assert chain.asked == []


def test_without_a_provider_that_may_be_asked_it_is_said() -> None:
    chain = Chain(one=[A])
    chain.providers[0] = stored(1, "one", is_enabled=False)
    with pytest.raises(ConflictError, match="quarry web providers add"):
        chain.search()


def test_a_search_that_was_cancelled_asks_nobody() -> None:
    chain, token = Chain(one=[A]), CancelToken()
    token.cancel()
    with pytest.raises(DeadlineExceededError):
        chain.search(deadline=Deadline.after(9, token))
    assert chain.asked == []


def test_asynchronous_searches_run_beside_each_other() -> None:
    both = threading.Barrier(2, timeout=20)

    def answer(_: WebQuery, __: Deadline) -> list[WebResult]:
        both.wait()
        return [make(A, "one")]

    async def ask() -> list[WebOutcome]:
        deadline = Deadline.after(30)
        searches = (chain.web.asearch(text, 5, None, None, deadline) for text in ("a", "b"))
        return await asyncio.gather(*searches)

    chain = Chain(one=answer)
    assert [one.answered_by for one in asyncio.run(ask())] == ["one", "one"]


def test_a_task_that_is_cancelled_asks_no_further_provider() -> None:
    started, ended = threading.Event(), threading.Event()

    def wait(_: WebQuery, deadline: Deadline) -> list[WebResult]:
        started.set()
        deadline.sleep(60)
        ended.set()
        raise TemporarilyUnavailableError("no response", MINUTE)

    async def cancel() -> None:
        task = asyncio.create_task(chain.web.asearch("leave", 5, None, None, Deadline.after(60)))
        await asyncio.to_thread(started.wait, 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    chain = Chain(one=wait, two=[A])
    began = time.monotonic()
    asyncio.run(cancel())
    assert ended.wait(20)
    assert time.monotonic() - began < 30
    assert [name for name, _ in chain.asked] == ["one"]


def test_a_test_asks_one_provider_whatever_is_set() -> None:
    chain = Chain(one=[A], two=[B])
    chain.rules = WebRules(
        is_on=False, allowed_domains=(), blocked_domains=(), keeps_internal_names=True
    )
    waiting = stored(2, "two", wait=Wait(until=datetime.now(UTC) + HOUR, reason="Used up."))
    outcome = chain.web.test(waiting, "leave", 3, Deadline.after(9))
    assert outcome.answered_by == "two"
    assert chain.waits == [("two", None)]
    chain.answers["two"] = SourceAuthError("wrong key")
    failed = chain.web.test(waiting, "leave", 3, Deadline.after(9))
    assert failures(failed) == [("two", FailureKind.CREDENTIAL)]
    assert len(chain.waits) == 1
