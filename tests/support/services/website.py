"""A website on this machine: pages that can be changed, with the validators of a real server.

    site = Site({"/": page("Home", links=["/a"]), "/a": page("A", "What A says.")})
    with running(site) as service:
        ...

Other URLs return status 404. `site.robots` is the robots.txt.
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
    """What is served at one URL."""

    body: bytes
    media_type: str = "text/html; charset=utf-8"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    etag: bool = False
    """Whether the server sends an ETag."""
    modified: float | None = None
    """Seconds since 1970, for Last-Modified; None: the server does not send it."""


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
    """Make a small page with links below its text; `head` is HTML for its head."""
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
    """Serves pages by their path and query."""

    def __init__(self, pages: Mapping[str, Resource], robots: str | Resource | None = None) -> None:
        self.pages = dict(pages)
        self.robots = robots
        self.clock_offset = 0.0
        """Seconds."""
        self.authorization: str | None = None
        """The required value of the header Authorization, if any."""
        self.error_reply: Reply | None = None
        """Sent after `requests_before_error` further requests."""
        self.requests_before_error = 0

    def now(self) -> float:
        return time() + self.clock_offset

    def __call__(self, request: ReceivedRequest) -> Reply:
        if self.error_reply is not None:
            self.requests_before_error -= 1
            if self.requests_before_error < 0:
                return self.error_reply
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
        if self._is_not_modified(headers, request):
            return Reply(status=304, headers=headers)
        return Reply(status=found.status, headers=headers, body=found.body)

    def _is_not_modified(self, headers: Mapping[str, str], request: ReceivedRequest) -> bool:
        """Compare If-None-Match, or If-Modified-Since if that is missing (RFC 9110, 13.2.2)."""
        if etag := request.headers.get("if-none-match"):
            return etag == headers.get("ETag")
        since = request.headers.get("if-modified-since")
        return since is not None and since == headers.get("Last-Modified")
