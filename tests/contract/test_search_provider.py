"""Every provider of web search, against a local server that speaks its documented protocol."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from backend.web_search.domains import ANY_DOMAIN
from backend.web_search.plain_fetch import fetch_html
from backend.web_search.providers.provider import QuotaExceededError, SearchProvider
from backend.web_search.providers.registry import PROVIDER_KINDS, create_provider
from backend.web_search.result_cleaning import clean_results
from backend.web_search.results import Freshness, WebQuery
from connectors.errors import (
    QuarryError,
    SourceAuthError,
    SourceError,
    TemporarilyUnavailableError,
)
from connectors.http_client.address_guard import AddressNotAllowedError
from connectors.http_client.response import RateLimitedError
from indexing.runtime.deadline import CancelToken, Deadline, DeadlineExceededError
from tests.contract.provider_worlds.api_worlds import (
    BraveWorld,
    SearxngWorld,
    SerperWorld,
    TavilyWorld,
)
from tests.contract.provider_worlds.local_worlds import DdgsWorld, ResultPageWorld
from tests.contract.provider_worlds.world import DAYS, ITEMS, NAME, SECRET, ProviderWorld, ask
from tests.support.services.faulty_service import garble_reply
from tests.support.services.serving import (
    Reply,
    RunningService,
    redirect,
    reply_json,
    reply_text,
    serve,
)

APIS = (TavilyWorld, BraveWorld, SerperWorld, SearxngWorld)
WORLDS = (*APIS, ResultPageWorld, DdgsWorld)
FAILURES = (QuarryError, DeadlineExceededError)


@contextmanager
def running(
    world: ProviderWorld, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[SearchProvider, RunningService]]:
    with serve(world) as service, world.connect(service.url, monkeypatch) as provider:
        yield provider, service


@pytest.fixture(params=WORLDS, ids=lambda each: each.kind)
def world(request: pytest.FixtureRequest) -> ProviderWorld:
    made: ProviderWorld = request.param()
    return made


@pytest.fixture(params=APIS, ids=lambda each: each.kind)
def api(request: pytest.FixtureRequest) -> ProviderWorld:
    made: ProviderWorld = request.param()
    return made


def test_every_kind_is_here() -> None:
    assert {each.kind for each in WORLDS} == set(PROVIDER_KINDS)


def test_results_come_in_their_order(world: ProviderWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(world, monkeypatch) as (provider, _):
        found = list(clean_results(ask(provider), ANY_DOMAIN))
    assert sorted(one.title for one in found) == sorted(one.title for one in ITEMS)
    assert {one.provider for one in found} == {NAME}
    by_title = {one.title: one for one in found}
    for item, day in zip(ITEMS, DAYS, strict=True):
        result = by_title[item.title]
        assert result.summary == item.summary
        shown = str(result.published.date()) if result.published else None
        assert shown == (day if world.states_dates else None)
    if world.kind != "ddgs":  # it orders them itself
        assert [one.title for one in found] == [one.title for one in ITEMS]
    assert by_title["Parental leave"].url == "https://www.example.org/leave?a=1"


def test_the_query_is_sent_as_documented(
    world: ProviderWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(world, monkeypatch) as (provider, service):
        ask(provider, text="leave & 育儿假 100%?", limit=3, freshness=Freshness.DAY, language="de")
        (request,) = service.log
    query = world.read_query(request)
    assert query["text"] == "leave & 育儿假 100%?"
    assert query.get("limit", 3) == 3
    assert query.get("freshness") == ("day" if world.takes_freshness else None)
    assert query.get("language") == ("de" if world.takes_language else None)


@pytest.mark.parametrize("freshness", list(Freshness))
def test_every_age_is_sent_as_documented(
    world: ProviderWorld, freshness: Freshness, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(world, monkeypatch) as (provider, service):
        ask(provider, freshness=freshness)
        query = world.read_query(service.log[0])
    if world.takes_freshness:
        assert query["freshness"] in {freshness, "month" if freshness == "week" else freshness}


def test_domains_are_part_of_the_query(
    world: ProviderWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(world, monkeypatch) as (provider, service):
        ask(provider, sites=("example.org", "example.net"))
        query = world.read_query(service.log[0])
    if "sites" in query:
        assert query["sites"] == ["example.org", "example.net"]
    else:
        assert query["text"] == "parental leave (site:example.org OR site:example.net)"


def test_the_number_of_results_is_kept_to(
    world: ProviderWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(world, monkeypatch) as (provider, service):
        assert len(ask(provider, limit=1)) in {1, len(ITEMS)}
        ask(provider, limit=500)
        assert world.read_query(service.log[-1]).get("limit", 20) <= 20


def test_nothing_found_is_no_failure(world: ProviderWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    world.instead = world.without_results()
    with running(world, monkeypatch) as (provider, _):
        assert ask(provider) == []


def test_a_rejected_key_says_what_to_do_and_is_not_repeated(
    api: ProviderWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.instead = api.rejected_key()
    with running(api, monkeypatch) as (provider, service):
        with pytest.raises(SourceAuthError) as failed:
            ask(provider)
        assert len(service.log) == 1
    assert SECRET not in str(failed.value)
    assert SECRET not in repr(provider)
    assert NAME in str(failed.value)
    hint = "settings.yml" if api.kind == "searxng" else f"quarry web providers edit {NAME}"
    assert hint in str(failed.value)


@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_is_one_of_the_key(
    api: ProviderWorld, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.instead = reply_json({"message": f"no: {SECRET}"}, status=status)
    with running(api, monkeypatch) as (provider, _), pytest.raises(SourceAuthError) as failed:
        ask(provider)
    assert SECRET not in str(failed.value)


def test_a_rate_limit_says_how_long(api: ProviderWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    api.instead = api.limited(300)
    with running(api, monkeypatch) as (provider, service):
        with pytest.raises(RateLimitedError) as failed:
            ask(provider)
        assert len(service.log) == 1
    assert failed.value.retry_after == timedelta(seconds=300)


def test_a_moment_is_waited_for(api: ProviderWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    api.once = [api.limited(0)]
    with running(api, monkeypatch) as (provider, service):
        assert len(ask(provider)) == len(ITEMS)
        assert len(service.log) == 2


def test_a_used_up_plan_is_told(api: ProviderWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    api.instead = api.used_up()
    told = (QuotaExceededError, RateLimitedError)
    with running(api, monkeypatch) as (provider, _), pytest.raises(told) as failed:
        ask(provider)
    assert isinstance(failed.value, TemporarilyUnavailableError)
    assert failed.value.retry_after >= timedelta(hours=1)
    if api.kind == "brave":
        assert failed.value.retry_after == timedelta(seconds=1_419_704)


@pytest.mark.parametrize("status", [500, 502, 503])
def test_a_server_that_fails_is_asked_once_more(
    api: ProviderWorld, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.instead = Reply(status=status)
    with running(api, monkeypatch) as (provider, service):
        with pytest.raises(TemporarilyUnavailableError):
            ask(provider)
        assert len(service.log) == 2
        api.instead, api.once = None, [Reply(status=status)]
        assert len(ask(provider)) == len(ITEMS)


def test_other_refusals_are_told_in_the_words_of_the_service(
    api: ProviderWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.instead = reply_json({"message": f"query too long for {SECRET}"}, status=400)
    told = pytest.raises(SourceError, match="query too long")
    with running(api, monkeypatch) as (provider, _), told as failed:
        ask(provider)
    if api.takes_key:
        assert SECRET not in str(failed.value)


@pytest.mark.parametrize("how", ["html", "cut", "another shape", "empty"])
def test_what_cannot_be_read_is_an_error(
    api: ProviderWorld, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(api, monkeypatch) as (provider, service):
        ask(provider)
        normal = api(service.log[0])
        api.instead = garble_reply(how, normal)
        with pytest.raises(SourceError, match="cannot be read"):
            ask(provider)


@pytest.mark.parametrize(
    "value",
    [[], "text", None, {"results": {}}, {"results": "x"}, {"web": [], "organic": {}}, {"type": 1}],
)
def test_an_answer_of_another_shape_ends_in_one_of_the_errors_or_no_results(
    api: ProviderWorld, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.instead = reply_json(value)
    with running(api, monkeypatch) as (provider, _):
        try:
            found = ask(provider)
        except SourceError:
            return
    assert found == []


def test_results_with_missing_fields_are_read_as_far_as_they_go(
    api: ProviderWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.instead = api.incomplete()
    with running(api, monkeypatch) as (provider, _):
        found = list(clean_results(ask(provider), ANY_DOMAIN))
    assert [(one.title, one.url) for one in found] == [
        ("https://example.org/bare", "https://example.org/bare"),
        ("Whole", "https://example.org/whole"),
    ]
    assert found[1].summary == "All of it."


def test_a_missing_address_is_told(api: ProviderWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    api.instead = Reply(status=404)
    with running(api, monkeypatch) as (provider, _), pytest.raises(SourceError, match="404"):
        ask(provider)


def _drip(seconds: float) -> Iterator[bytes]:
    end = time.monotonic() + seconds
    yield b'{"results": ['
    while time.monotonic() < end:
        yield b" "
        time.sleep(0.05)


def test_a_slow_server_ends_with_the_deadline(
    world: ProviderWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.instead = Reply(headers={"Content-Type": "text/html"}, body=_drip(8))
    with running(world, monkeypatch) as (provider, _):
        began = time.monotonic()
        with pytest.raises(FAILURES):
            ask(provider, seconds=0.5)
        assert time.monotonic() - began < 5


def test_after_the_deadline_nothing_is_sent(
    world: ProviderWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(world, monkeypatch) as (provider, service):
        cancelled = CancelToken()
        cancelled.cancel()
        for deadline in (Deadline.after(0), Deadline.after(9, cancelled)):
            with pytest.raises(DeadlineExceededError):
                ask_until(provider, deadline)
        assert service.log == []


def ask_until(provider: SearchProvider, deadline: Deadline) -> Any:
    return provider.search(WebQuery("leave", 5), deadline)


def test_a_huge_answer_is_refused(api: ProviderWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    api.instead = reply_text("x" * (5 * 1024 * 1024), media_type="application/json")
    with running(api, monkeypatch) as (provider, _), pytest.raises(SourceError):
        ask(provider)


def test_a_redirect_to_another_host_takes_no_key_along(
    api: ProviderWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve(lambda _: reply_json({"results": []})) as other:
        api.instead = redirect(f"{other.url}/elsewhere", 307)
        with running(api, monkeypatch) as (provider, _):
            said = ""
            try:
                ask(provider)
            except SourceError as error:
                said = str(error)
            assert SECRET not in said
        for request in other.log:
            assert SECRET not in str(request)


@pytest.mark.parametrize(
    "target",
    [
        "http://127.0.0.2:8080/",
        "http://169.254.169.254/latest",
        "http://10.0.0.1/",
        "http://[::1]/",
    ],
)
def test_a_redirect_into_the_network_is_refused(
    api: ProviderWorld, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.instead = redirect(target)
    with running(api, monkeypatch) as (provider, _), pytest.raises(AddressNotAllowedError):
        ask(provider)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_an_address_of_this_machine_is_asked_only_where_it_is_named(
    api: ProviderWorld, host: str
) -> None:
    with serve(api) as service:
        settings = {"api_url": f"https://{host}:{service.port}"}
        provider = create_provider(api.kind, NAME, settings, api.credential(), fetch_html)
        with pytest.raises(
            AddressNotAllowedError, match=f"private_hosts in the settings of {NAME}"
        ):
            ask(provider)
        assert service.connections == []


def test_a_result_page_is_never_fetched_from_this_machine() -> None:
    with serve(ResultPageWorld()) as service:
        with pytest.raises(AddressNotAllowedError) as failed:
            fetch_html(f"{service.url}/search?q=leave", Deadline.after(5))
        assert service.connections == []
    assert "private_hosts" not in str(failed.value)
