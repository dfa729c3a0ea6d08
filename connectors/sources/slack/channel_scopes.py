"""Channels as scopes: a document names its channel, and a permission sync lists who may read that."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from connectors.access import PUBLIC, Access, make_external_token
from connectors.connector import Checkpoint, GroupItem, ReaderGroup
from connectors.sources.slack.checkpoint import make_groups_checkpoint, parse_groups_position
from connectors.sources.slack.users_and_channels import (
    Channel,
    ChannelKind,
    PublicReaders,
    User,
    UserStatus,
)
from connectors.sources.slack.workspace import Workspace

_WORKSPACE = "@workspace"
"""Stands for a channel with all members of the workspace; no channel has this id."""


def derive_channel_access(source_id: int, channel_id: str) -> Access:
    """Return the access of what is said in a channel."""
    return Access.to([make_external_token(source_id, channel_id)])


@dataclass(frozen=True, slots=True)
class ChannelScopes:
    """Lists who may read the channels of a workspace."""

    source_id: int
    workspace: Workspace
    public: PublicReaders

    def list_groups(self, since: Checkpoint | None) -> Iterator[GroupItem]:
        """Yield the members of the workspace and the accounts without an address, then the readers of channel after channel."""
        reached = parse_groups_position(since)
        if not reached:
            yield self._read_workspace()
            yield from map(self._make_account, self.workspace.users.list_without_address())
        for channel in self.workspace.list_channels():
            if channel.id > reached:
                yield self._read_channel(channel)
                yield make_groups_checkpoint(channel.id)

    @property
    def _workspace_token(self) -> str:
        return make_external_token(self.source_id, _WORKSPACE)

    def _read_workspace(self) -> ReaderGroup:
        is_used = self.public is PublicReaders.WORKSPACE
        return ReaderGroup(
            token=self._workspace_token,
            members=self._make_tokens(self.workspace.users.list_members() if is_used else ()),
            name=self.workspace.url.partition("://")[2],
        )

    def _make_account(self, user: User) -> ReaderGroup:
        return ReaderGroup(user.make_token(self.source_id), frozenset(), user.name)

    def _make_tokens(self, users: Iterable[User]) -> frozenset[str]:
        return frozenset(user.make_token(self.source_id) for user in users)

    def _read_channel(self, channel: Channel) -> ReaderGroup:
        members = self.workspace.list_members(channel) if self._needs_members(channel) else ()
        return ReaderGroup(
            token=make_external_token(self.source_id, channel.id),
            members=self._find_readers(channel, frozenset(members)),
            name=channel.get_label(self.workspace.users, members),
        )

    def _needs_members(self, channel: Channel) -> bool:
        if channel.kind is not ChannelKind.PUBLIC or self.public is PublicReaders.MEMBERS:
            return True
        return self.public is PublicReaders.WORKSPACE and self.workspace.users.has_guests

    def _find_readers(self, channel: Channel, members: frozenset[str]) -> frozenset[str]:
        """Return tokens of the readers; by one of an account reads whoever it is mapped to."""
        readers = self.workspace.users.get_readers(members)
        if channel.kind is not ChannelKind.PUBLIC or self.public is PublicReaders.MEMBERS:
            return self._make_tokens(readers)
        if self.public is PublicReaders.EVERYBODY:
            return frozenset({PUBLIC})
        guests = (one for one in readers if one.status is UserStatus.GUEST)
        return self._make_tokens(guests) | {self._workspace_token}
