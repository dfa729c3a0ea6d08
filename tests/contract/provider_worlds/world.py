"""A local server that speaks the protocol of a provider, and what may happen to it."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from backend.web_search.plain_fetch import fetch_html
from backend.web_search.providers.provider import SearchProvider
from backend.web_search.providers.registry import create_provider
from backend.web_search.results import WebQuery
from indexing.runtime.deadline import Deadline
from tests.support.loopback import LOOPBACK
from tests.support.services.serving import ReceivedRequest, Reply, reply_json

NAME = "desk"
SECRET = "sk-0123456789abcdef"


@dataclass(frozen=True)
class Item:
    """What the engine behind a server knows of a page."""

    title: str
    url: str
    summary: str
    published: str = ""


ITEMS = (
    Item(
        "Parental leave", "https://www.example.org/leave?a=1", "Parents have leave.", "2026-03-02"
    ),
    Item("育儿假 2026", "https://例え.jp/休暇", "新しい休暇の規則、2026年から。"),
    Item(
        "A & B < C",
        "https://example.net/a_b",
        "What changes in AT&T's plan for 2026.",
        "2026-01-31",
    ),
)
DAYS = ("2026-03-02", None, "2026-01-31")


class ProviderWorld(ABC):
    """The server of one provider: `serve(world)`. Without more it answers with `items`."""

    kind: str
    takes_key = True
    states_dates = True
    takes_language = True
    takes_freshness = True

    def __init__(self) -> None:
        self.items: Sequence[Item] = ITEMS
        self.instead: Reply | None = None
        """Sent in the place of the answer, until it is taken back."""
        self.once: list[Reply] = []
        """Sent before, each once."""

    def __call__(self, request: ReceivedRequest) -> Reply:
        del request
        if self.once:
            return self.once.pop(0)
        return self.instead or self._answer()

    @abstractmethod
    def _answer(self) -> Reply:
        """Return the answer, as its documentation has it."""

    @abstractmethod
    def read_query(self, request: ReceivedRequest) -> dict[str, Any]:
        """Return what a request asks: `text`, and `limit`, `freshness`, `language` where it says them."""

    def credential(self) -> Mapping[str, object]:
        return {"key": SECRET} if self.takes_key else {}

    def settings(self, url: str) -> Mapping[str, object]:
        return {"api_url": url, "private_hosts": ["127.0.0.1"]}

    @contextmanager
    def connect(self, url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[SearchProvider]:
        """Yield a provider that asks the server at this address."""
        del monkeypatch
        yield create_provider(self.kind, NAME, self.settings(url), self.credential(), fetch_html)

    def rejected_key(self) -> Reply:
        return reply_json({"message": f"Unknown key {SECRET}"}, status=401)

    def limited(self, seconds: int) -> Reply:
        """Return the reply that asks to wait."""
        return Reply(status=429, headers={"Retry-After": str(seconds)})

    def used_up(self) -> Reply:
        """Return the reply where the plan is used up."""
        return self.limited(86_400)

    def incomplete(self) -> Reply | None:
        """Return an answer of four results: without address, of wrong types, without title and summary, complete."""
        return None

    def without_results(self) -> Reply:
        self.items, kept = (), self.items
        reply = self._answer()
        self.items = kept
        return reply


def fetch_from(url: str, template_host: str) -> Any:
    """Return a fetcher to which the host of a template is this local server."""
    return lambda page, deadline: fetch_html(page.replace(template_host, url), deadline, LOOPBACK)


def ask(provider: SearchProvider, seconds: float = 20.0, **query: Any) -> list[Any]:
    """Search with a deadline that is far off, unless a test says otherwise."""
    wanted = WebQuery(**{"text": "parental leave", "limit": 5, **query})
    return list(provider.search(wanted, Deadline.after(seconds)))
