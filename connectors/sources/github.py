"""GitHub: issues and pull requests with all that was said on them, for those who may read the repository."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from connectors.addresses import reach_of
from connectors.answer import Answer, BadAnswer, Unavailable
from connectors.connector import (
    Capability,
    Change,
    Check,
    Checkpoint,
    Deletion,
    Known,
    Listed,
    Unreadable,
)
from connectors.document import Access, Document
from connectors.errors import AskTheOwner, RetryLater
from connectors.github.calls import Account, Api, Refused, needed
from connectors.github.mark import Mark
from connectors.github.repositories import Repository, Visibility, find
from connectors.github.rights import People, Rights
from connectors.github.settings import GitHubCredential, GitHubSettings
from connectors.github.thread import (
    document,
    is_of,
    item_id,
    item_name,
    said_until,
)
from connectors.github.thread import (
    mark as mark_of,
)
from connectors.github.walk import Gone, Item, talked, walk
from connectors.kind import Kind

_LOOKED_AT = 20
"""Private repositories whose readers a check asks for."""


@dataclass(frozen=True, slots=True)
class _Run:
    """One connection, and what it was told of people."""

    api: Api
    people: People


class GitHubConnector:
    """An item's id is made of the numbers of its repository and its own: a rename keeps it."""

    def __init__(self, source: str, settings: GitHubSettings, credential: GitHubCredential) -> None:
        self._source = source
        self._settings = settings
        self._account = Account(
            source=source,
            api_url=settings.api_url,
            token=credential.token.get_secret_value(),
            reach=reach_of(settings.private_hosts),
        )

    @property
    def source(self) -> str:
        return self._source

    def changes(self, since: Checkpoint | None, known: Known) -> Iterator[Change]:
        """Yield what changed, repository by repository, with a checkpoint for each page of 100.

        A repository that is not there, or whose items the token may not see, ends the run once all
        others are read.

        Raises:
            RetryLater: GitHub does not answer, or its rate limit is used up.
            AskTheOwner: the token, its rights or the settings must be mended.
        """
        with self._api() as api:
            run = _Run(api, self._people(api))
            repositories, missing = self._repositories(api)
            mark = Mark.of(since, self._chosen).begun(api.began)
            faults = [self._lost(missing)] if missing else []
            for repository in repositories:
                if repository.id in mark.walked:
                    continue
                try:
                    for change in self._walked(run, repository, mark, known):
                        match change:
                            case Mark() as mark:
                                yield mark.checkpoint()
                            case _:
                                yield change
                except Refused as error:
                    faults.append(str(error))
            yield mark.done().checkpoint()
            if faults:
                raise AskTheOwner("; ".join(faults))

    def again(self, document_ids: Sequence[str]) -> Iterator[Change]:
        """Read these anew. See `Connector.again`.

        Raises:
            RetryLater: GitHub does not answer, or its rate limit is used up.
            AskTheOwner: the token, its rights or the settings must be mended.
        """
        with self._api() as api:
            people = self._people(api)
            there = {one.id: one for one in self._repositories(api)[0]}
            rights: dict[int, Rights] = {}
            for asked in document_ids:
                repository, number = self._place(asked, there)
                if repository is None:
                    yield Deletion(asked)
                    continue
                if repository.id not in rights:
                    rights[repository.id] = self._rights(people, repository)
                yield self._anew(api, repository, number, rights[repository.id])

    def listing(self) -> Iterator[Listed]:
        """Yield every item with those who may read its repository now. What the token may not see any
        more is not listed.

        Raises:
            RetryLater: GitHub does not answer, or its rate limit is used up.
            AskTheOwner: the token, its rights or the settings must be mended.
        """
        with self._api() as api:
            people = self._people(api)
            for repository in self._repositories(api)[0]:
                access = self._rights(people, repository).access
                for number in self._numbers(api, repository):
                    yield Listed(item_id(self._source, repository, number), access)

    def check(self) -> Iterator[Check]:
        """See `Connector.check`. Of private repositories the first 20 are asked for their readers."""
        content, access = self._faults()
        yield Check(Capability.CONTENT, content)
        yield Check(Capability.LISTING, content)
        yield Check(Capability.ACCESS, access)

    def _api(self) -> Api:
        return Api(self._account)

    def _people(self, api: Api) -> People:
        pairs = (one.partition("=") for one in self._settings.accounts)
        named = {login.lower(): address.lower() for login, _, address in pairs}
        return People(api, self._source, Access.to(self._settings.public_readers), named)

    def _repositories(self, api: Api) -> tuple[list[Repository], Sequence[str]]:
        """Those that are there, by their ids, and the names that lead nowhere."""
        left_out = {name.lower() for name in self._settings.exclude}
        with needed("the repositories"):
            found = find(api, self._settings.repositories)
        kept = [one for one in found.repositories if one.name.lower() not in left_out]
        return kept, found.missing

    def _rights(self, people: People, repository: Repository) -> Rights:
        with needed(f"the readers of {repository.name}"):
            return people.rights(repository)

    @property
    def _chosen(self) -> str:
        """Changes when items come in that were left out."""
        told = json.dumps([self._settings.api_url, sorted(set(self._settings.contents))])
        return hashlib.sha256(told.encode()).hexdigest()[:20]

    def _walked(
        self, run: _Run, repository: Repository, mark: Mark, known: Known
    ) -> Iterator[Change | Mark]:
        """The changes of one repository, each page of them followed by where the run is then."""
        rights = self._rights(run.people, repository)
        before: Mapping[int, str] = {}
        for items, then in self._leaves(run.api, repository, mark.start(repository.id)):
            fresh = [one for one in items if before.get(one.number) != mark_of(one)]
            yield from self._batch(run.api, repository, rights, fresh, known)
            before = {one.number: mark_of(one) for one in items}
            mark = mark.moved(repository.id, then)
            yield mark
        if repository.id in mark.whole and mark.since:
            yield from self._talked(run.api, repository, rights, mark.since, known)
        yield mark.left(repository.id)

    def _talked(
        self, api: Api, repository: Repository, rights: Rights, since: str, known: Known
    ) -> Iterator[Change]:
        """Items with comments that are newer than those in the documents that are held."""
        of_pulls = ["pulls"] if "pull requests" in self._settings.contents else []
        for list_of in ["issues", *of_pulls]:
            with needed(f"the comments of {repository.name}"):
                for latest in talked(api, repository, list_of, since):
                    ids = {item_id(self._source, repository, one): one for one in latest}
                    for held_id, held in (known(list(ids)) if ids else {}).items():
                        if said_until(held) < latest[ids[held_id]]:
                            yield self._anew(api, repository, ids[held_id], rights)

    def _leaves(
        self, api: Api, repository: Repository, since: str
    ) -> Iterator[tuple[list[Item], str]]:
        """Items that the settings take in, page by page, and from where in time to go on after each.
        Nothing of a repository that went away meanwhile."""
        try:
            with needed(f"the issues of {repository.name}"):
                for leaf in walk(api, repository, since):
                    yield list(filter(self._includes, leaf.items)), leaf.then
        except Gone:
            return

    def _includes(self, item: Item) -> bool:
        return ("pull requests" if item.is_pull else "issues") in self._settings.contents

    def _batch(
        self,
        api: Api,
        repository: Repository,
        rights: Rights,
        items: Sequence[Item],
        known: Known,
    ) -> Iterator[Change]:
        ids = {one.number: item_id(self._source, repository, one.number) for one in items}
        held = known(list(ids.values())) if ids else {}
        for item in items:
            if not is_of(held.get(ids[item.number], ""), item):
                yield self._read(api, repository, item, rights)

    def _read(
        self, api: Api, repository: Repository, item: Item, rights: Rights
    ) -> Document | Unreadable:
        try:
            return document(api, self._source, repository, item, rights)
        except (BadAnswer, Refused) as error:
            reason = str(error)
        except Unavailable as error:
            if error.status is None:
                raise
            reason = str(error)
        return Unreadable(
            document_id=item_id(self._source, repository, item.number),
            item=item_name(repository, item),
            reason=reason,
            link=item.link,
        )

    def _place(
        self, document_id: str, there: Mapping[int, Repository]
    ) -> tuple[Repository | None, int]:
        match = re.fullmatch(r"(\d{1,18})/(\d{1,10})", document_id.removeprefix(f"{self._source}:"))
        return (there.get(int(match[1])), int(match[2])) if match else (None, 0)

    def _anew(self, api: Api, repository: Repository, number: int, rights: Rights) -> Change:
        with needed(f"{repository.name}#{number}"):
            answer = api.get(f"{repository.path}/issues/{number}")
            if answer.status == 410:
                answer = api.get(f"{repository.path}/pulls/{number}")
            item = _item(answer, repository, number)
        if item is None or not self._includes(item):
            return Deletion(item_id(self._source, repository, number))
        return self._read(api, repository, item, rights)

    def _numbers(self, api: Api, repository: Repository) -> Iterator[int]:
        """Each once, although what changes meanwhile is told again."""
        seen = bytearray()
        for items, _ in self._leaves(api, repository, ""):
            for item in items:
                place, bit = item.number >> 3, 1 << (item.number & 7)
                seen.extend(bytes(max(0, place + 1 - len(seen))))
                if not seen[place] & bit:
                    seen[place] |= bit
                    yield item.number

    def _lost(self, missing: Sequence[str]) -> str:
        return (
            f"{', '.join(missing)}: no such repository, or the token may not see it. Give the token"
            f" the right to it, or take it out by quarry sources edit {self._source}"
        )

    def _faults(self) -> tuple[str | None, str | None]:
        """Of content, and of access."""
        try:
            with self._api() as api:
                repositories, missing = self._repositories(api)
                if missing:
                    return self._lost(missing), self._lost(missing)
                for repository in islice(repositories, 1):
                    next(self._leaves(api, repository, ""), None)
                return None, self._unseen(api, repositories)
        except (AskTheOwner, RetryLater) as error:
            return str(error), str(error)

    def _unseen(self, api: Api, repositories: Sequence[Repository]) -> str | None:
        closed = [one for one in repositories if one.visibility is not Visibility.PUBLIC]
        people = self._people(api)
        faults = {
            one.name: fault
            for one in closed[:_LOOKED_AT]
            if (fault := self._rights(people, one).fault) is not None
        }
        if not faults:
            return None
        return (
            f"who may read {', '.join(faults)} is not told, so nobody finds anything of it:"
            f" {next(iter(faults.values()))}"
        )


def _item(answer: Answer, repository: Repository, number: int) -> Item | None:
    """Nothing where it is gone, or was transferred to another repository, to which GitHub leads on."""
    if answer.gone:
        return None
    item = Item.of(answer.json_object())
    home = f"{repository.link}/".lower()
    return item if item.number == number and item.link.lower().startswith(home) else None


KIND = Kind(
    connector=GitHubConnector,
    settings=GitHubSettings,
    credential=GitHubCredential,
    title="GitHub",
)
