"""The GitHub connector.

Issues, pull requests and discussions are read with the API, wikis and files with git; each is a part of a
repository (see `connectors.sources.github.content_reader`), and the parts are read one after the other.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from connectors.access import Access
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
from connectors.errors import ActionRequiredError, SourceAuthError, TemporarilyUnavailableError
from connectors.git_repository.file_documents import FORMAT_VERSION
from connectors.http_client.address_guard import parse_allowed_networks
from connectors.http_client.api_client import AccessDeniedError, ApiAccount, required
from connectors.http_client.response import MalformedResponse
from connectors.registry import REMOTE_INTERVALS, SourceKind
from connectors.sources.github.checkpoint import (
    GroupsPosition,
    ListingPosition,
    SyncCheckpoint,
    get_part_key,
)
from connectors.sources.github.client import GitHubClient
from connectors.sources.github.content_reader import (
    Part,
    PartCompleted,
    PartPosition,
    RepositoryContext,
)
from connectors.sources.github.discussions import DiscussionsPart
from connectors.sources.github.git_content import create_files_part, create_wiki_part
from connectors.sources.github.graphql_client import GraphQLClient
from connectors.sources.github.issues import IssuesPart
from connectors.sources.github.permissions import (
    PermissionReader,
    RepositoryScope,
    derive_repository_access,
)
from connectors.sources.github.repositories import (
    Repository,
    RepositorySelection,
    Visibility,
    find_repositories,
)
from connectors.sources.github.settings import GitHubCredential, GitHubSettings

_MAX_CHECKED = 20
"""Private repositories whose readers a check requests."""
_MAX_SHOWN = 5
"""Problems that are shown in full."""


@dataclass(frozen=True, slots=True)
class _Run:
    source: str
    source_id: int
    client: GitHubClient
    graphql: GraphQLClient
    permissions: PermissionReader

    def open(self, repository: Repository) -> RepositoryContext:
        repository = self._refresh(repository)
        return RepositoryContext(
            source=self.source,
            client=self.client,
            graphql=self.graphql,
            repository=repository,
            access=derive_repository_access(self.source_id, repository.id),
            find_email=partial(self.permissions.find_author_email, repository),
        )

    def read_scope(self, repository: Repository) -> RepositoryScope:
        return self.permissions.read_scope(self._refresh(repository))

    def _refresh(self, repository: Repository) -> Repository:
        """Request a repository again: when its turn comes, hours later, it may be private, or another may have its name."""
        with required(f"the repository {repository.name}"):
            raw = self.client.get_object(repository.path)
            current = repository if raw is None else Repository.parse(raw)
            if current.id != repository.id:
                raise MalformedResponse("another repository has its name now")
            return current


class GitHubConnector:
    """The id of a document has the id of its repository, which survives a rename, and its own name."""

    def __init__(
        self, source: str, source_id: int, settings: GitHubSettings, credential: GitHubCredential
    ) -> None:
        self._source = source
        self._source_id = source_id
        self._settings = settings
        self._account = ApiAccount(
            service="GitHub",
            source=source,
            api_url=settings.api_url,
            token=credential.token.get_secret_value(),
            token_page="GitHub, Settings, Developer settings, Personal access tokens",
            allowed_networks=parse_allowed_networks(settings.private_hosts),
        )
        self._parts = tuple(_create_parts(self._account, settings))

    @property
    def source(self) -> str:
        return self._source

    def changes(self, since: Checkpoint | None, known: KnownVersions) -> Iterator[Change]:
        """Yield what changed, repository by repository, with a checkpoint for each page or 200 files.

        If a repository is missing, or the token may not read a part, the run ends with an error after
        everything else is read.

        Raises:
            TemporarilyUnavailableError: GitHub is not available, or its rate limit is exceeded.
            ActionRequiredError: the token, its permissions or the settings must be corrected.
        """
        with self._start_run() as run:
            selection = self._select_repositories(run.client)
            stored = SyncCheckpoint.parse(since, self._settings_digest)
            checkpoint = stored.start(run.client.started_at)
            problems = [self._describe_missing(selection)] if selection.missing else []
            for repository in selection.repositories:
                for change in self._read_changes(run, repository, checkpoint, known):
                    match change:
                        case SyncCheckpoint() as checkpoint:
                            yield checkpoint.to_checkpoint()
                        case AccessDeniedError():
                            problems.append(str(change))
                        case _:
                            yield change
            yield checkpoint.complete().to_checkpoint()
            if problems:
                raise SourceAuthError(_summarize(problems))

    def refetch(self, document_ids: Sequence[str]) -> Iterator[Change]:
        """Read documents again, those of one part of a repository together. See `Connector.refetch`.

        Raises:
            TemporarilyUnavailableError: GitHub is not available, or its rate limit is exceeded.
            ActionRequiredError: the token, its permissions or the settings must be corrected.
        """
        with self._start_run() as run:
            repositories = self._select_repositories(run.client).repositories
            by_id = {one.id: one for one in repositories}
            places = {one: self._find_part(one, by_id) for one in document_ids}
            yield from (Deletion(one) for one, place in places.items() if place is None)
            for repository in dict.fromkeys(place[0] for place in places.values() if place):
                context = run.open(repository)
                for part in self._parts:
                    ids = [one for one in document_ids if places[one] == (repository, part)]
                    if ids:
                        yield from part.refetch(context, ids)

    def listing(self, since: Checkpoint | None) -> Iterator[ListingItem]:
        """Yield every document with its repository as its scope, with a checkpoint for each page.

        What the token may no longer read is not listed.

        Raises:
            TemporarilyUnavailableError: GitHub is not available, or its rate limit is exceeded.
            ActionRequiredError: the token, its permissions or the settings must be corrected.
        """
        start = ListingPosition.parse(since)
        with self._start_run() as run:
            for repository in self._select_repositories(run.client).repositories:
                if repository.id >= start.repository:
                    yield from self._list_repository(run.open(repository), start)

    def _list_repository(
        self, context: RepositoryContext, start: ListingPosition
    ) -> Iterator[ListingItem]:
        """List the parts of a repository, from where the listing was interrupted if it was in this one."""
        names = [part.name for part in self._parts]
        is_begun = context.repository.id == start.repository and start.part in names
        for part in self._parts[names.index(start.part) if is_begun else 0 :]:
            is_first = is_begun and part.name == start.part
            beginning = ListingPosition(context.repository.id, part.name)
            reached = start if is_first else beginning
            yield reached.to_checkpoint()
            for item in part.listing(context, reached.position):
                match item:
                    case PartPosition(position):
                        yield replace(reached, position=position).to_checkpoint()
                    case _:
                        yield item

    def groups(self, since: Checkpoint | None) -> Iterator[GroupItem]:
        """Yield repository after repository with the accounts that may read it, each account with its person.

        Raises as `listing`.
        """
        start = GroupsPosition.parse(since)
        listed: set[str] = set()
        with self._start_run() as run:
            for repository in self._select_repositories(run.client).repositories:
                if repository.id >= start.repository:
                    scope = run.read_scope(repository)
                    yield scope.group
                    after = start.login if repository.id == start.repository else ""
                    for login in (one for one in scope.logins if one > after and one not in listed):
                        yield run.permissions.read_account(login)
                        yield GroupsPosition(repository.id, login).to_checkpoint()
                    listed.update(scope.logins)
                    yield GroupsPosition(repository.id + 1).to_checkpoint()

    def derive_access(self, document_id: str) -> Access:
        repository, _, _ = document_id.removeprefix(f"{self._source}:").partition("/")
        return derive_repository_access(self._source_id, repository)

    def check(self) -> Iterator[Check]:
        """Test the connection, and the readers of the first 20 private repositories."""
        yield from make_checks(*self._find_problems())

    @contextmanager
    def _start_run(self) -> Iterator[_Run]:
        pairs = (one.partition("=") for one in self._settings.accounts)
        emails = {login.lower(): email.lower() for login, _, email in pairs}
        public = self._settings.public_readers
        with GitHubClient(self._account) as client:
            permissions = PermissionReader(client, self._source_id, public, emails)
            yield _Run(self._source, self._source_id, client, GraphQLClient(client), permissions)

    def _select_repositories(self, client: GitHubClient) -> RepositorySelection:
        excluded = {name.lower() for name in self._settings.exclude}
        with required("the list of repositories"):
            found = find_repositories(client, self._settings.repositories)
        selected = [one for one in found.repositories if one.name.lower() not in excluded]
        return RepositorySelection(selected, found.missing)

    @property
    def _settings_digest(self) -> str:
        """Changes when the settings select documents that were left out before."""
        settings = self._settings
        by_git = [
            FORMAT_VERSION,
            settings.include_files,
            settings.exclude_files,
            settings.largest_file,
        ]
        values = json.dumps([settings.api_url, sorted(set(settings.contents)), by_git])
        return hashlib.sha256(values.encode()).hexdigest()[:20]

    def _read_changes(
        self, run: _Run, repository: Repository, checkpoint: SyncCheckpoint, known: KnownVersions
    ) -> Iterator[Change | SyncCheckpoint | AccessDeniedError]:
        """Yield the changes of a repository, the progress after each page, and what may not be read."""
        keys = {part: get_part_key(repository.id, part.name) for part in self._parts}
        remaining = [part for part in self._parts if keys[part] not in checkpoint.completed_now]
        if not remaining:
            return
        context = run.open(repository)
        for part in remaining:
            key = keys[part]
            try:
                for change in part.changes(context, checkpoint.get_part_start(key), known):
                    match change:
                        case PartPosition(position):
                            yield (checkpoint := checkpoint.advance(key, position))
                        case PartCompleted(end_state):
                            yield (checkpoint := checkpoint.finish_part(key, end_state))
                        case _:
                            yield change
            except AccessDeniedError as error:
                yield error

    def _find_part(
        self, document_id: str, repositories: Mapping[int, Repository]
    ) -> tuple[Repository, Part] | None:
        match = re.match(r"(\d{1,18})/", own := document_id.removeprefix(f"{self._source}:"))
        repository = repositories.get(int(match[1])) if match else None
        if match is None or repository is None:
            return None
        parts = (one for one in self._parts if one.owns(own[match.end() :]))
        part = next(parts, None)
        return None if part is None else (repository, part)

    def _describe_missing(self, selection: RepositorySelection) -> str:
        return (
            f"{', '.join(selection.missing)}: no such repository, or the token may not read it. Grant"
            " the token access, or remove the repository with"
            f" `quarry sources edit {self._source}`"
        )

    def _find_problems(self) -> tuple[str | None, str | None]:
        """Return the problem of reading content and that of reading permissions."""
        try:
            with self._start_run() as run:
                selection = self._select_repositories(run.client)
                if selection.missing:
                    problem = self._describe_missing(selection)
                    return problem, problem
                for context in map(run.open, selection.repositories[:1]):
                    for part in self._parts:
                        part.probe(context)
                return None, _find_unknown_readers(run, selection.repositories)
        except (ActionRequiredError, TemporarilyUnavailableError) as error:
            return str(error), str(error)


def _create_parts(account: ApiAccount, settings: GitHubSettings) -> Iterator[Part]:
    contents = set(settings.contents)
    if contents & {"issues", "pull requests"}:
        yield IssuesPart(settings.contents)
    if "discussions" in contents:
        yield DiscussionsPart()
    if "wiki" in contents:
        yield create_wiki_part(account, settings)
    if "files" in contents:
        yield create_files_part(account, settings)


def _summarize(problems: Sequence[str]) -> str:
    different = list(dict.fromkeys(problems))
    more = len(different) - _MAX_SHOWN
    return "; ".join(different[:_MAX_SHOWN]) + (f"; and {more} more" if more > 0 else "")


def _find_unknown_readers(run: _Run, repositories: Sequence[Repository]) -> str | None:
    private = [one for one in repositories if one.visibility is not Visibility.PUBLIC]
    errors = {
        one.name: error
        for one in private[:_MAX_CHECKED]
        if (error := run.read_scope(one).error) is not None
    }
    if not errors:
        return None
    return (
        f"the readers of {', '.join(errors)} are not known, so nobody finds anything in it:"
        f" {next(iter(errors.values()))}"
    )


SOURCE_KIND = SourceKind(
    connector=GitHubConnector,
    settings=GitHubSettings,
    credential=GitHubCredential,
    server_access=GitHubSettings.server_access,
    title="GitHub",
    intervals=REMOTE_INTERVALS,
)
