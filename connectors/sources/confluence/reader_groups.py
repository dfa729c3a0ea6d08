"""The groups and spaces of a site as groups of readers, each with its accounts, and these with their people."""

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

from connectors.connector import Checkpoint, GroupItem, ReaderGroup, load_checkpoint
from connectors.http_client.api_client import required
from connectors.sources.confluence.models import Group, Space, User
from connectors.sources.confluence.permissions import (
    make_group_token,
    make_space_token,
    make_user_token,
    read_space_viewers,
)
from connectors.sources.confluence.site import Site
from connectors.sources.confluence.users_and_groups import UserDirectory


@dataclass(frozen=True, slots=True, order=True)
class _Position:
    """How far a listing has come: all spaces by their ids, then all groups."""

    kind: int = 0
    """0: spaces, 1: groups."""
    id: str = ""
    account: str = ""
    """The token of the last account of it that was listed."""

    @classmethod
    def parse(cls, since: Checkpoint | None) -> Self:
        """Parse a checkpoint; one that is not valid starts from the beginning."""
        match load_checkpoint(since):
            case {"confluence groups": [int(kind), str(scope), str(account)]}:
                return cls(kind, scope, account)
            case _:
                return cls()

    def to_checkpoint(self) -> Checkpoint:
        return Checkpoint(json.dumps({"confluence groups": [self.kind, self.id, self.account]}))


_END = "\N{REPLACEMENT CHARACTER}"
"""Comes after every account."""


@dataclass(frozen=True, slots=True)
class _Scope:
    position: _Position
    read: Callable[[], "tuple[ReaderGroup, Sequence[User]]"]
    """Returns it with the users among its members."""


@dataclass(frozen=True, slots=True)
class GroupLister:
    source_id: int
    site: Site
    users: UserDirectory
    public: Collection[str]
    """Who may read what anonymous visitors may view."""

    def list_groups(self, spaces: Sequence[Space], since: Checkpoint | None) -> Iterator[GroupItem]:
        """Yield spaces, then groups, each followed by the accounts that were not listed before, with checkpoints.

        Raises:
            SourceAuthError, TemporarilyUnavailableError: see `ApiClient`.
        """
        start, listed = _Position.parse(since), set[str]()
        for scope in self._iterate_scopes(spaces, start):
            group, users = scope.read()
            yield group
            accounts = {make_user_token(self.source_id, user): user for user in users}
            is_begun = scope.position.id == start.id and scope.position.kind == start.kind
            after = start.account if is_begun else ""
            for token in sorted(accounts.keys() - listed):
                if token > after:
                    yield self._read_account(token, accounts[token])
                    yield _Position(scope.position.kind, scope.position.id, token).to_checkpoint()
            listed.update(accounts)
            yield _Position(scope.position.kind, scope.position.id, _END).to_checkpoint()

    def _iterate_scopes(self, spaces: Sequence[Space], start: _Position) -> Iterator[_Scope]:
        found = {space.id: partial(self._read_space, space) for space in spaces}
        for space_id in sorted(found):
            if _Position(0, space_id, _END) > start:
                yield _Scope(_Position(0, space_id), found[space_id])
        with required("the list of groups"):
            groups = {group.id: group for group in self.site.list_groups()}
        for group_id in sorted(groups):
            if _Position(1, group_id, _END) > start:
                yield _Scope(_Position(1, group_id), partial(self._read_group, groups[group_id]))

    def _read_space(self, space: Space) -> tuple[ReaderGroup, Sequence[User]]:
        viewers = read_space_viewers(self.site, space)
        members = {make_user_token(self.source_id, one) for one in viewers.principals.users}
        members |= {make_group_token(self.source_id, one) for one in viewers.principals.groups}
        if viewers.is_public:
            members.update(self.public)
        token = make_space_token(self.source_id, space)
        name = space.name or space.key
        return ReaderGroup(token, frozenset(members), name), viewers.principals.users

    def _read_group(self, group: Group) -> tuple[ReaderGroup, Sequence[User]]:
        users = self.users.list_members(group)
        token = make_group_token(self.source_id, group)
        members = frozenset(make_user_token(self.source_id, one) for one in users)
        return ReaderGroup(token, members, group.name or group.id), users

    def _read_account(self, token: str, user: User) -> ReaderGroup:
        people = self.users.get_user_tokens([user])
        return ReaderGroup(token, people, self.users.get_display_name(user))
