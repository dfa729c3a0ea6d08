"""The connector of feeds: each entry is a document.

A feed shows its latest entries only. So what it no longer shows was not deleted: the `Retention` of the settings says
how long it stays. A feed that cannot be read ends a run with what is wrong, after the other feeds were read; a listing
then deletes nothing.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from urllib.parse import urlsplit

from connectors.batched import batched
from connectors.connector import (
    FIXED_READERS,
    Change,
    Check,
    Checkpoint,
    Deletion,
    DocumentListing,
    KnownVersions,
    ListingItem,
    Unreadable,
    find_fault,
    make_checks,
)
from connectors.errors import ActionRequiredError, SourceError, TemporarilyUnavailableError
from connectors.http_client.address_guard import parse_allowed_networks
from connectors.http_client.client import WebClient
from connectors.http_client.request import RequestLimits
from connectors.http_client.response import redact_url
from connectors.http_client.retry_policy import DEFAULT_RETRY_POLICY, RetryPolicy
from connectors.http_client.sign_in import make_authorization
from connectors.registry import SourceKind, SyncIntervals, without_groups
from connectors.sources.feed.checkpoints import (
    load_listed,
    load_validators,
    save_listed,
    save_validators,
)
from connectors.sources.feed.entries import Feed
from connectors.sources.feed.entry_document import EntryReader, make_version
from connectors.sources.feed.feed_client import (
    NO_VALIDATORS,
    FeedClient,
    FetchedFeed,
    UnchangedFeed,
)
from connectors.sources.feed.settings import FeedCredential, FeedSettings

_ENTRIES_PER_LOOKUP = 500
_ROLLED_OUT = "the feed no longer shows it, so that it cannot be read again"
_ROLLED_OUT_VERSION = "rolled out"


class FeedConnector:
    def __init__(
        self,
        source: str,
        settings: FeedSettings,
        credential: FeedCredential,
        *,
        retry_policy: RetryPolicy = DEFAULT_RETRY_POLICY,
    ) -> None:
        """Prepare to read feeds. Raises ValueError: a credential would be sent to a public host without encryption."""
        self._source = source
        self._settings = settings
        self._access = settings.access()
        self._feeds = settings.feeds()
        self._authorization = make_authorization(
            settings.url, credential.sign_in, settings.private_hosts
        )
        self._retry_policy = retry_policy

    @property
    def source(self) -> str:
        return self._source

    def changes(self, since: Checkpoint | None, known: KnownVersions) -> Iterator[Change]:
        """Yield the new and changed entries of the feeds that changed. See `Connector.changes`.

        Raises:
            TemporarilyUnavailableError: a server does not answer, or limits requests.
            ActionRequiredError: an address is of no feed, or the credential is not accepted.
        """
        before = load_validators(since)
        reached = {key: one for key, one in before.items() if key in self._feeds}
        problems = _Problems()
        with self._client() as client:
            for key, url in self._feeds.items():
                with problems.collecting():
                    match client.fetch_changes(url, reached.get(key, NO_VALIDATORS)):
                        case FetchedFeed(feed, validators):
                            yield from self._read(self._reader(key, feed), known)
                            reached[key] = validators
                        case UnchangedFeed():
                            pass
                    yield save_validators(reached)
        problems.raise_any()

    def refetch(self, document_ids: Sequence[str]) -> Iterator[Change]:
        """See `Connector.refetch`. What a feed no longer shows cannot be read again, and is not deleted."""
        problems = _Problems()
        with self._client() as client:
            for key, url in self._feeds.items():
                wanted = [one for one in document_ids if one.startswith(self._prefix(key))]
                with problems.collecting():
                    if wanted:
                        yield from self._reread(self._reader(key, client.fetch_feed(url)), wanted)
        prefixes = tuple(map(self._prefix, self._feeds))
        yield from (Deletion(one) for one in document_ids if not one.startswith(prefixes))
        problems.raise_any()

    def listing(self, since: Checkpoint | None) -> Iterator[ListingItem]:
        """Yield the entries that the feeds show. See `Connector.listing`.

        There is a checkpoint only where a feed could not be read, so that the others are not asked for again.
        """
        listed, problems = set(load_listed(since)) & self._feeds.keys(), _Problems()
        with self._client() as client:
            for key, url in self._feeds.items():
                if key not in listed:
                    with problems.collecting():
                        reader = self._reader(key, client.fetch_feed(url))
                        for entry in reader.feed.entries:
                            yield DocumentListing(reader.document_id(entry), self._access)
                        listed.add(key)
        if problems and listed:
            yield save_listed(listed)
        problems.raise_any()

    def check(self) -> Iterator[Check]:
        """See `Connector.check`."""
        fault = find_fault(self._probe)
        yield from make_checks(fault, fault)

    def _probe(self) -> None:
        problems = _Problems()
        with self._client() as client:
            for url in self._feeds.values():
                with problems.collecting():
                    client.fetch_feed(url)
        problems.raise_any()

    @contextmanager
    def _client(self) -> Iterator[FeedClient]:
        with WebClient(
            allowed_networks=parse_allowed_networks(self._settings.private_hosts),
            authorization=self._authorization,
            limits=RequestLimits(max_bytes=self._settings.largest_feed),
            retry_policy=self._retry_policy,
        ) as client:
            yield FeedClient(client, self._source)

    def _reader(self, key: str, feed: Feed) -> EntryReader:
        url = self._feeds[key]
        return EntryReader(
            source=self._source,
            feed_key=key,
            feed=feed,
            feed_name=urlsplit(url).hostname or "",
            feed_address=redact_url(url),
            access=self._access,
        )

    def _read(self, reader: EntryReader, known: KnownVersions) -> Iterator[Change]:
        for page in batched(reader.feed.entries, _ENTRIES_PER_LOOKUP):
            versions = known([reader.document_id(entry) for entry in page])
            for entry in page:
                if versions.get(reader.document_id(entry)) != make_version(entry):
                    yield reader.to_document(entry)

    def _reread(self, reader: EntryReader, wanted: Sequence[str]) -> Iterator[Change]:
        shown = {reader.document_id(entry): entry for entry in reader.feed.entries}
        for document_id in wanted:
            if entry := shown.get(document_id):
                yield reader.to_document(entry)
            else:
                yield Unreadable(
                    document_id=document_id,
                    item=document_id.removeprefix(self._prefix(reader.feed_key)),
                    reason=_ROLLED_OUT,
                    version=_ROLLED_OUT_VERSION,
                )

    def _prefix(self, key: str) -> str:
        return f"{self._source}:{key}/"


class _Problems:
    """What was wrong with feeds, while the others are read."""

    def __init__(self) -> None:
        self._errors: list[TemporarilyUnavailableError | ActionRequiredError] = []

    def __bool__(self) -> bool:
        return bool(self._errors)

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Note what is wrong with a feed, and go on."""
        try:
            yield
        except (TemporarilyUnavailableError, ActionRequiredError) as error:
            self._errors.append(error)

    def raise_any(self) -> None:
        """Raise one error for all. A person must act before waiting helps.

        Raises:
            TemporarilyUnavailableError, ActionRequiredError: of the feeds.
        """
        match self._errors:
            case []:
                return
            case [error]:
                raise error
            case _:
                raise self._join()

    def _join(self) -> TemporarilyUnavailableError | ActionRequiredError:
        lasting = [one for one in self._errors if isinstance(one, ActionRequiredError)]
        message = " ".join(dict.fromkeys(map(str, lasting or self._errors)))
        waits = [
            one.retry_after for one in self._errors if isinstance(one, TemporarilyUnavailableError)
        ]
        return SourceError(message) if lasting else TemporarilyUnavailableError(message, max(waits))


SOURCE_KIND = SourceKind(
    connector=without_groups(FeedConnector),
    settings=FeedSettings,
    credential=FeedCredential,
    server_access=FeedSettings.server_access,
    title="Feed",
    capabilities=FIXED_READERS,
    fixed_access=FeedSettings.access,
    retention=FeedSettings.retention,
    # A feed that is unchanged costs one small request; a listing fetches it whole.
    intervals=SyncIntervals(content=timedelta(minutes=30), deletions=timedelta(days=1)),
)
