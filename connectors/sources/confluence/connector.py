"""The Confluence connector: pages and blog posts with comments, and attachments, with their readers."""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from connectors.access import Access
from connectors.connector import (
    Change,
    Check,
    Checkpoint,
    Deletion,
    DocumentListing,
    KnownVersions,
    make_checks,
)
from connectors.errors import (
    ActionRequiredError,
    NotFoundError,
    SourceError,
    TemporarilyUnavailableError,
)
from connectors.files.glob_patterns import PathFilter
from connectors.http_client.address_guard import parse_allowed_networks
from connectors.http_client.api_client import ApiAccount, required
from connectors.source_kind import SourceKind
from connectors.sources.confluence.changed_content import iterate_changes
from connectors.sources.confluence.checkpoint import Position, SyncCheckpoint
from connectors.sources.confluence.client import ConfluenceClient
from connectors.sources.confluence.cloud_site import CloudSite
from connectors.sources.confluence.data_center_site import DataCenterSite
from connectors.sources.confluence.document_reader import DocumentReader, ReadAttempt
from connectors.sources.confluence.models import Content, ContentKind, Space
from connectors.sources.confluence.page_documents import get_page_id
from connectors.sources.confluence.permissions import PermissionReader
from connectors.sources.confluence.settings import (
    Cloud,
    ConfluenceCredential,
    ConfluenceSettings,
    DataCenter,
)
from connectors.sources.confluence.site import Site
from connectors.sources.confluence.users_and_groups import UserDirectory
from connectors.text_cleaning import parse_time

_MAX_CHECKED = 20
"""Spaces whose readers a check requests."""
_CLOUD_TOKEN_PAGE = "id.atlassian.com, Security, API tokens"
_SERVER_TOKEN_PAGE = "Confluence, your profile, Settings, Personal access tokens"


@dataclass(frozen=True, slots=True)
class _Run:
    site: Site
    reader: DocumentReader
    spaces: Sequence[Space]
    """Those that the settings select, ordered by id."""

    @property
    def spaces_by_id(self) -> dict[str, Space]:
        return {one.id: one for one in self.spaces}


