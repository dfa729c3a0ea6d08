"""The users and channels of a workspace."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum, auto

from connectors.access import make_account_token, parse_reader_token
from connectors.http_client.response import MalformedResponse
from connectors.sources.slack.models import Message, Raw, get_object, get_text
from connectors.text_cleaning import to_one_line

_SLACKBOT = "USLACKBOT"
_MAX_LABEL_NAMES = 8


class UserStatus(StrEnum):
    MEMBER = auto()
    """May read every public channel of the workspace."""
    GUEST = auto()
    """May read only the channels of which they are a member."""
    OUTSIDE = auto()
    """An app, a deactivated user, or a user of another workspace: gets no access from this one."""


@dataclass(frozen=True, slots=True)
class User:
    id: str
    name: str
    email: str | None
    status: UserStatus

    @classmethod
    def parse(cls, raw: object) -> "User":
        """Parse a user; raise MalformedResponse if it is not one."""
        if not (isinstance(raw, dict) and (own := get_text(raw, "id"))):
            raise MalformedResponse("Slack returns an invalid user")
        profile = get_object(raw, "profile")
        display = get_text(profile, "display_name") or get_text(profile, "real_name")
        name = to_one_line(display or get_text(raw, "real_name", "name")) or own
        # An address that is not confirmed may belong to somebody else.
        address = "" if raw.get("is_email_confirmed") is False else get_text(profile, "email")
        return cls(own, name, _parse_email(address), _parse_status(raw))

    @property
    def is_reader(self) -> bool:
        return self.status is not UserStatus.OUTSIDE

    def make_token(self, source_id: int) -> str:
        """Return the reader token of the user: by the e-mail address if it is known, otherwise by the account."""
        return f"user:{self.email}" if self.email else make_account_token(source_id, self.id)


def _parse_status(raw: Raw) -> UserStatus:
    outside = ("deleted", "is_bot", "is_workflow_bot", "is_stranger", "is_invited_user")
    if raw.get("id") == _SLACKBOT or any(raw.get(name) for name in outside):
        return UserStatus.OUTSIDE
    guest = raw.get("is_restricted") or raw.get("is_ultra_restricted")
    return UserStatus.GUEST if guest else UserStatus.MEMBER


def _parse_email(text: str) -> str | None:
    try:
        return parse_reader_token(f"user:{text}").removeprefix("user:")
    except ValueError:
        return None


class UserDirectory:
    """All users of a workspace, and users of other workspaces who wrote messages."""

    def __init__(
        self, raws: Iterable[object], find_other: Callable[[str], User | None] = lambda _: None
    ) -> None:
        """Note users by their ids, and the names of their bots.

        Args:
            find_other: called once for each id that is not among the users.

        Raises:
            MalformedResponse: one is not a user.
        """
        self._find_other = find_other
        self._users: dict[str, User] = {}
        self._others: dict[str, User | None] = {}
        self._bots: dict[str, str] = {}
        for raw in raws:
            user = User.parse(raw)
            self._users[user.id] = user
            if isinstance(raw, dict) and (bot := get_text(get_object(raw, "profile"), "bot_id")):
                self._bots[bot] = user.name
        self.has_guests = any(one.status is UserStatus.GUEST for one in self._users.values())

    def __getitem__(self, user_id: str) -> User | None:
        if user_id in self._users:
            return self._users[user_id]
        if user_id not in self._others:
            self._others[user_id] = self._find_other(user_id)
        return self._others[user_id]

    def get_name(self, user_id: str) -> str:
        user = self[user_id]
        return user.name if user else user_id

    def get_author(self, message: Message) -> str:
        """Return the name under which a message was written."""
        raw = message.raw
        bot = get_text(raw, "bot_id")
        written = get_text(raw, "username") or get_text(get_object(raw, "bot_profile"), "name")
        if message.user and not get_text(raw, "username") and self[message.user]:
            return self.get_name(message.user)
        profile = get_object(raw, "user_profile")
        written = written or get_text(profile, "display_name") or get_text(profile, "real_name")
        return to_one_line(written) or self._bots.get(bot, "") or message.user or bot or "unknown"

    def get_readers(self, user_ids: Iterable[str]) -> list[User]:
        """Return the members and guests among the users."""
        found = (self._users.get(one) for one in user_ids)
        return [user for user in found if user and user.is_reader]

    def list_members(self) -> list[User]:
        """Return the users who may read every public channel."""
        return [one for one in self._users.values() if one.status is UserStatus.MEMBER]

    def list_without_address(self) -> list[User]:
        """Return the members and guests whose e-mail address is not known, by their ids."""
        found = (one for one in self._users.values() if one.is_reader and not one.email)
        return sorted(found, key=lambda one: one.id)


class PublicReaders(StrEnum):
    """Who may read the public channels."""

    WORKSPACE = "workspace"
    MEMBERS = "members"
    EVERYBODY = "everybody"


class ChannelKind(StrEnum):
    PUBLIC = "public"
    PRIVATE = "private"
    GROUP = "group"
    DIRECT = "direct"


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """A channel, or a conversation between two or more users."""

    id: str
    name: str
    """Of a channel; of a conversation a technical name or nothing."""
    kind: ChannelKind
    is_member: bool = True
    """Whether the user of the token is a member."""
    members: tuple[str, ...] = field(default=(), repr=False)
    """The ids of the members, if the response contains them."""

    @classmethod
    def parse(cls, raw: object, kind: ChannelKind | None = None) -> "Channel":
        """Read a channel as the API or an export describes it.

        Args:
            kind: the kind, if the object does not contain it (in an export).

        Raises:
            MalformedResponse: it is not a channel.
        """
        if not (isinstance(raw, dict) and (own := get_text(raw, "id"))):
            raise MalformedResponse("Slack returns an invalid channel")
        members = raw.get("members")
        return cls(
            id=own,
            name=to_one_line(get_text(raw, "name")),
            kind=kind or _parse_kind(raw),
            is_member=raw.get("is_member") is not False,
            members=tuple(map(str, members)) if isinstance(members, list) else (),
        )

    @property
    def is_named(self) -> bool:
        return self.kind in (ChannelKind.PUBLIC, ChannelKind.PRIVATE)

    def get_label(self, users: UserDirectory, members: Sequence[str]) -> str:
        """Return the name of a channel, or the members of a conversation."""
        if self.is_named:
            return f"#{self.name or self.id}"
        names = sorted({users.get_name(one) for one in members})
        more = f" and {len(names) - _MAX_LABEL_NAMES} more" if len(names) > _MAX_LABEL_NAMES else ""
        return ", ".join(names[:_MAX_LABEL_NAMES]) + more or self.id


def _parse_kind(raw: Raw) -> ChannelKind:
    if raw.get("is_im"):
        return ChannelKind.DIRECT
    if raw.get("is_mpim"):
        return ChannelKind.GROUP
    private = raw.get("is_private") or raw.get("is_group")
    return ChannelKind.PRIVATE if private else ChannelKind.PUBLIC


def get_channel_names(channels: Iterable[Channel]) -> Mapping[str, str]:
    return {one.id: one.name or one.id for one in channels}
