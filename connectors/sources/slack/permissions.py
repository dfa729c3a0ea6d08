"""What a token may do, told before a run needs it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from connectors.http_client.response import BadAnswer
from connectors.sources.slack.api_workspace import OnlineWorkspace, Scope
from connectors.sources.slack.client import Calls, items, lacking
from connectors.sources.slack.users_and_channels import ChannelKind, PublicReaders, Standing, User

_CALLED = {
    ChannelKind.PUBLIC: "channels",
    ChannelKind.PRIVATE: "groups",
    ChannelKind.GROUP: "mpim",
    ChannelKind.DIRECT: "im",
}
"""By what the names of their scopes begin."""
_SOME = 100
"""Users that are looked at for an e-mail address."""


@dataclass(frozen=True, slots=True)
class Rights:
    """Of one token, tried by a few small requests. Each gives what hinders, and how to mend it; none
    where nothing does."""

    source: str
    calls: Calls
    scope: Scope

    def content(self) -> str | None:
        """Of reading what is said."""
        return _spoken(self._reading)

    def access(self) -> str | None:
        """Of telling who may read it."""
        return _spoken(self._addresses)

    def _reading(self) -> str | None:
        _, granted = self.calls.scopes()
        needed = ["users:read", *self._for_channels()]
        if self.scope.largest_file:
            needed.append("files:read")
        if missing := self._missing(granted, needed):
            return missing
        workspace = OnlineWorkspace(self.calls, self.scope)
        channels = workspace.channels()
        if not channels:
            return (
                "there is no channel to read: invite the app to one (/invite in the channel), or"
                f" change what is chosen by quarry sources edit {self.source}"
            )
        self.calls.quick("conversations.history", {"channel": channels[0].id, "limit": 1})
        return None

    def _addresses(self) -> str | None:
        _, granted = self.calls.scopes()
        if self.scope.public is PublicReaders.EVERYBODY and self.scope.kinds == (
            ChannelKind.PUBLIC,
        ):
            return None
        if missing := self._missing(granted, ["users:read", "users:read.email"]):
            return missing
        people = self.calls.quick("users.list", {"limit": _SOME})
        users = [User.of(raw) for raw in items(people, "members", "users.list")]
        own = [user for user in users if user.standing is not Standing.OUTSIDE]
        if own and not any(user.email for user in own):
            return f"Slack tells no e-mail address: {lacking('users:read.email', self.source)}"
        return None

    def _for_channels(self) -> Iterator[str]:
        for kind in self.scope.kinds:
            yield f"{_CALLED[kind]}:read"
            yield f"{_CALLED[kind]}:history"

    def _missing(self, granted: frozenset[str] | None, needed: Sequence[str]) -> str | None:
        """Nothing is known to be missing where Slack does not say what it granted."""
        absent = [] if granted is None else [one for one in needed if one not in granted]
        return lacking(", ".join(absent), self.source) if absent else None


def _spoken(fault: Callable[[], str | None]) -> str | None:
    try:
        return fault()
    except (ActionRequiredError, TemporarilyUnavailableError, BadAnswer) as error:
        return str(error)
