"""A website: each page a document, and each file that its pages link to.

A run walks the whole site, nearest pages first, and yields what changed. What it knows already it
asks for under conditions (ETag, Last-Modified) wherever it can do without the links: in sitemaps, at
the greatest depth, of files and of pages that had none. Other pages are sent whole and compared by
their text, since their links are the way to the rest. So a run may begin again anywhere: a
checkpoint holds nothing but how far it came.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from email.utils import parsedate_to_datetime

from connectors.access import Access
from connectors.connector import (
    Change,
    Check,
    Checkpoint,
    Deletion,
    DocumentListing,
    KnownVersions,
    Unchanged,
    Unreadable,
    make_checks,
)
from connectors.document import Document
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from connectors.extraction.media_types import HTML
from connectors.extraction.registry import extract
from connectors.extraction.result import ExtractionError, ExtractionResult
from connectors.http_client.address_guard import parse_allowed_networks
from connectors.http_client.client import WebClient
from connectors.http_client.request import Authorization
from connectors.http_client.response import Response
from connectors.http_client.retry_policy import DEFAULT_RETRY_POLICY, RetryPolicy
from connectors.source_kind import SourceKind
from connectors.sources.website.crawler import (
    Faulty,
    Kept,
    Missing,
    Read,
    Step,
    Walk,
    opened,
    raise_if_lost,
)
from connectors.sources.website.fetcher import (
    NO_HEADERS,
    Absent,
    Failed,
    Fetcher,
    Manners,
    Page,
    Same,
)
from connectors.sources.website.frontier import Waiting
from connectors.sources.website.page_document import read_page
from connectors.sources.website.page_version import Version
from connectors.sources.website.settings import (
    Anonymous,
    Basic,
    Header,
    Sitemap,
    WebsiteCredential,
    WebsiteSettings,
)
from connectors.sources.website.sitemaps import listed
from connectors.sources.website.urls import folders_of, page_address, place_of
from connectors.text_cleaning import parse_time, to_utc


class WebsiteConnector:
    """The pages of a site that are to be found."""

    def __init__(
        self,
        source: str,
        settings: WebsiteSettings,
        credential: WebsiteCredential,
        *,
        patience: RetryPolicy = DEFAULT_RETRY_POLICY,
    ) -> None:
        """Raises ValueError: a credential would be sent in the clear to a host of the internet."""
        self._source = source
        self._settings = settings
        self._access = Access.to(settings.readers)
        self._authorization = _authorization(settings.begins()[0], credential)
        self._patience = patience
        is_clear = not settings.begins()[0].startswith("https:")
        if self._authorization and is_clear and not settings.private_hosts:
            raise ValueError(
                "a credential is sent over https only: write the address with https://, or name the"
                " host under private_hosts where it is in the own network"
            )

    @property
    def source(self) -> str:
        return self._source

    def changes(self, since: Checkpoint | None, known: KnownVersions) -> Iterator[Change]:
        """Yield what changed, with a checkpoint after every 200 addresses.

        Raises:
            TemporarilyUnavailableError: the site does not answer, or asks to wait.
            ActionRequiredError: its robots.txt or its sitemap forbids or is not there, a start page is gone,
                or the credential is refused.
        """
        del since
        asked = 0
        with self._walk() as walk:
            for batch in walk.batches():
                ids = [self._id(one.address) for one in batch]
                versions = {**dict.fromkeys(ids), **known(ids)}
                for waiting in batch:
                    version = Version.read(versions.get(self._id(waiting.address)))
                    for step in walk.visit(waiting, _conditions(walk, waiting, version)):
                        yield from self._changes_of(step, versions, known)
                asked += len(batch)
                yield _checkpoint(asked)
            yield from self._left_out(walk)
            yield _checkpoint(asked)

    def refetch(self, document_ids: Sequence[str]) -> Iterator[Change]:
        """See `Connector.refetch`."""
        with self._fetcher() as fetcher:
            for document_id in document_ids:
                yield self._again(fetcher, document_id)

    def listing(self) -> Iterator[DocumentListing]:
        """The pages that a walk reaches now; what fails is listed, what is gone or unindexed is not."""
        with self._walk() as walk:
            for batch in walk.batches():
                for waiting in batch:
                    for step in walk.visit(waiting):
                        if not isinstance(step, Missing):
                            yield DocumentListing(self._id(step.address), self._access)
            if more := walk.left_out():
                yield DocumentListing(self._id(more), self._access)

    def check(self) -> Iterator[Check]:
        """See `Connector.check`."""
        fault = self._fault()
        yield from make_checks(fault, fault)

    def _fault(self) -> str | None:
        try:
            with self._fetcher() as fetcher:
                begins = self._settings.begins()
                if isinstance(self._settings.read, Sitemap):
                    next(listed(fetcher, begins), None)
                    return None
                for begin in begins:
                    raise_if_lost(begin, fetcher.page(begin))
        except (TemporarilyUnavailableError, ActionRequiredError) as error:
            return str(error)
        return None

    @contextmanager
    def _walk(self) -> Iterator[Walk]:
        with self._fetcher() as fetcher, Walk(fetcher, self._settings) as walk:
            yield walk

    @contextmanager
    def _fetcher(self) -> Iterator[Fetcher]:
        settings = self._settings
        mending = f"enter a valid one by quarry sources edit {self._source}"
        manners = Manners(
            pause=settings.pause,
            most_bytes=settings.largest_page,
            signed_in=mending if self._authorization else "",
        )
        with WebClient(
            allowed_networks=parse_allowed_networks(settings.private_hosts),
            authorization=self._authorization,
            retry_policy=self._patience,
        ) as client:
            yield Fetcher(client, settings.scope(), manners)

    def _changes_of(
        self, step: Step, versions: Mapping[str, str | None], known: KnownVersions
    ) -> Iterator[Change]:
        document_id = self._id(step.address)
        held = (
            versions[document_id]
            if document_id in versions
            else known([document_id]).get(document_id)
        )
        match step:
            case Read():
                yield from _news(self._read(step), held)
            case Faulty():
                yield self._unreadable(step.address, step.reason)
            case Missing() if held is not None:
                yield Deletion(document_id)
            case Missing() | Kept():
                return

    def _again(self, fetcher: Fetcher, document_id: str) -> Change:
        address = document_id.removeprefix(f"{self._source}:")
        if page_address(address) != address or not fetcher.scope.chooses(address):
            return Deletion(document_id)
        match fetcher.page(address):
            case Page() as page if page.address == address:
                step, head = opened(page)
                return Deletion(document_id) if head.is_unindexed else self._change(step)
            case Page() | Absent() | Same():
                return Deletion(document_id)
            case Failed(error):
                return self._unreadable(address, str(error))

    def _change(self, step: Step) -> Change:
        match step:
            case Read():
                return self._read(step)
            case Faulty():
                return self._unreadable(step.address, step.reason)
            case Missing() | Kept():
                return Deletion(self._id(step.address))

    def _left_out(self, walk: Walk) -> Iterator[Change]:
        if more := walk.left_out():
            most = f"{self._settings.pages:,}"
            yield self._unreadable(
                more,
                f"the site has more than {most} addresses, and this is the first that is not read:"
                " raise the number of pages, or leave out a part of the site by exclude",
            )

    def _read(self, read: Read) -> Document | Unreadable:
        try:
            extracted = _extracted(read)
        except ExtractionError as error:
            return self._unreadable(read.address, str(error))
        return self._document(read, extracted)

    def _document(self, read: Read, extracted: ExtractionResult) -> Document:
        folders = folders_of(read.address)
        place = place_of(read.address)
        answer = read.fetched.answer
        return Document(
            id=self._id(read.address),
            source=self._source,
            title=extracted.title or (folders[-1] if folders else place),
            sections=extracted.sections,
            link=read.address,
            media_type=read.media_type,
            access=self._access,
            version=Version.of(extracted, answer, is_leaf=read.is_leaf).written(),
            metadata=extracted.metadata,
            owners=extracted.authors,
            created_at=extracted.created_at,
            updated_at=extracted.updated_at
            or _told(read.told)
            or _last_modified(answer)
            or extracted.created_at,
            parents=(place, *folders[:-1]),
        )

    def _unreadable(self, address: str, reason: str) -> Unreadable:
        return Unreadable(document_id=self._id(address), item=address, reason=reason, link=address)

    def _id(self, address: str) -> str:
        return f"{self._source}:{address}"


def _authorization(begin: str, credential: WebsiteCredential) -> Authorization | None:
    match credential.sign_in:
        case Anonymous():
            return None
        case Basic(user=user, password=password):
            return Authorization.basic(begin, user, password.get_secret_value())
        case Header(name=name, value=value):
            return Authorization(begin, {name: value.get_secret_value()})


def _conditions(walk: Walk, waiting: Waiting, version: Version | None) -> Mapping[str, str]:
    if version is None or (walk.leads_on(waiting) and not version.is_leaf):
        return NO_HEADERS
    return version.conditions()


def _news(change: Document | Unreadable, held: str | None) -> Iterator[Change]:
    """Nothing where the same text is held."""
    if isinstance(change, Document):
        before, now = Version.read(held), Version.read(change.version)
        if before is not None and now is not None and before.digest == now.digest:
            if held != change.version:
                yield Unchanged(change.id, change.version)
            return
    yield change


def _extracted(read: Read) -> ExtractionResult:
    if read.media_type == HTML:
        return read_page(read.page, read.root, read.address)
    return extract(read.fetched.answer.body, read.media_type)


def _told(moment: str | None) -> datetime | None:
    return parse_time(moment) if moment else None


def _last_modified(answer: Response) -> datetime | None:
    try:
        return to_utc(parsedate_to_datetime(answer.headers.get("last-modified", "")))
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _checkpoint(asked: int) -> Checkpoint:
    return Checkpoint(json.dumps({"asked": asked}))


SOURCE_KIND = SourceKind(
    connector=WebsiteConnector,
    settings=WebsiteSettings,
    credential=WebsiteCredential,
    title="Website",
)
