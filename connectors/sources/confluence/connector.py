"""Confluence: pages and blog posts with their comments, and their attachments, for those who may view them."""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from connectors.connector import (
    Change,
    Check,
    Checkpoint,
    Deletion,
    Known,
    Listed,
    checks,
)
from connectors.document import Access
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from connectors.extraction.result import parsed_time
from connectors.files.glob_patterns import Choice
from connectors.http_client.address_guard import reach_of
from connectors.http_client.request import Authorization
from connectors.source_kind import Kind
from connectors.sources.confluence.changed_content import changed
from connectors.sources.confluence.checkpoint import Mark, Position
from connectors.sources.confluence.client import Account, Api, needed
from connectors.sources.confluence.cloud_site import CloudWiki
from connectors.sources.confluence.data_center_site import DataCenterWiki
from connectors.sources.confluence.document_reader import Attempt, Reading
from connectors.sources.confluence.models import Content, ContentKind, Space
from connectors.sources.confluence.page_documents import page_id
from connectors.sources.confluence.permissions import Rights
from connectors.sources.confluence.settings import (
    Cloud,
    ConfluenceCredential,
    ConfluenceSettings,
    DataCenter,
)
from connectors.sources.confluence.site import Wiki
from connectors.sources.confluence.users_and_groups import People

_LOOKED_AT = 20
"""Spaces whose readers a check asks for."""
_TOKENS_CLOUD = "id.atlassian.com, Security, API tokens"
_TOKENS_SERVER = "Confluence, your profile, Settings, Personal access tokens"


@dataclass(frozen=True, slots=True)
class _Run:
    """One connection, and what it was told."""

    wiki: Wiki
    reading: Reading
    spaces: Sequence[Space]
    """Those that the settings take in, by their ids."""

    @property
    def by_id(self) -> dict[str, Space]:
        return {one.id: one for one in self.spaces}


