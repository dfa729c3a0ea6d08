"""The Confluence connector: pages and blog posts with comments, and attachments, with their readers."""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from itertools import islice

from connectors.connector import (
    Change,
    Check,
    Checkpoint,
    Deletion,
    GroupItem,
    KnownVersions,
    ListingItem,
    make_checks,
)
from connectors.errors import (
    ActionRequiredError,
    NotFoundError,
    SourceError,
    TemporarilyUnavailableError,
)
from connectors.files.paths import PathFilter
from connectors.http_client.address_guard import parse_allowed_networks
from connectors.http_client.api_client import ApiAccount, required
from connectors.registry import REMOTE_INTERVALS, SourceKind
from connectors.sources.confluence.checkpoint import SyncCheckpoint
from connectors.sources.confluence.client import ConfluenceClient
from connectors.sources.confluence.cloud_site import CloudSite
from connectors.sources.confluence.data_center_site import DataCenterSite
from connectors.sources.confluence.document_reader import DocumentReader
from connectors.sources.confluence.listing import list_documents
from connectors.sources.confluence.models import ContentKind
from connectors.sources.confluence.permissions import PermissionReader, find_viewers_problem
from connectors.sources.confluence.reader_groups import GroupLister
from connectors.sources.confluence.settings import (
    Cloud,
    ConfluenceCredential,
    ConfluenceSettings,
    DataCenter,
)
from connectors.sources.confluence.site import Site
from connectors.sources.confluence.sync import SyncRun
from connectors.sources.confluence.users_and_groups import UserDirectory

_MAX_CHECKED = 20
"""Spaces whose readers a check requests."""
_CLOUD_TOKEN_PAGE = "id.atlassian.com, Security, API tokens"
_SERVER_TOKEN_PAGE = "Confluence, your profile, Settings, Personal access tokens"


class ConfluenceConnector:
    """Document ids are those of the site: they survive a rename and a move to another space."""

    def __init__(
        self,
        source: str,
        source_id: int,
        settings: ConfluenceSettings,
        credential: ConfluenceCredential,
    ) -> None:
        self._source = source
        self._source_id = source_id
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
            for change in run.read_changes(checkpoint, known):
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
                    yield from run.refetch_attachment(document_id, name)
                elif re.fullmatch(r"[0-9]{1,19}", name):
                    yield from run.refetch_page(document_id, name)
                else:
                    yield Deletion(document_id)

    def listing(self, since: Checkpoint | None) -> Iterator[ListingItem]:
        """Yield every page, blog post and attachment with its current readers, with a checkpoint after each content.

        What is in the trash, archived, or hidden from the token is not listed.

        Raises:
            TemporarilyUnavailableError: Confluence is not available, or asks to wait.
            ActionRequiredError: the token, its permissions or the settings must be corrected.
        """
        with self._connect() as client:
            yield from list_documents(self._start_run(client), since)

    def groups(self, since: Checkpoint | None) -> Iterator[GroupItem]:
        """Yield the spaces and the groups with their accounts, each account with its person. Raises as `listing`."""
        with self._connect() as client:
            run = self._start_run(client)
            lister = GroupLister(
                self._source_id, run.site, run.reader.users, self._settings.public_readers
            )
            yield from lister.list_groups(run.spaces, since)

    def check(self) -> Iterator[Check]:
        """Test the connection, and the readers of the first 20 spaces."""
        yield from make_checks(*self._find_problems())

    def _connect(self) -> ConfluenceClient:
        return ConfluenceClient(self._account)

    def _start_run(self, client: ConfluenceClient) -> SyncRun:
        self._check_account(client)
        site = _create_site(self._settings.site, client)
        users = UserDirectory(site, self._emails)
        reader = DocumentReader(
            source=self._source,
            site=site,
            users=users,
            permissions=PermissionReader(self._source_id, users),
            max_attachment_bytes=self._settings.largest_attachment,
        )
        with required("the list of spaces"):
            found = {
                one.id: one for one in site.list_spaces() if self._selection.includes((one.key,))
            }
        spaces = sorted(found.values(), key=lambda one: (len(one.id), one.id))
        return SyncRun(self._source, site, reader, spaces)

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

    def _describe_missing(self, run: SyncRun) -> str | None:
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
                    next(run.list_contents(space, ContentKind.PAGE, ""), None)
                return None, self._find_unknown_viewers(run)
        except (ActionRequiredError, TemporarilyUnavailableError) as error:
            return str(error), str(error)

    def _find_unknown_viewers(self, run: SyncRun) -> str | None:
        users = run.reader.users
        found = {
            one.key: find_viewers_problem(run.site, users, one) for one in run.spaces[:_MAX_CHECKED]
        }
        errors = {key: error for key, error in found.items() if error}
        if not errors:
            return users.error
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
    server_access=ConfluenceSettings.server_access,
    title="Confluence",
    intervals=REMOTE_INTERVALS,
)
