"""Who is in a workspace, and what the places are called in which they speak."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum, auto

from connectors.document import EVERYBODY, NOBODY, Access, reader_token
from connectors.extraction.result import one_line
from connectors.http_client.response import Malformed
from connectors.sources.slack.models import Message, Raw, object_at, text_at

_SLACKBOT = "USLACKBOT"
_MOST_NAMED = 8


class Standing(StrEnum):
    MEMBER = auto()
    """Reads every public channel of the workspace."""
    GUEST = auto()
    """Reads only where they are members."""
    OUTSIDE = auto()
    """A program, somebody who left, or somebody of another workspace: reads nothing by this one."""


@dataclass(frozen=True, slots=True)
class User:
    id: str
    name: str
    email: str | None
    standing: Standing

    @classmethod
    def of(cls, raw: object) -> "User":
        """Raises Malformed: it is not a user."""
        if not (isinstance(raw, dict) and (own := text_at(raw, "id"))):
            raise Malformed("Slack gives for a user what is none")
        profile = object_at(raw, "profile")
        display = text_at(profile, "display_name") or text_at(profile, "real_name")
        name = one_line(display or text_at(raw, "real_name", "name")) or own
        # An address that nobody has confirmed may be somebody else's.
        address = "" if raw.get("is_email_confirmed") is False else text_at(profile, "email")
        return cls(own, name, _email(address), _standing(raw))

    @property
    def token(self) -> str | None:
        """Of the one who reads as this user."""
        return f"user:{self.email}" if self.email else None


def _standing(raw: Raw) -> Standing:
    outside = ("deleted", "is_bot", "is_workflow_bot", "is_stranger", "is_invited_user")
    if raw.get("id") == _SLACKBOT or any(raw.get(name) for name in outside):
        return Standing.OUTSIDE
    guest = raw.get("is_restricted") or raw.get("is_ultra_restricted")
    return Standing.GUEST if guest else Standing.MEMBER


def _email(text: str) -> str | None:
    try:
        return reader_token(f"user:{text}").removeprefix("user:")
    except ValueError:
        return None


class People:
    """All users of a workspace, and those of others as far as they are met."""

    def __init__(
        self, raws: Iterable[object], stranger: Callable[[str], User | None] = lambda _: None
    ) -> None:
        """`stranger` is asked once for each id that is not among the users.

        Raises:
            Malformed: one is not a user.
        """
        self._stranger = stranger
        self._users: dict[str, User] = {}
        self._strangers: dict[str, User | None] = {}
        self._bots: dict[str, str] = {}
        for raw in raws:
            user = User.of(raw)
            self._users[user.id] = user
            if isinstance(raw, dict) and (bot := text_at(object_at(raw, "profile"), "bot_id")):
                self._bots[bot] = user.name
        own = self._users.values()
        self.members = frozenset(
            one.token for one in own if one.token and one.standing is Standing.MEMBER
        )
        self.has_guests = any(one.token and one.standing is Standing.GUEST for one in own)

    def __getitem__(self, user_id: str) -> User | None:
        if user_id in self._users:
            return self._users[user_id]
        if user_id not in self._strangers:
            self._strangers[user_id] = self._stranger(user_id)
        return self._strangers[user_id]

    def name(self, user_id: str) -> str:
        user = self[user_id]
        return user.name if user else user_id

    def author(self, message: Message) -> str:
        """The name under which the message was written."""
        raw = message.raw
        bot = text_at(raw, "bot_id")
        written = text_at(raw, "username") or text_at(object_at(raw, "bot_profile"), "name")
        if message.user and not text_at(raw, "username") and self[message.user]:
            return self.name(message.user)
        profile = object_at(raw, "user_profile")
        written = written or text_at(profile, "display_name") or text_at(profile, "real_name")
        return one_line(written) or self._bots.get(bot, "") or message.user or bot or "unknown"

    def tokens(self, user_ids: Iterable[str]) -> frozenset[str]:
        """Of those among them who may read by this workspace."""
        found = (self._users.get(one) for one in user_ids)
        return frozenset(
            user.token
            for user in found
            if user and user.token and user.standing is not Standing.OUTSIDE
        )


class PublicReaders(StrEnum):
    """Who reads the public channels."""

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
    """A channel, or a conversation between two or several."""

    id: str
    name: str
    """Of a channel; of a conversation something technical or nothing."""
    kind: ChannelKind
    is_member: bool = True
    """Whether the token's own user is."""
    listed: tuple[str, ...] = field(default=(), repr=False)
    """Its members' ids, where they came with it."""

    @classmethod
    def of(cls, raw: object, kind: ChannelKind | None = None) -> "Channel":
        """
        Args:
            kind: what it is, where its own words do not tell (in an export).

        Raises:
            Malformed: it is not a channel.
        """
        if not (isinstance(raw, dict) and (own := text_at(raw, "id"))):
            raise Malformed("Slack gives for a channel what is none")
        members = raw.get("members")
        return cls(
            id=own,
            name=one_line(text_at(raw, "name")),
            kind=kind or _kind(raw),
            is_member=raw.get("is_member") is not False,
            listed=tuple(map(str, members)) if isinstance(members, list) else (),
        )

    @property
    def is_named(self) -> bool:
        return self.kind in (ChannelKind.PUBLIC, ChannelKind.PRIVATE)

    def label(self, people: People, members: Sequence[str]) -> str:
        """As people call it: by its name, or by those who speak there."""
        if self.is_named:
            return f"#{self.name or self.id}"
        names = sorted({people.name(one) for one in members})
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        return ", ".join(names[:_MOST_NAMED]) + more or self.id


def _kind(raw: Raw) -> ChannelKind:
    if raw.get("is_im"):
        return ChannelKind.DIRECT
    if raw.get("is_mpim"):
        return ChannelKind.GROUP
    private = raw.get("is_private") or raw.get("is_group")
    return ChannelKind.PRIVATE if private else ChannelKind.PUBLIC


@dataclass(frozen=True, slots=True)
class Reading:
    """Who reads what is said in a channel."""

    people: People
    public: PublicReaders

    def needs_members(self, channel: Channel) -> bool:
        """Whether that depends on who its members are."""
        if channel.kind is not ChannelKind.PUBLIC or self.public is PublicReaders.MEMBERS:
            return True
        return self.public is PublicReaders.WORKSPACE and self.people.has_guests

    def access(self, channel: Channel, members: Sequence[str]) -> Access:
        """`members` are ids, where they are needed; one without a known e-mail address reads nothing."""
        if channel.kind is not ChannelKind.PUBLIC or self.public is PublicReaders.MEMBERS:
            tokens = self.people.tokens(members)
        elif self.public is PublicReaders.EVERYBODY:
            return EVERYBODY
        else:
            tokens = self.people.members | self.people.tokens(members)
        return Access.to(tokens) if tokens else NOBODY


def named_by_id(channels: Iterable[Channel]) -> Mapping[str, str]:
    return {one.id: one.name or one.id for one in channels}
