"""Public engines by the package `ddgs`, behind a fake of it."""

import sys
import threading
import time
from types import ModuleType
from typing import Any

import pytest
from pydantic import ValidationError

from backend.web_search.plain_fetch import fetch_html
from backend.web_search.providers.ddgs_engines import PROVIDER_KIND, DdgsCredential, DdgsSettings
from backend.web_search.providers.provider import SearchProvider
from backend.web_search.results import Freshness, WebQuery
from connectors.errors import NotConfiguredError, TemporarilyUnavailableError
from connectors.http_client.response import RateLimitedError
from indexing.runtime.deadline import Deadline, DeadlineExceededError

LOGIN = "ann:s3cret"
MOJEEK: dict[str, Any] = {"engines": ["mojeek"]}


class DDGSException(Exception):
    pass


class RatelimitException(DDGSException):
    pass


class TimeoutException(DDGSException):
    pass


class Engines:
    """What the fake was asked, and what it does."""

    def __init__(self) -> None:
        self.made: list[dict[str, Any]] = []
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.error: Exception | None = None
        self.hangs = threading.Event()
        self.hangs.set()
        self.found = [{"title": "A", "href": "https://a.example/", "body": "Of A."}, {"href": "x"}]


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> Engines:
    known = Engines()

    class DDGS:
        def __init__(self, **options: Any) -> None:
            known.made.append(options)

        def text(self, query: str, **options: Any) -> list[dict[str, str]]:
            known.asked.append((query, options))
            known.hangs.wait(20)
            if known.error is not None:
                raise known.error
            return known.found

    package, exceptions = ModuleType("ddgs"), ModuleType("ddgs.exceptions")
    vars(package).update(DDGS=DDGS, exceptions=exceptions)
    vars(exceptions).update(DDGSException=DDGSException)
    monkeypatch.setitem(sys.modules, "ddgs", package)
    monkeypatch.setitem(sys.modules, "ddgs.exceptions", exceptions)
    return known


def make(settings: dict[str, Any], credential: dict[str, Any] | None = None) -> SearchProvider:
    return PROVIDER_KIND.provider(
        "local",
        DdgsSettings.model_validate(settings),
        DdgsCredential.model_validate(credential or {}),
        fetch_html,
    )


def ask(provider: SearchProvider, seconds: float = 10, **query: Any) -> Any:
    return provider.search(
        WebQuery(**{"text": "leave", "limit": 4, **query}), Deadline.after(seconds)
    )


def test_engines_are_asked_through_the_proxy(engines: Engines) -> None:
    settings = {"engines": ["mojeek", "brave"], "proxy": "http://proxy.example.com:3128"}
    provider = make(settings, {"proxy_login": LOGIN})
    found = ask(provider, freshness=Freshness.WEEK, language="ja")
    assert [(one.title, one.url, one.summary, one.provider) for one in found] == [
        ("A", "https://a.example/", "Of A.", "local"),
        ("", "x", "", "local"),
    ]
    (made,) = engines.made
    assert made["proxy"] == f"http://{LOGIN}@proxy.example.com:3128"
    assert 1 <= made["timeout"] <= 10
    ((query, options),) = engines.asked
    assert query == "leave"
    assert options == {
        "region": "jp-ja",
        "timelimit": "w",
        "max_results": 4,
        "backend": "mojeek,brave",
    }
    assert "s3cret" not in repr(provider)


def test_without_a_proxy_engines_are_asked_directly(engines: Engines) -> None:
    ask(make(MOJEEK))
    assert engines.made[0]["proxy"] is None
    assert engines.asked[0][1]["backend"] == "mojeek"
    assert engines.asked[0][1]["region"] == "us-en"


def test_nothing_found_is_no_failure(engines: Engines) -> None:
    engines.error = DDGSException("No results found.")
    assert ask(make(MOJEEK)) == []


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (RatelimitException("202 Ratelimit"), RateLimitedError),
        (TimeoutException("timed out"), TemporarilyUnavailableError),
        (DDGSException(f"ConnectError: http://{LOGIN}@proxy"), TemporarilyUnavailableError),
        # Where the message is cut, within the login, a part of it must not be left.
        (DDGSException("x" * (199 - len(LOGIN)) + LOGIN + "@proxy"), TemporarilyUnavailableError),
        (DDGSException("x" * (201 - len(LOGIN)) + LOGIN + "@proxy"), TemporarilyUnavailableError),
    ],
)
def test_failures_are_sorted_and_show_no_login(
    engines: Engines, error: Exception, kind: type[Exception]
) -> None:
    engines.error = error
    provider = make(MOJEEK | {"proxy": "http://proxy.example.com"}, {"proxy_login": LOGIN})
    with pytest.raises(kind) as failed:
        ask(provider)
    assert "s3cre" not in str(failed.value)
    assert failed.value.__cause__ is None


def test_engines_that_hang_end_with_the_deadline(engines: Engines) -> None:
    engines.hangs.clear()
    began = time.monotonic()
    with pytest.raises(DeadlineExceededError):
        ask(make(MOJEEK), seconds=0.2)
    assert time.monotonic() - began < 5
    engines.hangs.set()


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ddgs", None)
    with pytest.raises(NotConfiguredError, match=r"pip install 'quarry-search\[web\]'"):
        ask(make(MOJEEK))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"engines": []},
        {"engines": ["google"]},
        MOJEEK | {"proxy": "proxy.example.com:3128"},
        MOJEEK | {"proxy": "ftp://proxy.example.com"},
        MOJEEK | {"proxy": "http://ann:s3cret@proxy.example.com"},
        MOJEEK | {"proxy": "http://169.254.169.254/"},
        MOJEEK | {"proxy": "http://proxy.example.com:99999"},
        MOJEEK | {"proxy": "http://proxy.example.com:abc"},
        MOJEEK | {"proxy": "http://proxy example.com"},
    ],
)
def test_settings_that_are_wrong_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        DdgsSettings.model_validate(settings)


@pytest.mark.parametrize("login", ["ann", "ann:pass word", "ann:p@ss"])
def test_a_login_that_is_wrong_is_refused(login: str) -> None:
    with pytest.raises(ValidationError):
        DdgsCredential.model_validate({"proxy_login": login})


def test_the_terms_of_every_engine_are_named() -> None:
    engines = DdgsSettings.model_json_schema()["properties"]["engines"]["items"]["enum"]
    assert sorted(one.engine.lower() for one in PROVIDER_KIND.terms) == sorted(engines)
    assert all(one.url.startswith("https://") for one in PROVIDER_KIND.terms)
