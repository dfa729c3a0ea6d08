"""One way through a site, from its start pages by its links, or along its sitemaps: nearest first."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from email.message import Message
from typing import TypeAlias

from lxml.html import HtmlElement

from connectors.closing import Closing
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from connectors.extraction import media_types
from connectors.extraction.encoding import decode
from connectors.extraction.result import ExtractionError
from connectors.http_client.response import Response, ResponseError, ServiceUnavailableError
from connectors.sources.website.fetcher import (
    NO_HEADERS,
    Absent,
    Failed,
    Fetched,
    Fetcher,
    Page,
    Same,
)
from connectors.sources.website.frontier import Frontier, Waiting
from connectors.sources.website.page_document import holds_text, media_type_of
from connectors.sources.website.page_links import Head, head_of, head_of_file, parsed
from connectors.sources.website.settings import Crawl, Sitemap, WebsiteSettings
from connectors.sources.website.sitemaps import listed

BATCH = 200
_FAILURES = 10
"""In a row; then the start page is asked whether the site is still there."""
_LATER = timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A page or a file that is a document."""

    address: str
    fetched: Page
    media_type: str
    told: str | None
    """When it was changed last, as a sitemap tells."""
    is_leaf: bool
    """It has no links."""
    page: str = ""
    """Of a page, its text."""
    root: HtmlElement | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """It has not changed."""

    address: str


@dataclass(frozen=True, slots=True)
class Missing:
    """It is no document, or no longer one."""

    address: str


@dataclass(frozen=True, slots=True)
class Faulty:
    """It is a document that cannot be read."""

    address: str
    reason: str


Step: TypeAlias = Read | Kept | Missing | Faulty


class Walk(Closing):
    """To be closed. Its memory does not grow with the site."""

    def __init__(self, fetcher: Fetcher, settings: WebsiteSettings) -> None:
        self._fetcher = fetcher
        self._settings = settings
        self._scope = fetcher.scope
        self._frontier = Frontier(settings.pages)
        self._failures = 0

    def close(self) -> None:
        self._frontier.close()

    def batches(self) -> Iterator[list[Waiting]]:
        """All that is to be visited; those of a batch are visited before the next is asked for.

        Raises:
            TemporarilyUnavailableError: a sitemap cannot be had now.
            ActionRequiredError: it cannot be had at all.
        """
        begins = self._settings.begins()
        match self._settings.read:
            case Crawl():
                self._frontier.add(Waiting(begin, 0) for begin in begins)
            case Sitemap():
                pages = listed(self._fetcher, begins)
                self._frontier.add(page for page in pages if self._scope.chooses(page.address))
        while batch := self._frontier.next(BATCH):
            yield batch

    def left_out(self) -> str | None:
        """The first address that would have been too many."""
        return self._frontier.left_out

    def leads_on(self, waiting: Waiting) -> bool:
        """Whether the links of this page are followed."""
        match self._settings.read:
            case Crawl(depth=depth):
                return waiting.depth < depth
            case Sitemap():
                return False

    def visit(self, waiting: Waiting, headers: Mapping[str, str] = NO_HEADERS) -> Iterator[Step]:
        """What comes of an address: nothing where a redirect has led there before.

        Raises:
            TemporarilyUnavailableError: the site asks to wait or does not answer any more.
            ActionRequiredError: a start page cannot be read, or the credential is refused.
        """
        if not self._frontier.claim(waiting.address):
            return
        fetched = self._fetcher.page(waiting.address, headers)
        if self._is_begin(waiting):
            raise_if_lost(waiting.address, fetched)
        self._count(fetched)
        match fetched:
            case Page(address=address):
                if address != waiting.address:
                    yield Missing(waiting.address)
                    if not self._frontier.claim(address):
                        return
                yield self._followed(waiting, fetched)
            case Same(address=address):
                yield Kept(address)
            case Absent():
                yield Missing(waiting.address)
            case Failed(error):
                yield Faulty(waiting.address, str(error))

    def _is_begin(self, waiting: Waiting) -> bool:
        is_crawl = isinstance(self._settings.read, Crawl)
        return is_crawl and waiting.address in self._settings.begins()

    def _count(self, fetched: Fetched) -> None:
        """A site that has gone is not asked for each of its pages."""
        is_down = isinstance(fetched, Failed) and isinstance(fetched.error, ServiceUnavailableError)
        self._failures = self._failures + 1 if is_down else 0
        if self._failures < _FAILURES:
            return
        self._failures = 0
        begin = self._settings.begins()[0]
        match self._fetcher.page(begin):
            case Failed(error):
                raise_if_lost(begin, Failed(error))
            case _:
                return

    def _followed(self, waiting: Waiting, fetched: Page) -> Step:
        read, head = opened(fetched, waiting.told)
        if self.leads_on(waiting):
            near = filter(self._scope.chooses, head.links)
            self._frontier.add(Waiting(link, waiting.depth + 1) for link in near)
        if self._is_copy(waiting, fetched.address, head):
            return Missing(fetched.address)
        is_none = head.is_unindexed or not self._scope.chooses(fetched.address)
        return Missing(fetched.address) if is_none else read

    def _is_copy(self, waiting: Waiting, address: str, head: Head) -> bool:
        """Whether the page names another as its own; that one is then taken at its word."""
        other = head.canonical
        if other in (None, address, waiting.address) or not self._scope.chooses(other or ""):
            return False
        if self._frontier.is_chosen(address) or self._frontier.is_chosen(waiting.address):
            return False
        self._frontier.choose(other or "", waiting.depth)
        return True


def opened(fetched: Page, told: str | None = None) -> tuple[Step, Head]:
    """What was answered, and what it says of itself."""
    address, answer = fetched.address, fetched.answer
    media_type = media_type_of(answer)
    if media_type != media_types.HTML:
        head = head_of_file(answer.headers)
        if not holds_text(media_type):
            return Missing(address), head
        return _read(fetched, media_type, told), head
    try:
        page = decode(answer.body, _charset(answer))
    except ExtractionError as error:
        return Faulty(address, str(error)), Head()
    root = parsed(page)
    head = head_of_file(answer.headers) if root is None else head_of(root, address, answer.headers)
    read = Read(
        address=address,
        fetched=fetched,
        media_type=media_type,
        told=told,
        is_leaf=not head.links,
        page=page,
        root=root,
    )
    return read, head


def _charset(answer: Response) -> str | None:
    message = Message()
    message["content-type"] = answer.headers.get("content-type", "")
    return message.get_content_charset()


def _read(fetched: Page, media_type: str, told: str | None) -> Read:
    return Read(
        address=fetched.address, fetched=fetched, media_type=media_type, told=told, is_leaf=True
    )


def raise_if_lost(begin: str, fetched: Fetched) -> None:
    """Without its start page a site would seem to be empty.

    Raises:
        TemporarilyUnavailableError: the page does not answer now.
        ActionRequiredError: it is not there, or must not be read.
    """
    match fetched:
        case Absent(reason):
            raise ActionRequiredError(f"{begin}, where reading begins, cannot be read: {reason}")
        case Failed(ResponseError() as error):
            raise TemporarilyUnavailableError(
                f"{begin}, where reading begins, cannot be read: {error}", _LATER
            )
        case Failed(error):
            raise error
        case _:
            return
