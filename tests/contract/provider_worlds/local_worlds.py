"""Providers without a key or an account: public engines by `ddgs`, and a result page."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import escape
from typing import Any

import pytest
from ddgs.engines.duckduckgo import Duckduckgo

from backend.web_search.plain_fetch import fetch_html
from backend.web_search.providers.provider import SearchProvider
from backend.web_search.providers.registry import create_provider
from tests.contract.provider_worlds.world import NAME, ProviderWorld, fetch_from
from tests.support.services.serving import ReceivedRequest, Reply, reply_text

_HOST = "https://search.example.com"


class ResultPageWorld(ProviderWorld):
    """A result page, as a browser would show it."""

    kind = "page"
    takes_key = False
    states_dates = False
    takes_language = False
    takes_freshness = False

    def _answer(self) -> Reply:
        results = "".join(
            f'<li><h2><a href="{escape(one.url)}">{escape(one.title)}</a></h2>'
            f"<p>{escape(one.summary)}</p></li>"
            for one in self.items
        )
        return reply_text(f"<body><ol>{results}</ol></body>", media_type="text/html")

    def read_query(self, request: ReceivedRequest) -> dict[str, Any]:
        assert (request.method, request.path) == ("GET", "/search")
        return {"text": request.param("q")}

    def settings(self, url: str) -> Mapping[str, object]:
        del url
        return {"url": f"{_HOST}/search?q=%s&ie=utf-8"}

    @contextmanager
    def connect(self, url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[SearchProvider]:
        del monkeypatch
        fetch = fetch_from(url, _HOST)
        yield create_provider(self.kind, NAME, self.settings(url), {}, fetch)


class DdgsWorld(ProviderWorld):
    """One engine of the package itself, whose address leads to a local server."""

    kind = "ddgs"
    takes_key = False
    states_dates = False

    def _answer(self) -> Reply:
        results = "".join(
            f'<div class="links_main result__body"><h2>{escape(one.title)}</h2>'
            f'<a href="{escape(one.url)}">{escape(one.summary)}</a></div>'
            for one in self.items
        )
        return reply_text(f"<html><body>{results}</body></html>", media_type="text/html")

    def read_query(self, request: ReceivedRequest) -> dict[str, Any]:
        assert (request.method, request.path) == ("POST", "/html/")
        form = request.form()
        ages = {"d": "day", "w": "week", "m": "month", "y": "year"}
        return {
            "text": form["q"][0],
            "freshness": ages.get(form.get("df", [""])[0]),
            "language": form["l"][0].partition("-")[2],
        }

    def settings(self, url: str) -> Mapping[str, object]:
        del url
        return {"engines": ["duckduckgo"]}

    @contextmanager
    def connect(self, url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[SearchProvider]:
        monkeypatch.setattr(Duckduckgo, "search_url", f"{url}/html/")
        yield create_provider(self.kind, NAME, self.settings(url), {}, fetch_html)