class ConfluenceConnector:
    """Document ids are those of the site: they survive a rename and a move to another space."""

    def __init__(
        self, source: str, settings: ConfluenceSettings, credential: ConfluenceCredential
    ) -> None:
        self._source = source
        self._settings = settings
        self._account = _create_account(source, settings, credential)
        self._selection = PathFilter.parse(settings.spaces, settings.exclude)

    @property
    def source(self) -> str:
        return self._source

    def changes(self, since: Checkpoint | None, known: KnownVersions) -> Iterator[Change]:
        """Yield what changed: new spaces are read completely, in the others changes are searched.

        If a space in the settings is missing, the run ends with an error after all others are read.

        Raises:
            TemporarilyUnavailableError: Confluence is not available, or asks to wait.
            ActionRequiredError: the token, its permissions or the settings must be corrected.
        """
        with self._connect() as client:
            run = self._start_run(client)
            stored = SyncCheckpoint.parse(since, self._settings_digest)
            checkpoint = stored.start(client.now)
            for change in self._read_all(run, checkpoint, known):
                match change:
                    case SyncCheckpoint() as checkpoint:
                        yield checkpoint.to_checkpoint()
                    case _:
                        yield change
            yield checkpoint.complete(frozenset(run.spaces_by_id)).to_checkpoint()
            if problem := self._describe_missing(run):
                raise NotFoundError(problem)

    def refetch(self, document_ids: Sequence[str]) -> Iterator[Change]:
        """Read documents again; a page comes with its attachments. See `Connector.refetch`.

        Raises:
            TemporarilyUnavailableError: Confluence is not available, or asks to wait.
            ActionRequiredError: the token, its permissions or the settings must be corrected.
        """
        with self._connect() as client:
            run = self._start_run(client)
            for document_id in document_ids:
                name = document_id.removeprefix(f"{self._source}:")
                if re.fullmatch(r"att[0-9]{1,19}", name):
                    yield from self._refetch_attachment(run, document_id, name)
                elif re.fullmatch(r"[0-9]{1,19}", name):
                    yield from self._refetch_page(run, document_id, name)
                else:
                    yield Deletion(document_id)

    def listing(self) -> Iterator[DocumentListing]:
        """Yield every page, blog post and attachment with its current readers.

        What is in the trash, archived, or hidden from the token is not listed.

        Raises:
            TemporarilyUnavailableError: Confluence is not available, or asks to wait.
            ActionRequiredError: the token, its permissions or the settings must be corrected.
        """
        with self._connect() as client:
            run = self._start_run(client)
            for space in run.spaces:
                for kind in ContentKind:
                    for contents, _ in self._list_contents(run, space, kind, ""):
                        yield from run.reader.list_documents(contents)

    def check(self) -> Iterator[Check]:
        """Test the connection, and the readers of the first 20 spaces."""
        yield from make_checks(*self._find_problems())

    def _connect(self) -> ConfluenceClient:
        return ConfluenceClient(self._account)

    def _start_run(self, client: ConfluenceClient) -> _Run:
        self._check_account(client)
        site = _create_site(self._settings.site, client)
        users = UserDirectory(site, self._emails)
        public = Access.to(self._settings.public_readers)
        reader = DocumentReader(
            source=self._source,
            site=site,
            users=users,
            permissions=PermissionReader(site, users, public),
            max_attachment_bytes=self._settings.largest_attachment,
        )
        with required("the list of spaces"):
            found = {one.id: one for one in site.list_spaces() if self._selection.takes((one.key,))}
        spaces = sorted(found.values(), key=lambda one: (len(one.id), one.id))
        return _Run(site, reader, spaces)

    def _check_account(self, client: ConfluenceClient) -> None:
        """Raise SourceAuthError if the site treats the token as anonymous, who may see a little."""
        with required("the account of the token"):
            user = client.get_object("/rest/api/user/current")
        if user is None:
            raise SourceError(
                f"there is no Confluence at {client.account.api_url}: correct the address"
            )
        if user.get("type") == "anonymous":
            raise client.invalid_token_error("its requests are anonymous")

    @property
    def _emails(self) -> dict[str, str]:
        pairs = (one.partition("=") for one in self._settings.accounts)
        return {account.lower(): email.lower() for account, _, email in pairs}

    @property
    def _settings_digest(self) -> str:
        """Changes when documents have to be read again."""
        values = json.dumps([self._settings.api_url, self._settings.largest_attachment])
        return hashlib.sha256(values.encode()).hexdigest()[:20]

    def _read_all(
        self, run: _Run, checkpoint: SyncCheckpoint, known: KnownVersions
    ) -> Iterator[Change | SyncCheckpoint]:
        """Yield the changes, and the progress after each page of them."""
        old = [one for one in run.spaces if one.id in checkpoint.completed]
        if old and checkpoint.since:
            for change in self._read_searched(run, checkpoint, old, known):
                checkpoint = change if isinstance(change, SyncCheckpoint) else checkpoint
                yield change
        for space in run.spaces:
            if space.id not in checkpoint.completed | checkpoint.completed_now:
                for change in self._read_space(run, space, checkpoint, known):
                    checkpoint = change if isinstance(change, SyncCheckpoint) else checkpoint
                    yield change

    def _read_space(
        self, run: _Run, space: Space, checkpoint: SyncCheckpoint, known: KnownVersions
    ) -> Iterator[Change | SyncCheckpoint]:
        for kind in ContentKind:
            start = checkpoint.get_cursor(space.id, kind)
            if start is None:
                continue
            for contents, following in self._list_contents(run, space, kind, start):
                yield from run.reader.read_changed(contents, known)
                if following is not None:
                    checkpoint = checkpoint.advance(Position(space.id, kind, following))
                    yield checkpoint
        yield checkpoint.finish_space(space.id)

    def _list_contents(
        self, run: _Run, space: Space, kind: ContentKind, start: str
    ) -> Iterator[tuple[Sequence[Content], str | None]]:
        """Yield pages of contents without those of the previous page, and the start of the next."""
        previous: set[str] = set()
        with required(f"the contents of the space {space.key}"):
            for page in run.site.list_contents(space, kind, start):
                yield [one for one in page.contents if one.id not in previous], page.next
                # An empty page does not count as the previous one.
                previous = {one.id for one in page.contents} or previous

    def _read_searched(
        self, run: _Run, checkpoint: SyncCheckpoint, spaces: Sequence[Space], known: KnownVersions
    ) -> Iterator[Change | SyncCheckpoint]:
        since = parse_time(checkpoint.since)
        if since is None:
            raise ValueError(f"not a time: {checkpoint.since}")
        by_id = {one.id: one for one in spaces}
        with required("the list of changes"):
            for changed in iterate_changes(run.site, since, [one.key for one in spaces]):
                contents: list[Content] = []
                for content_id, kind in changed.kinds.items():
                    document_id = get_page_id(self._source, content_id)
                    attempt = ReadAttempt(document_id, content_id, "")
                    with attempt.collect_failures():
                        content = run.site.find_content(content_id, kind, by_id)
                        contents += [content] if content else []
                    yield from attempt.failures
                yield from run.reader.read_changed(contents, known)
                yield checkpoint.catch_up(changed.resume_since)

    def _refetch_page(self, run: _Run, document_id: str, content_id: str) -> Iterator[Change]:
        attempt = ReadAttempt(document_id, content_id, "")
        with attempt.collect_failures():
            content = run.site.find_content(content_id, None, run.spaces_by_id)
            yield from run.reader.refetch_page(content) if content else [Deletion(document_id)]
        yield from attempt.failures

    def _refetch_attachment(
        self, run: _Run, document_id: str, attachment_id: str
    ) -> Iterator[Change]:
        attempt = ReadAttempt(document_id, attachment_id, "")
        with attempt.collect_failures():
            found = run.site.find_attachment(attachment_id)
            content = found and run.site.find_content(
                found.content_id, found.kind, run.spaces_by_id
            )
            if content:
                yield from run.reader.refetch_attachment(attachment_id, content)
            else:
                yield Deletion(document_id)
        yield from attempt.failures

    def _describe_missing(self, run: _Run) -> str | None:
        """Describe the spaces that are missing although the settings name them by their whole keys."""
        existing = {one.key for one in run.spaces}
        named = (one for one in self._settings.spaces if re.fullmatch(r"~?[\w.-]+", one))
        missing = [one for one in named if one not in existing]
        if not missing:
            return None
        return (
            f"{', '.join(missing)}: no such space, or the token's account may not view it. Grant it"
            " the permission, or remove the space with"
            f" `quarry sources edit {self._source}`"
        )

    def _find_problems(self) -> tuple[str | None, str | None]:
        """Return the problem of reading content and that of reading permissions."""
        try:
            with self._connect() as client:
                run = self._start_run(client)
                if problem := self._describe_missing(run):
                    return problem, problem
                for space in islice(run.spaces, 1):
                    next(self._list_contents(run, space, ContentKind.PAGE, ""), None)
                return None, self._find_unknown_viewers(run)
        except (ActionRequiredError, TemporarilyUnavailableError) as error:
            return str(error), str(error)

    def _find_unknown_viewers(self, run: _Run) -> str | None:
        get_viewers = run.reader.permissions.get_viewers
        found = {one.key: get_viewers(one).error for one in run.spaces[:_MAX_CHECKED]}
        errors = {key: error for key, error in found.items() if error}
        if not errors:
            return run.reader.users.error
        return (
            f"the readers of {', '.join(errors)} are not known, so nobody finds anything in it:"
            f" {next(iter(errors.values()))}"
        )


def _create_account(
    source: str, settings: ConfluenceSettings, credential: ConfluenceCredential
) -> ApiAccount:
    site = settings.site
    return ApiAccount(
        service="Confluence",
        source=source,
        api_url=settings.api_url,
        token=credential.token.get_secret_value(),
        user=site.email if isinstance(site, Cloud) else "",
        token_page=_CLOUD_TOKEN_PAGE if isinstance(site, Cloud) else _SERVER_TOKEN_PAGE,
        allowed_networks=parse_allowed_networks(settings.private_hosts),
    )


def _create_site(settings: Cloud | DataCenter, client: ConfluenceClient) -> Site:
    match settings:
        case Cloud():
            return CloudSite(client)
        case DataCenter():
            return DataCenterSite(client, settings.mail_domain)


SOURCE_KIND = SourceKind(
    connector=ConfluenceConnector,
    settings=ConfluenceSettings,
    credential=ConfluenceCredential,
    title="Confluence",
)
