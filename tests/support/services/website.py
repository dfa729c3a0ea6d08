"""A website on this machine: pages that can be changed, with the validators of a real server.

    site = Site({"/": page("Home", links=["/a"]), "/a": page("A", "What A says.")})
    with running(site) as service:
        ...

A page that is not there is a 404. What lies in `site.robots` is its robots.txt.
"""

import html
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from hashlib import sha256
from time import time

from tests.support.services.serving import ReceivedRequest, Reply, reply_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """What stands at one address."""

    body: bytes
    media_type: str = "text/html; charset=utf-8"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    etag: bool = False
    """Whether the server tells a hash of the body."""
    modified: float | None = None
    """Seconds since 1970; none where the server does not tell."""


def page(
    title: str,
    text: str = "",
    *,
    links: Iterable[str] = (),
    head: str = "",
    etag: bool = False,
    modified: float | None = None,
    headers: Mapping[str, str] | None = None,
) -> Resource:
    """A small page with links below its text; `head` is written into its head as it is."""
    anchors = "".join(f'<a href="{html.escape(link)}">more</a> ' for link in links)
    body = (
        f'<!doctype html><html lang="en"><head><title>{html.escape(title)}</title>{head}</head>'
        f"<body><main><h1>{html.escape(title)}</h1><p>{html.escape(text)}</p></main>"
        f"<nav>{anchors}</nav></body></html>"
    )
    return Resource(body=body.encode(), etag=etag, modified=modified, headers=dict(headers or {}))


def moved(location: str, status: int = 301) -> Resource:
    return Resource(body=b"", status=status, headers={"Location": location})


UNINDEXED = '<meta name="robots" content="noindex">'


class Site:
    """Its pages by path, the query with it where there is one."""

    def __init__(self, pages: Mapping[str, Resource], robots: str | Resource | None = None) -> None:
        self.pages = dict(pages)
        self.robots = robots
        self.ahead = 0.0
        """Seconds that its clock is ahead."""
        self.authorization: str | None = None
        """What the header must say; none where nobody needs to sign in."""
        self.trouble: Reply | None = None
        """Answered to everything, once `answered` more requests were answered as ever."""
        self.answered = 0

    def now(self) -> float:
        return time() + self.ahead

    def __call__(self, request: ReceivedRequest) -> Reply:
        if self.trouble is not None:
            self.answered -= 1
            if self.answered < 0:
                return self.trouble
        if self.authorization not in (None, request.headers.get("authorization")):
            return reply_text("Sign in.", status=401, headers={"WWW-Authenticate": "Basic"})
        if request.path == "/robots.txt":
            return self._robots()
        query = "&".join(
            f"{name}={value}" for name, all_ in request.query.items() for value in all_
        )
        found = self.pages.get(f"{request.path}?{query}" if query else request.path)
        return self._reply(found, request) if found else reply_text("Not here.", status=404)

    def _robots(self) -> Reply:
        match self.robots:
            case None:
                return reply_text("Not here.", status=404)
            case str(text):
                return reply_text(text)
            case Resource(body=body, status=status):
                return Reply(status=status, body=body)

    def _reply(self, found: Resource, request: ReceivedRequest) -> Reply:
        headers = {"Content-Type": found.media_type, **found.headers}
        headers["Date"] = formatdate(self.now(), usegmt=True)
        if found.modified is not None:
            headers["Last-Modified"] = formatdate(found.modified, usegmt=True)
        if found.etag:
            headers["ETag"] = f'"{sha256(found.body).hexdigest()[:16]}"'
        if self._is_held(headers, request):
            return Reply(status=304, headers=headers)
        return Reply(status=found.status, headers=headers, body=found.body)

    def _is_held(self, headers: Mapping[str, str], request: ReceivedRequest) -> bool:
        """As servers compare: If-None-Match alone where it is given (RFC 9110, 13.2.2)."""
        if etag := request.headers.get("if-none-match"):
            return etag == headers.get("ETag")
        since = request.headers.get("if-modified-since")
        return since is not None and since == headers.get("Last-Modified")