class ConfluenceConnector:
    """Ids are those of the site: they stay when a page is renamed or moved, to another space too."""

    def __init__(
        self, source: str, settings: ConfluenceSettings, credential: ConfluenceCredential
    ) -> None:
        self._source = source
        self._settings = settings
        self._account = _account(source, settings, credential)
        self._taken = Choice.of(settings.spaces, settings.exclude)

    @property
    def source(self) -> str:
        return self._source

    def changes(self, since: Checkpoint | None, known: Known) -> Iterator[Change]:
        """Yield what changed: spaces that are new from their beginning, of the others what the search says.

        A space that is named and not there ends the run once all others are read.

        Raises:
            TemporarilyUnavailableError: Confluence does not answer, or asks to wait.
            ActionRequiredError: the token, its rights or the settings must be mended.
        """
        with self._api() as api:
            run = self._begun(api)
            mark = Mark.of(since, self._chosen).begun(api.now)
            for change in self._all(run, mark, known):
                match change:
                    case Mark() as mark:
                        yield mark.checkpoint()
                    case _:
                        yield change
            yield mark.done(frozenset(run.by_id)).checkpoint()
            if missing := self._missing(run):
                raise ActionRequiredError(missing)

    def again(self, document_ids: Sequence[str]) -> Iterator[Change]:
        """Read these anew. See `Connector.again`. With a page come its attachments.

        Raises:
            TemporarilyUnavailableError: Confluence does not answer, or asks to wait.
            ActionRequiredError: the token, its rights or the settings must be mended.
        """
        with self._api() as api:
            run = self._begun(api)
            for asked in document_ids:
                own = asked.removeprefix(f"{self._source}:")
                if re.fullmatch(r"att[0-9]{1,19}", own):
                    yield from self._attachment_anew(run, asked, own)
                elif re.fullmatch(r"[0-9]{1,19}", own):
                    yield from self._page_anew(run, asked, own)
                else:
                    yield Deletion(asked)

    def listing(self) -> Iterator[Listed]:
        """Yield every page, blog post and attachment with those who may read it now. What is in the
        trash, archived, or hidden from the token is not listed.

        Raises:
            TemporarilyUnavailableError: Confluence does not answer, or asks to wait.
            ActionRequiredError: the token, its rights or the settings must be mended.
        """
        with self._api() as api:
            run = self._begun(api)
            for space in run.spaces:
                for kind in ContentKind:
                    for contents, _ in self._leaves(run, space, kind, ""):
                        yield from run.reading.listed(contents)

    def check(self) -> Iterator[Check]:
        """See `Connector.check`. Of the spaces the first 20 are asked for their readers."""
        yield from checks(*self._faults())

    def _api(self) -> Api:
        return Api(self._account)

    def _begun(self, api: Api) -> _Run:
        """Raises ActionRequiredError: the token does not stand for anybody: some sites take it for a stranger's,
        who may see a little."""
        with needed("the account of the token"):
            answer = api.get("/rest/api/user/current")
            if answer.gone:
                raise ActionRequiredError(
                    f"there is no Confluence at {api.base}: correct the address"
                )
            me = answer.json_object()
        if me.get("type") == "anonymous":
            raise api.not_taken()
        wiki = _wiki(self._settings.site, api)
        people = People(wiki, self._named)
        reading = Reading(
            source=self._source,
            wiki=wiki,
            people=people,
            rights=Rights(wiki, people, Access.to(self._settings.public_readers)),
            largest=self._settings.largest_attachment,
        )
        with needed("the spaces"):
            found = {one.id: one for one in wiki.spaces() if self._taken.takes((one.key,))}
        spaces = sorted(found.values(), key=lambda one: (len(one.id), one.id))
        return _Run(wiki, reading, spaces)

    @property
    def _named(self) -> dict[str, str]:
        pairs = (one.partition("=") for one in self._settings.accounts)
        return {account.lower(): address.lower() for account, _, address in pairs}

    @property
    def _chosen(self) -> str:
        """Changes when items have to be read anew."""
        told = json.dumps([self._settings.base, self._settings.largest_attachment])
        return hashlib.sha256(told.encode()).hexdigest()[:20]

    def _all(self, run: _Run, mark: Mark, known: Known) -> Iterator[Change | Mark]:
        """Each page of changes is followed by where the run is then."""
        old = [one for one in run.spaces if one.id in mark.whole]
        if old and mark.since:
            for change in self._searched(run, mark, old, known):
                mark = change if isinstance(change, Mark) else mark
                yield change
        for space in run.spaces:
            if space.id not in mark.whole | mark.walked:
                for change in self._walked(run, space, mark, known):
                    mark = change if isinstance(change, Mark) else mark
                    yield change

    def _walked(self, run: _Run, space: Space, mark: Mark, known: Known) -> Iterator[Change | Mark]:
        for kind in ContentKind:
            start = mark.start(space.id, kind)
            if start is None:
                continue
            for contents, then in self._leaves(run, space, kind, start):
                yield from run.reading.batch(contents, known)
                if then is not None:
                    mark = mark.moved(Position(space.id, kind, then))
                    yield mark
        yield mark.left(space.id)

    def _leaves(
        self, run: _Run, space: Space, kind: ContentKind, start: str
    ) -> Iterator[tuple[Sequence[Content], str | None]]:
        """What a leaf has that the one before it, empty ones aside, had not; and where the list goes on."""
        last: set[str] = set()
        with needed(f"the contents of the space {space.key}"):
            for sheaf in run.wiki.contents(space, kind, start):
                yield [one for one in sheaf.contents if one.id not in last], sheaf.next
                last = {one.id for one in sheaf.contents} or last

    def _searched(
        self, run: _Run, mark: Mark, spaces: Sequence[Space], known: Known
    ) -> Iterator[Change | Mark]:
        since = parsed_time(mark.since)
        if since is None:
            raise ValueError(f"not a moment: {mark.since}")
        there = {one.id: one for one in spaces}
        keys = [one.key for one in spaces]
        with needed("what changed"):
            for touched in changed(run.wiki, since, keys):
                found: list[Content] = []
                for own, kind in touched.ids.items():
                    attempt = Attempt(page_id(self._source, own), own, "")
                    with attempt.made():
                        found += _there(run.wiki.content(own, kind, there))
                    yield from attempt.faults
                yield from run.reading.batch(found, known)
                yield mark.caught_up(touched.then)

    def _page_anew(self, run: _Run, asked: str, own: str) -> Iterator[Change]:
        attempt = Attempt(asked, own, "")
        with attempt.made():
            content = run.wiki.content(own, None, run.by_id)
            yield from run.reading.anew(content) if content else [Deletion(asked)]
        yield from attempt.faults

    def _attachment_anew(self, run: _Run, asked: str, own: str) -> Iterator[Change]:
        attempt = Attempt(asked, own, "")
        with attempt.made():
            hung = run.wiki.attachment(own)
            content = run.wiki.content(hung.content_id, hung.kind, run.by_id) if hung else None
            yield from run.reading.attachment(own, content) if content else [Deletion(asked)]
        yield from attempt.faults

    def _missing(self, run: _Run) -> str | None:
        """Of spaces that are named by their whole keys."""
        there = {one.key for one in run.spaces}
        named = (one for one in self._settings.spaces if re.fullmatch(r"~?[\w.-]+", one))
        lost = [one for one in named if one not in there]
        if not lost:
            return None
        return (
            f"{', '.join(lost)}: no such space, or the token's account may not view it. Give it the"
            f" right, or take the space out by quarry sources edit {self._source}"
        )

    def _faults(self) -> tuple[str | None, str | None]:
        """Of content, and of access."""
        try:
            with self._api() as api:
                run = self._begun(api)
                if missing := self._missing(run):
                    return missing, missing
                for space in islice(run.spaces, 1):
                    next(self._leaves(run, space, ContentKind.PAGE, ""), None)
                return None, self._untold(run)
        except (ActionRequiredError, TemporarilyUnavailableError) as error:
            return str(error), str(error)

    def _untold(self, run: _Run) -> str | None:
        rights, people = run.reading.rights, run.reading.people
        looked = {one.key: rights.viewers(one).fault for one in run.spaces[:_LOOKED_AT]}
        faults = {key: fault for key, fault in looked.items() if fault}
        if not faults:
            return people.fault
        return (
            f"who may view {', '.join(faults)} is not told, so nobody finds anything of it:"
            f" {next(iter(faults.values()))}"
        )


def _there(content: Content | None) -> list[Content]:
    return [] if content is None else [content]


def _account(
    source: str, settings: ConfluenceSettings, credential: ConfluenceCredential
) -> Account:
    token = credential.token.get_secret_value()
    match settings.site:
        case Cloud(email=email):
            own = Authorization.basic(settings.base, email, token)
            where = _TOKENS_CLOUD
        case DataCenter():
            own = Authorization.bearer(settings.base, token)
            where = _TOKENS_SERVER
    return Account(
        source=source,
        base=settings.base,
        authorization=own,
        reach=reach_of(settings.private_hosts),
        where=where,
    )


def _wiki(site: Cloud | DataCenter, api: Api) -> Wiki:
    match site:
        case Cloud():
            return CloudWiki(api)
        case DataCenter():
            return DataCenterWiki(api, site.mail_domain)


KIND = Kind(
    connector=ConfluenceConnector,
    settings=ConfluenceSettings,
    credential=ConfluenceCredential,
    title="Confluence",
)
