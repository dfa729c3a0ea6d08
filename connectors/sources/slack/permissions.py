"""A test of what a token may do, before a run needs it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from connectors.http_client.api_client import get_field
from connectors.http_client.response import ResponseError
from connectors.sources.slack.api_workspace import ApiWorkspace, Scope
from connectors.sources.slack.client import MissingScopeError, SlackClient
from connectors.sources.slack.users_and_channels import (
    ChannelKind,
    PublicReaders,
    User,
    UserStatus,
)

_SCOPE_PREFIXES = {
    ChannelKind.PUBLIC: "channels",
    ChannelKind.PRIVATE: "groups",
    ChannelKind.GROUP: "mpim",
    ChannelKind.DIRECT: "im",
}
_MAX_CHECKED = 100
"""Users that are checked for an e-mail address."""


@dataclass(frozen=True, slots=True)
class PermissionCheck:
    """Tests a token with a few small requests. Each test returns a problem, or None."""

    source: str
    client: SlackClient
    scope: Scope

    def find_content_problem(self) -> str | None:
        """Test whether messages can be read."""
        return _catch_problem(self._check_content)

    def find_access_problem(self) -> str | None:
        """Test whether the readers of messages can be determined."""
        return _catch_problem(self._check_access)

    def _check_content(self) -> str | None:
        files = ["files:read"] if self.scope.max_file_bytes else []
        self._check_scopes(["users:read", *self._iterate_channel_scopes(), *files])
        workspace = ApiWorkspace(self.client, self.scope)
        channels = workspace.list_channels()
        if not channels:
            return (
                "there is no channel to read: invite the app to one (/invite in the channel), or"
                f" change the selection with `quarry sources edit {self.source}`"
            )
        self.client.call("conversations.history", {"channel": channels[0].id, "limit": 1})
        return None

    def _check_access(self) -> str | None:
        is_all_public = self.scope.kinds == (ChannelKind.PUBLIC,)
        if is_all_public and self.scope.public is PublicReaders.EVERYBODY:
            return None
        self._check_scopes(["users:read", "users:read.email"])
        result = self.client.call("users.list", {"limit": _MAX_CHECKED})
        users = [User.parse(raw) for raw in get_field(result, "members", list)]
        own = [user for user in users if user.status is not UserStatus.OUTSIDE]
        if own and not any(user.email for user in own):
            missing = MissingScopeError("users:read.email", self.source)
            return f"Slack returns no e-mail addresses: {missing}"
        return None

    def _iterate_channel_scopes(self) -> Iterator[str]:
        for kind in self.scope.kinds:
            yield f"{_SCOPE_PREFIXES[kind]}:read"
            yield f"{_SCOPE_PREFIXES[kind]}:history"

    def _check_scopes(self, needed: Sequence[str]) -> None:
        """Raise MissingScopeError if Slack lists the scopes of the token and one is missing."""
        granted = self.client.get_scopes()
        missing = [] if granted is None else [one for one in needed if one not in granted]
        if missing:
            raise MissingScopeError(", ".join(missing), self.source)


def _catch_problem(check: Callable[[], str | None]) -> str | None:
    try:
        return check()
    except (ActionRequiredError, TemporarilyUnavailableError, ResponseError) as error:
        return str(error)
