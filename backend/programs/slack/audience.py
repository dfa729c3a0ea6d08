"""Who reads along in a channel, and what all of them may read.

A channel is compared member by member, by the accounts of its members. Where one of them has none, is a guest or an app that
no admin trusts, where the channel is shared with another organization, or where it has too many members to be compared,
only public documents are what all may read.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from backend.access.own_readers import find_own_readers
from backend.access.shared_file_readers import resolve_in
from backend.chat.rights_watch import ReadersNow
from backend.programs.slack.directory import Directory
from backend.programs.slack.web_api import SlackApi
from backend.store.accounts import people
from backend.store.chat.shared_files import FileHolders
from backend.store.database import Database
from backend.store.owner import ConversationOwner
from connectors.access import Readers

RIGHTS_SECONDS = 5.0
"""For which the rights of those who read along are kept while an answer is written; they are read anew before it is posted."""
STRANGER = Readers.of()
"""One who reads public documents only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AudienceRules:
    bot_user_id: str
    trusted_apps: frozenset[str] = frozenset()
    """Bot users that do not count as members."""
    most_members: int
    public_channels: Literal["members", "everybody"] = "members"


@dataclass(frozen=True, slots=True)
class Audience:
    """Those who read along with the person who asks."""

    person_ids: frozenset[int] = frozenset()
    public_only: str = ""
    """Why only public documents are searched, as it is said in the channel; empty where rights are compared."""


ALONE = Audience()
"""Of direct messages: nobody reads along."""
_SHARED = "This channel is shared with another organization or workspace, so only public documents were searched."
_EVERYBODY = "Everybody can read this channel, so only public documents were searched."
_TOO_MANY = "This channel has more than {most} members, so only public documents were searched."
_STRANGERS = "Not all members of this channel have an account at Quarry, so only public documents were searched."


class AudienceFinder:
    def __init__(self, api: SlackApi, directory: Directory, rules: AudienceRules) -> None:
        self._api = api
        self._directory = directory
        self._rules = rules

    def find(self, channel_id: str, asker_id: str) -> Audience:
        """Return who reads along in a channel now.

        Args:
            asker_id: the user who asks. A list of members without them is not believed.

        Raises:
            SlackCallError, TemporarilyUnavailableError
        """
        channel = self._api.find_channel(channel_id)
        if channel.is_shared:
            return Audience(public_only=_SHARED)
        if channel.is_public and self._rules.public_channels == "everybody":
            return Audience(public_only=_EVERYBODY)
        members = self._list_members(channel_id)
        if len(members) > self._rules.most_members:
            return Audience(public_only=_TOO_MANY.format(most=self._rules.most_members))
        return self._compare(members) if asker_id in members else Audience(public_only=_STRANGERS)

    def _list_members(self, channel_id: str) -> list[str]:
        """Return the members, or one more than are compared."""
        uncounted = {self._rules.bot_user_id, *self._rules.trusted_apps}
        counted = (one for one in self._api.list_members(channel_id) if one not in uncounted)
        return list(islice(counted, self._rules.most_members + 1))

    def _compare(self, members: Sequence[str]) -> Audience:
        found = set[int]()
        for member in members:
            person = self._directory.find_reader(member)
            if person is None:
                return Audience(public_only=_STRANGERS)
            found.add(person.id)
        return Audience(frozenset(found))


def read_rights(database: Database, audience: Audience, holders: FileHolders) -> list[Readers]:
    """Return what each of those who read along may read now."""
    if audience.public_only:
        return [STRANGER]
    return [_read_one(database, one, holders) for one in sorted(audience.person_ids)]


def _read_one(database: Database, person_id: int, holders: FileHolders) -> Readers:
    person = people.find(database, person_id)
    if person is None or person.disabled_at is not None:
        return STRANGER
    owner = ConversationOwner(person_id)
    return resolve_in(database, find_own_readers(database, person), owner, holders)


class JoinedReaders:
    """Reads what a person may read that everybody in an audience may read, too. Called as `ReadersNow`."""

    def __init__(
        self, asker_now: ReadersNow, database: Database, audience: Audience, holders: FileHolders
    ) -> None:
        self._asker_now = asker_now
        self._database = database
        self._audience = audience
        self._holders = holders
        self._others: list[Readers] = []
        self._read_at: float | None = None

    def __call__(self) -> Readers | None:
        asker = self._asker_now()
        return None if asker is None else asker.shown_to(self._read_others())

    def _read_others(self) -> list[Readers]:
        now = time.monotonic()
        if self._read_at is None or now - self._read_at >= RIGHTS_SECONDS:
            self._others = read_rights(self._database, self._audience, self._holders)
            self._read_at = now
        return self._others
