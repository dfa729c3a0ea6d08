"""GitHub: what is said and written in repositories, for those who may read them.

Issues, pull requests and discussions come by the API, wikis and files by git; each is a part of a
repository (see `connectors.sources.github.content_reader`), read one after the other.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from connectors.connector import Change, Check, Checkpoint, Deletion, Known, Listed, checks
from connectors.document import Access
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from connectors.git_repository.file_documents import READING
from connectors.http_client.address_guard import reach_of
from connectors.http_client.response import Malformed
from connectors.source_kind import Kind
from connectors.sources.github.checkpoint import Mark, key
from connectors.sources.github.client import Api, GitHubAccount, Refused, needed
from connectors.sources.github.content_reader import At, Home, Part, Read
from connectors.sources.github.discussions import Discussions
from connectors.sources.github.git_content import files, wiki
from connectors.sources.github.graphql_client import Graph
from connectors.sources.github.issues import Conversations
from connectors.sources.github.permissions import People, Rights
from connectors.sources.github.repositories import Repository, Visibility, find
from connectors.sources.github.settings import GitHubCredential, GitHubSettings

_LOOKED_AT = 20
"""Private repositories whose readers a check asks for."""
_TOLD = 5
"""Faults that are told in full."""


@dataclass(frozen=True, slots=True)
class _Run:
    """One connection, and what it was told of people."""

    source: str
    api: Api
    graph: Graph
    people: People

    def home(self, repository: Repository) -> Home:
        repository = self._as_it_is(repository)
        return Home(
            source=self.source,
            api=self.api,
            graph=self.graph,
            repository=repository,
            rights=self.rights(repository),
        )

    def _as_it_is(self, repository: Repository) -> Repository:
        """A run may be hours old when it comes to a repository that was open to all at its beginning."""
        if repository.visibility is not Visibility.PUBLIC:
            return repository
        with needed(f"the repository {repository.name}"):
            answer = self.api.get(repository.path)
            now = repository if answer.gone else Repository.of(answer.json_object())
            if now.id != repository.id:
                raise Malformed("another repository has its name by now")
            return now

    def rights(self, repository: Repository) -> Rights:
        with needed(f"the readers of {repository.name}"):
            return self.people.rights(repository)


class GitHubConnector:
    """An item's id is made of the number of its repository, which a rename keeps, and its own."""

    def __init__(self, source: str, settings: GitHubSettings, credential: GitHubCredential) -> None:
        self._source = source
        self._settings = settings
        self._account = GitHubAccount(
            source=source,
            api_url=settings.api_url,
            token=credential.token.get_secret_value(),
            reach=reach_of(settings.private_hosts),
        )
        self._parts = tuple(_parts(self._account, settings))

    @property
    def source(self) -> str:
        return self._source

    def changes(self, since: Checkpoint | None, known: Known) -> Iterator[Change]:
        """Yield what changed, repository by repository, with a checkpoint for each page or 200 files.

        A repository that is not there, or of which the token may not see a part, ends the run once all
        the rest is read.

        Raises:
            TemporarilyUnavailableError: GitHub does not answer, or its rate limit is used up.
            ActionRequiredError: the token, its rights or the settings must be mended.
        """
        with self._run() as run:
            repositories, missing = self._repositories(run.api)
            mark = Mark.of(since, self._chosen).begun(run.api.began)
            faults = [self._lost(missing)] if missing else []
            for repository in repositories:
                for change in self._changed(run, repository, mark, known):
                    match change:
                        case Mark() as mark:
                            yield mark.checkpoint()
                        case Refused():
                            faults.append(str(change))
                        case _:
                            yield change
            yield mark.done().checkpoint()
            if faults:
                raise ActionRequiredError(_told(faults))

    def again(self, document_ids: Sequence[str]) -> Iterator[Change]:
        """Read these anew, those of one part of a repository together. See `Connector.again`.

        Raises:
            TemporarilyUnavailableError: GitHub does not answer, or its rate limit is used up.
            ActionRequiredError: the token, its rights or the settings must be mended.
        """
        with self._run() as run:
            there = {one.id: one for one in self._repositories(run.api)[0]}
            places = {one: self._place(one, there) for one in document_ids}
            yield from (Deletion(one) for one, place in places.items() if place is None)
            for repository in dict.fromkeys(place[0] for place in places.values() if place):
                home = run.home(repository)
                for part in self._parts:
                    ids = [one for one in document_ids if places[one] == (repository, part)]
                    if ids:
                        yield from part.again(home, ids)

    def listing(self) -> Iterator[Listed]:
        """Yield every item with those who may read its repository now. What the token may not see any
        more is not listed.

        Raises:
            TemporarilyUnavailableError: GitHub does not answer, or its rate limit is used up.
            ActionRequiredError: the token, its rights or the settings must be mended.
        """
        with self._run() as run:
            for repository in self._repositories(run.api)[0]:
                home = run.home(repository)
                for part in self._parts:
                    yield from part.listing(home)

    def check(self) -> Iterator[Check]:
        """See `Connector.check`. Of private repositories the first 20 are asked for their readers."""
        yield from checks(*self._faults())

    @contextmanager
    def _run(self) -> Iterator[_Run]:
        pairs = (one.partition("=") for one in self._settings.accounts)
        named = {login.lower(): address.lower() for login, _, address in pairs}
        with Api(self._account) as api:
            public = Access.to(self._settings.public_readers)
            yield _Run(self._source, api, Graph(api), People(api, self._source, public, named))

    def _repositories(self, api: Api) -> tuple[list[Repository], Sequence[str]]:
        """Those that are there, by their ids, and the names that lead nowhere."""
        left_out = {name.lower() for name in self._settings.exclude}
        with needed("the repositories"):
            found = find(api, self._settings.repositories)
        kept = [one for one in found.repositories if one.name.lower() not in left_out]
        return kept, found.missing

    @property
    def _chosen(self) -> str:
        """Changes when items come in that were left out."""
        settings = self._settings
        by_git = [READING, settings.include_files, settings.exclude_files, settings.largest_file]
        told = json.dumps([settings.api_url, sorted(set(settings.contents)), by_git])
        return hashlib.sha256(told.encode()).hexdigest()[:20]

    def _changed(
        self, run: _Run, repository: Repository, mark: Mark, known: Known
    ) -> Iterator[Change | Mark | Refused]:
        """The changes of one repository, where the run is after each page of them, and what it may not
        see."""
        left = [one for one in self._parts if key(repository.id, one.name) not in mark.walked]
        if not left:
            return
        home = run.home(repository)
        for part in left:
            name = key(repository.id, part.name)
            try:
                for change in part.changes(home, mark.start(name), known):
                    match change:
                        case At(position):
                            yield (mark := mark.moved(name, position))
                        case Read(until):
                            yield (mark := mark.left(name, until))
                        case _:
                            yield change
            except Refused as error:
                yield error

    def _place(
        self, document_id: str, there: Mapping[int, Repository]
    ) -> tuple[Repository, Part] | None:
        match = re.match(r"(\d{1,18})/", own := document_id.removeprefix(f"{self._source}:"))
        repository = there.get(int(match[1])) if match else None
        if match is None or repository is None:
            return None
        parts = (one for one in self._parts if one.owns(own[match.end() :]))
        part = next(parts, None)
        return None if part is None else (repository, part)

    def _lost(self, missing: Sequence[str]) -> str:
        return (
            f"{', '.join(missing)}: no such repository, or the token may not see it. Give the token"
            f" the right to it, or take it out by quarry sources edit {self._source}"
        )

    def _faults(self) -> tuple[str | None, str | None]:
        """Of content, and of access."""
        try:
            with self._run() as run:
                repositories, missing = self._repositories(run.api)
                if missing:
                    return self._lost(missing), self._lost(missing)
                for home in map(run.home, repositories[:1]):
                    for part in self._parts:
                        part.probe(home)
                return None, _unseen(run, repositories)
        except (ActionRequiredError, TemporarilyUnavailableError) as error:
            return str(error), str(error)


