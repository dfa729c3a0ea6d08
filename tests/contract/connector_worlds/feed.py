"""Feeds of four formats on one server with a password."""

from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from pydantic import SecretStr

from connectors.access import Access
from connectors.connector import Connector
from connectors.http_client.request import Authorization
from connectors.http_client.retry_policy import RetryPolicy
from connectors.http_client.sign_in import Basic
from connectors.sources.feed.connector import FeedConnector
from connectors.sources.feed.settings import FeedCredential, FeedSettings
from tests.contract.connector_worlds.faulty_world import FaultyWorld
from tests.contract.connector_worlds.world import (
    ITEMS,
    UNREADABLE,
    Fails,
    RollsOut,
    edited_text,
    text,
    title,
)
from tests.support.services.feed import FORMATS, FeedServer, Post
from tests.support.services.serving import Reply, reply_text, serve

_FEEDS = 24
"""More than may be asked for within an hour."""
_PASSWORD = "open sesame"
_TOO_DEEP = "<div>" * 10_000


class FeedWorld(FaultyWorld, Fails, RollsOut):
    """Item n stands in feed n % 24. Each feed has the next of the four formats."""

    name = "feed"
    mending = "quarry sources edit 源"
    garblings = ("html", "cut", "another shape", "empty")

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._service = self._server = FeedServer({})
        self._server.authorization = Authorization.basic("http://x", "ann", _PASSWORD).headers[
            "Authorization"
        ]
        created = self._server.now - timedelta(hours=2)
        self._posts = {number: _make_post(number, text(number), created) for number in range(ITEMS)}
        self._replace_text(UNREADABLE, _TOO_DEEP)
        for feed in range(_FEEDS):
            self._write_feed(feed)
        self._open = ExitStack()
        self._url = self._open.enter_context(serve(self._server)).url

    def connect(self) -> Connector:
        first, *more = (f"{self._url}/{feed}" for feed in range(_FEEDS))
        settings = FeedSettings(
            url=first, more=tuple(more), readers=("group:three",), private_hosts=("127.0.0.1",)
        )
        credential = FeedCredential(sign_in=Basic(user="ann", password=SecretStr(_PASSWORD)))
        return FeedConnector("源", settings, credential, retry_policy=RetryPolicy(base_delay=0.001))

    def readers(self, number: int) -> Access:
        del number
        return Access.to(["group:three"])

    def edit(self, number: int) -> None:
        self._posts[number] = _make_post(number, edited_text(number), self._server.now)
        self._write_feed(number % _FEEDS)

    def remove(self, number: int) -> None:
        del self._posts[number]
        self._write_feed(number % _FEEDS)

    def fail(self, number: int) -> None:
        self._replace_text(number, _TOO_DEEP)
        self._write_feed(number % _FEEDS)

    def heal(self, number: int) -> None:
        self._replace_text(number, f"<p>{text(number)}</p>")
        self._write_feed(number % _FEEDS)

    def close(self) -> None:
        self._open.close()

    def _replace_text(self, number: int, content: str) -> None:
        self._posts[number] = replace(self._posts[number], html=content)

    def _write_feed(self, feed: int) -> None:
        posts = [one for number, one in self._posts.items() if number % _FEEDS == feed]
        self._server.feeds[f"/{feed}"] = FORMATS[feed % len(FORMATS)](posts)

    def _rate_limit_reply(self) -> Reply:
        seconds = str(int(self.wait.total_seconds()))
        return reply_text("No.", status=429, headers={"Retry-After": seconds})

    def _invalid_credential_reply(self) -> Reply:
        return reply_text("No.", status=401, headers={"WWW-Authenticate": "Basic"})


def _make_post(number: int, said: str, at: datetime) -> Post:
    return Post(
        id=f"tag:news.test,2026:{number}",
        title=title(number),
        html=f"<p>{said}</p>",
        link=f"https://news.test/items/{number}",
        at=at,
    )
