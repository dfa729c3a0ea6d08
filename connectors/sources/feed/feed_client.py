"""Fetching a feed: whole, or only if it has changed since it was fetched last."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from connectors.errors import SourceAuthError, SourceError
from connectors.extraction.html import find_declared_encoding
from connectors.extraction.result import ExtractionError
from connectors.extraction.web_page import decode_page, detect_served_type, parse_html
from connectors.http_client.client import WebClient
from connectors.http_client.response import NotAuthorizedError, Response, ResponseError, redact_url
from connectors.sources.feed.entries import Feed, InvalidFeedError, resolve_link
from connectors.sources.feed.json_feed import read_json_feed
from connectors.sources.feed.xml_feed import read_xml_feed

_LONGEST_VALIDATOR = 120
_FEED_TYPES = {"application/rss+xml", "application/atom+xml", "application/feed+json"}
_ACCEPTED = "application/atom+xml, application/rss+xml, application/feed+json, application/xml;q=0.9, */*;q=0.8"
_NOTHING_DELETED = "Nothing was deleted."


@dataclass(frozen=True, slots=True)
class Validators:
    """What a server sent with a feed, by which it says later whether the feed has changed."""

    etag: str = ""
    modified: str = ""

    @classmethod
    def of(cls, response: Response) -> "Validators":
        sent = (response.headers.get(name, "") for name in ("etag", "last-modified"))
        return cls(*(value if len(value) <= _LONGEST_VALIDATOR else "" for value in sent))

    def request_headers(self) -> Mapping[str, str]:
        sent = {"If-None-Match": self.etag, "If-Modified-Since": self.modified}
        return {name: value for name, value in sent.items() if value}


NO_VALIDATORS = Validators()


@dataclass(frozen=True, slots=True)
class FetchedFeed:
    feed: Feed
    validators: Validators


@dataclass(frozen=True, slots=True)
class UnchangedFeed:
    """The feed is as it was when it was fetched last."""


FetchResult: TypeAlias = FetchedFeed | UnchangedFeed


@dataclass(frozen=True, slots=True)
class FeedClient:
    client: WebClient
    source: str

    def fetch_feed(self, url: str) -> Feed:
        """Fetch a feed, changed or not.

        Raises:
            TemporarilyUnavailableError: the server does not answer at present.
            ActionRequiredError: there is no feed at the address.
        """
        return _parse(self._get(url, MappingProxyType({})), url)

    def fetch_changes(self, url: str, since: Validators) -> FetchResult:
        """Fetch a feed unless it is unchanged; raise the errors of `fetch_feed`."""
        response = self._get(url, since.request_headers())
        if response.status == 304:
            return UnchangedFeed()
        return FetchedFeed(_parse(response, url), Validators.of(response))

    def _get(self, url: str, headers: Mapping[str, str]) -> Response:
        try:
            response = self.client.get(url, headers={"Accept": _ACCEPTED, **headers})
        except NotAuthorizedError as error:
            raise SourceAuthError(
                f"{error}: enter a valid credential by quarry sources edit {self.source}, or remove"
                f" the feed from the settings. {_NOTHING_DELETED}"
            ) from error
        except ResponseError as error:
            raise SourceError(f"the feed cannot be read: {error}. {_NOTHING_DELETED}") from error
        if response.not_found:
            raise SourceError(
                f"there is no feed at {redact_url(url)} (status {response.status}): correct the"
                f" address, or remove it from the settings. {_NOTHING_DELETED}"
            )
        return response


def _parse(response: Response, url: str) -> Feed:
    try:
        return _read_feed(response)
    except (InvalidFeedError, ExtractionError) as error:
        raise SourceError(f"{redact_url(url)} {error}. {_NOTHING_DELETED}") from error


def _read_feed(response: Response) -> Feed:
    if not response.body.strip():
        raise InvalidFeedError("is not a feed: it is empty")
    try:
        # A feed says its encoding itself; that of a server is often the default of its type.
        text = decode_page(response.body, find_declared_encoding(response.body) or response.charset)
    except ExtractionError as error:
        raise InvalidFeedError(f"is not a feed: {error}") from error
    if text.lstrip().startswith("{"):
        return read_json_feed(text, response.url)
    if detect_served_type(response.url, "", response.body) == "text/html":
        raise InvalidFeedError(f"is a web page, not a feed{_name_feeds(text, response.url)}")
    return read_xml_feed(text.lstrip(), response.url)


def _name_feeds(page: str, url: str) -> str:
    """Say which feed a page names in its head, for people who entered the address of the page."""
    try:
        root = parse_html(page)
    except ExtractionError:
        return ""
    links = () if root is None else root.iter("link")
    found = (
        resolve_link(url, one.get("href") or "")
        for one in links
        if "alternate" in re.split(r"\s+", (one.get("rel") or "").lower())
        and (one.get("type") or "").lower() in _FEED_TYPES
    )
    named = next(filter(None, found), None)
    return "" if named is None else f": the feed that it names is {redact_url(named)}"