def _parts(account: GitHubAccount, settings: GitHubSettings) -> Iterator[Part]:
    """Those that are read, in their order."""
    chosen = set(settings.contents)
    if chosen & {"issues", "pull requests"}:
        yield Conversations(settings.contents)
    if "discussions" in chosen:
        yield Discussions()
    if "wiki" in chosen:
        yield wiki(account, settings)
    if "files" in chosen:
        yield files(account, settings)


def _told(faults: Sequence[str]) -> str:
    different = list(dict.fromkeys(faults))
    more = len(different) - _TOLD
    return "; ".join(different[:_TOLD]) + (f"; and {more} more such faults" if more > 0 else "")


def _unseen(run: _Run, repositories: Sequence[Repository]) -> str | None:
    closed = [one for one in repositories if one.visibility is not Visibility.PUBLIC]
    faults = {
        one.name: fault
        for one in closed[:_LOOKED_AT]
        if (fault := run.rights(one).fault) is not None
    }
    if not faults:
        return None
    return (
        f"who may read {', '.join(faults)} is not told, so nobody finds anything of it:"
        f" {next(iter(faults.values()))}"
    )


KIND = Kind(
    connector=GitHubConnector,
    settings=GitHubSettings,
    credential=GitHubCredential,
    title="GitHub",
)
