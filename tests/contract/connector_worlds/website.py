"""A website with a password: a start page, lists, and items."""

from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic import SecretStr

from connectors.access import Access
from connectors.connector import Connector
from connectors.http_client.request import Authorization
from connectors.http_client.retry_policy import RetryPolicy
from connectors.http_client.sign_in import Basic
from connectors.sources.website.connector import WebsiteConnector
from connectors.sources.website.settings import WebsiteCredential, WebsiteSettings
from tests.contract.connector_worlds.world import (
    ITEMS,
    UNREADABLE,
    Expires,
    Fails,
    IdOnMove,
    Limits,
    Moves,
    Skews,
    World,
    edited_text,
    text,
    title,
)
from tests.support.services.serving import reply_text, serve
from tests.support.services.website import UNINDEXED, Resource, Site, page

_LIST_SIZE = ITEMS // 4
_PASSWORD = "open sesame"
_SCRIPT_ONLY_PAGE = Resource(
    body=b"<!doctype html><html><body><script src=/x.js></script></body></html>"
)


class WebsiteWorld(World, Moves, Fails, Skews, Limits, Expires):
    """Lists link to the items and have a noindex tag. Depending on its number an item has an ETag, a
    Last-Modified, or neither; items 0, 10, 20 … have links."""

    name = "web"
    id_on_move = IdOnMove.CHANGED
    wait = timedelta(minutes=20)
    mending = "quarry sources edit 源"

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._paths = {number: f"/items/{number}" for number in range(ITEMS)}
        self._site = Site({})
        self._site.authorization = Authorization.basic("http://x", "ann", _PASSWORD).headers[
            "Authorization"
        ]
        self._created = self._site.now() - 7200
        for number in range(ITEMS):
            self._write_item(number, text(number), self._created)
        self._site.pages[self._paths[UNREADABLE]] = _SCRIPT_ONLY_PAGE
        self._write_lists()
        self._open = ExitStack()
        self._url = self._open.enter_context(serve(self._site)).url

    def connect(self) -> Connector:
        settings = WebsiteSettings(
            url=self._url, readers=("group:three",), pause=0, private_hosts=("127.0.0.1",)
        )
        credential = WebsiteCredential(sign_in=Basic(user="ann", password=SecretStr(_PASSWORD)))
        return WebsiteConnector(
            "源", settings, credential, retry_policy=RetryPolicy(base_delay=0.001)
        )

    def readers(self, number: int) -> Access:
        del number
        return Access.to(["group:three"])

    def edit(self, number: int) -> None:
        self._write_item(number, edited_text(number), self._site.now())

    def remove(self, number: int) -> None:
        del self._site.pages[self._paths.pop(number)]
        self._write_lists()

    def move(self, number: int) -> None:
        found = self._site.pages.pop(self._paths[number])
        self._paths[number] = f"/moved/{number}"
        self._site.pages[self._paths[number]] = found
        self._write_lists()

    def fail(self, number: int) -> None:
        self._site.pages[self._paths[number]] = replace(self._page(number), status=500)

    def heal(self, number: int) -> None:
        self._site.pages[self._paths[number]] = replace(self._page(number), status=200)

    def skew(self, by: timedelta) -> None:
        self._site.clock_offset = by.total_seconds()

    def limit(self, after: int) -> None:
        seconds = str(int(self.wait.total_seconds()))
        self._inject_error(after, 429, {"Retry-After": seconds})

    def relent(self) -> None:
        self._site.error_reply = None

    def expire(self, after: int) -> None:
        self._inject_error(after, 401, {"WWW-Authenticate": "Basic"})

    def renew(self) -> None:
        self._site.error_reply = None

    def close(self) -> None:
        self._open.close()

    def _inject_error(self, after: int, status: int, headers: dict[str, str]) -> None:
        self._site.requests_before_error = after
        self._site.error_reply = reply_text("No.", status=status, headers=headers)

    def _page(self, number: int) -> Resource:
        return self._site.pages[self._paths[number]]

    def _write_item(self, number: int, content: str, at: float) -> None:
        stamp = datetime.fromtimestamp(at, UTC).isoformat()
        is_bare = number % 4 == 2
        self._site.pages[self._paths[number]] = page(
            title(number),
            content,
            links=["/", "/items/1"] if number % 10 == 0 else [],
            head=f'<meta property="article:modified_time" content="{stamp}">' if is_bare else "",
            etag=number % 4 in (0, 3),
            modified=None if is_bare else at,
        )

    def _write_lists(self) -> None:
        paths = list(self._paths.values())
        lists = range(0, ITEMS, _LIST_SIZE)
        for first in lists:
            links = paths[first : first + _LIST_SIZE]
            self._site.pages[f"/lists/{first}"] = page("A list", links=links, head=UNINDEXED)
        self._site.pages["/"] = page(
            "The site", links=[f"/lists/{first}" for first in lists], head=UNINDEXED
        )
