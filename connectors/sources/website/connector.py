"""The connector of the website source: each page, and each file that pages link to, is a document.

A run crawls the whole site, pages of low depth first, and yields what changed. Requests are conditional
(ETag, Last-Modified) wherever the links of a page are not needed: in sitemaps, at the maximum depth, for
files, and for pages that had no links. Other pages are fetched whole and compared by their text. So a run
can start again anywhere, and a checkpoint only counts the URLs.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime

from connectors.connector import (
    FIXED_READERS,
    Change,
    Check,
    Checkpoint,
    Deletion,
    DocumentListing,
    KnownVersions,
    ListingItem,
    Unchanged,
    Unreadable,
    find_fault,
    make_checks,
)
from connectors.document import Document
from connectors.errors import TemporarilyUnavailableError
from connectors.extraction.registry import HTML, extract
from connectors.extraction.result import ExtractionError, ExtractionResult
from connectors.http_client.address_guard import parse_allowed_networks
from connectors.http_client.client import WebClient
from connectors.http_client.response import Response
from connectors.http_client.retry_policy import DEFAULT_RETRY_POLICY, RetryPolicy
from connectors.http_client.sign_in import make_authorization
from connectors.registry import SourceKind, SyncIntervals, without_groups
from connectors.sources.website.crawler import (
    Crawler,
    CrawlResult,
    DocumentPage,
    RemovedPage,
    UnchangedPage,
    UnreadablePage,
    check_start_page,
    parse_page,
)
from connectors.sources.website.fetcher import (
    NO_HEADERS,
    FetchedPage,
    Fetcher,
    FetchFailed,
    FetchOptions,
    NotFound,
    NotModified,
)
from connectors.sources.website.frontier import PendingUrl
from connectors.sources.website.page_document import extract_page
from connectors.sources.website.page_version import PageVersion
from connectors.sources.website.settings import (
    Crawl,
    Sitemap,
    WebsiteCredential,
    WebsiteSettings,
)
from connectors.sources.website.sitemaps import list_pages
from connectors.sources.website.urls import host_of, normalize_url, path_segments
from connectors.text_cleaning import parse_time, to_utc

_SAVED_SHARE = 0.1
"""Of the known URLs, how many are visited between two checkpoints of a listing."""

_FINISHED = Checkpoint("finished")
"""All pages were visited: the next crawl begins again."""


class WebsiteConnector:
    def __init__(
        self,
        source: str,
        settings: WebsiteSettings,
        credential: WebsiteCredential,
        *,
        retry_policy: RetryPolicy = DEFAULT_RETRY_POLICY,
    ) -> None:
        """Prepare to crawl. Raises ValueError: a credential would be sent to a public host without encryption."""
        start_url = settings.start_urls()[0]
        self._source = source
        self._settings = settings
        self._access = settings.access()
        self._authorization = make_authorization(
            start_url, credential.sign_in, settings.private_hosts
        )
        self._retry_policy = retry_policy

    @property
    def source(self) -> str:
        return self._source

    def changes(self, since: Checkpoint | None, known: KnownVersions) -> Iterator[Change]:
        """Yield what changed. A crawl that was interrupted goes on at its checkpoint, as a listing does; the next one
        visits all pages again.

        Raises:
            TemporarilyUnavailableError: the site is not available, or limits requests.
            ActionRequiredError: a start page or a sitemap does not exist or must not be read, or the
                credential is not accepted.
        """
        visited, saved = 0, 0
        with self._crawler(since) as crawler:
            try:
                for batch in crawler.batches():
                    yield from self._read(crawler, batch, known)
                    visited += len(batch)
                    if visited - saved >= crawler.known_count * _SAVED_SHARE:
                        saved = visited
                        yield crawler.to_checkpoint()
            except TemporarilyUnavailableError:
                if crawler.is_started:
                    yield crawler.to_checkpoint()
                raise
            yield from self._report_skipped(crawler)
            yield _FINISHED

    def _read(
        self, crawler: Crawler, batch: Sequence[PendingUrl], known: KnownVersions
    ) -> Iterator[Change]:
        ids = [self._id(one.url) for one in batch]
        versions = {**dict.fromkeys(ids), **known(ids)}
        for pending in batch:
            version = PageVersion.parse(versions.get(self._id(pending.url)))
            for result in crawler.visit(pending, _headers(crawler, pending, version)):
                yield from self._to_changes(result, versions, known)

    def refetch(self, document_ids: Sequence[str]) -> Iterator[Change]:
        """See `Connector.refetch`."""
        with self._fetcher() as fetcher:
            for document_id in document_ids:
                yield self._reread(fetcher, document_id)

    def listing(self, since: Checkpoint | None) -> Iterator[ListingItem]:
        """Crawl the site, and yield all documents, readable or not. See `Connector.listing`.

        A checkpoint holds all URLs that are known. So there is one where the site asks to wait, and otherwise one only
        when so many more were visited that saving them costs little.
        """
        visited, saved = 0, 0
        with self._crawler(since) as crawler:
            try:
                for batch in crawler.batches():
                    for pending in batch:
                        yield from self._list(crawler.visit(pending))
                        visited += 1
                    if visited - saved >= crawler.known_count * _SAVED_SHARE:
                        saved = visited
                        yield crawler.to_checkpoint()
            except TemporarilyUnavailableError:
                if crawler.is_started:
                    yield crawler.to_checkpoint()
                raise
            if crawler.first_skipped:
                yield DocumentListing(self._id(crawler.first_skipped), self._access)

    def _list(self, results: Iterable[CrawlResult]) -> Iterator[DocumentListing]:
        for result in results:
            if not isinstance(result, RemovedPage):
                yield DocumentListing(self._id(result.url), self._access)

    def check(self) -> Iterator[Check]:
        """See `Connector.check`."""
        fault = find_fault(self._probe)
        yield from make_checks(fault, fault)

    def _probe(self) -> None:
        start_urls = self._settings.start_urls()
        with self._fetcher() as fetcher:
            match self._settings.read:
                case Sitemap():
                    next(list_pages(fetcher, start_urls), None)
                case Crawl():
                    for url in start_urls:
                        check_start_page(url, fetcher.fetch_page(url))

    @contextmanager
    def _crawler(self, since: Checkpoint | None = None) -> Iterator[Crawler]:
        with self._fetcher() as fetcher, Crawler(fetcher, self._settings, since) as crawler:
            yield crawler

    @contextmanager
    def _fetcher(self) -> Iterator[Fetcher]:
        settings = self._settings
        hint = f"enter a valid one by quarry sources edit {self._source}"
        options = FetchOptions(
            delay=settings.pause,
            max_bytes=settings.largest_page,
            credential_hint=hint if self._authorization else "",
        )
        with WebClient(
            allowed_networks=parse_allowed_networks(settings.private_hosts),
            authorization=self._authorization,
            retry_policy=self._retry_policy,
        ) as client:
            yield Fetcher(client, settings.scope(), options)

    def _to_changes(
        self, result: CrawlResult, versions: Mapping[str, str | None], known: KnownVersions
    ) -> Iterator[Change]:
        document_id = self._id(result.url)
        if document_id in versions:
            known_version = versions[document_id]
        else:  # The URL is the target of a redirect.
            known_version = known([document_id]).get(document_id)
        match result:
            case DocumentPage():
                yield from _skip_unchanged(self._to_document(result), known_version)
            case UnreadablePage():
                yield self._unreadable(result.url, result.reason)
            case RemovedPage() if known_version is not None:
                yield Deletion(document_id)
            case RemovedPage() | UnchangedPage():
                return

    def _reread(self, fetcher: Fetcher, document_id: str) -> Change:
        url = document_id.removeprefix(f"{self._source}:")
        if normalize_url(url) != url or not fetcher.scope.includes(url):
            return Deletion(document_id)
        match fetcher.fetch_page(url):
            case FetchedPage() as page if page.url == url:
                result, head = parse_page(page)
                return Deletion(document_id) if head.noindex else self._to_change(result)
            case FetchedPage() | NotFound() | NotModified():
                return Deletion(document_id)
            case FetchFailed(error):
                return self._unreadable(url, str(error))

    def _to_change(self, result: CrawlResult) -> Change:
        match result:
            case DocumentPage():
                return self._to_document(result)
            case UnreadablePage():
                return self._unreadable(result.url, result.reason)
            case RemovedPage() | UnchangedPage():
                return Deletion(self._id(result.url))

    def _report_skipped(self, crawler: Crawler) -> Iterator[Change]:
        if crawler.first_skipped:
            yield self._unreadable(
                crawler.first_skipped,
                f"the site has more than {self._settings.pages:,} URLs, and this is the first that is"
                " not read: raise the number of pages, or leave out a part of the site by exclude",
            )

    def _to_document(self, page: DocumentPage) -> Document | Unreadable:
        try:
            extracted = _extract(page)
        except ExtractionError as error:
            return self._unreadable(page.url, str(error))
        segments, host = path_segments(page.url), host_of(page.url)
        return Document(
            id=self._id(page.url),
            source=self._source,
            title=extracted.title or (segments[-1] if segments else host),
            sections=extracted.sections,
            link=page.url,
            media_type=page.media_type,
            access=self._access,
            version=PageVersion.from_response(
                extracted, page.response, is_leaf=page.is_leaf
            ).serialize(),
            metadata=extracted.metadata,
            owners=extracted.authors,
            created_at=extracted.created_at,
            updated_at=extracted.updated_at
            or (parse_time(page.last_modified) if page.last_modified else None)
            or _last_modified(page.response)
            or extracted.created_at,
            parents=(host, *segments[:-1]),
        )

    def _unreadable(self, url: str, reason: str) -> Unreadable:
        return Unreadable(document_id=self._id(url), item=url, reason=reason, link=url)

    def _id(self, url: str) -> str:
        return f"{self._source}:{url}"


def _headers(
    crawler: Crawler, pending: PendingUrl, version: PageVersion | None
) -> Mapping[str, str]:
    """Make the request conditional, unless the links of the page are needed."""
    if version is None or (crawler.follows_links(pending) and not version.is_leaf):
        return NO_HEADERS
    return version.request_headers()


def _skip_unchanged(change: Document | Unreadable, known_version: str | None) -> Iterator[Change]:
    """Yield the change, unless the known version has the same text."""
    if isinstance(change, Document):
        before, now = PageVersion.parse(known_version), PageVersion.parse(change.version)
        if before is not None and now is not None and before.digest == now.digest:
            if known_version != change.version:
                yield Unchanged(change.id, change.version)
            return
    yield change


def _extract(page: DocumentPage) -> ExtractionResult:
    if page.media_type == HTML:
        return extract_page(page.html, page.root, page.url)
    return extract(page.response.body, page.media_type)


def _last_modified(response: Response) -> datetime | None:
    try:
        return to_utc(parsedate_to_datetime(response.headers.get("last-modified", "")))
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


SOURCE_KIND = SourceKind(
    connector=without_groups(WebsiteConnector),
    settings=WebsiteSettings,
    credential=WebsiteCredential,
    server_access=WebsiteSettings.server_access,
    title="Website",
    capabilities=FIXED_READERS,
    fixed_access=WebsiteSettings.access,
    # Each run requests all pages.
    intervals=SyncIntervals(content=timedelta(hours=6), deletions=timedelta(days=1)),
)
