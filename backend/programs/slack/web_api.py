"""The methods of Slack's Web API that the bot calls, with what it needs of their answers.

The reference is https://docs.slack.dev/reference/methods. Where Slack limits the rate, a call waits as long as
`Retry-After` says, and is made again.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias
from urllib.error import URLError

from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.http_retry.builtin_handlers import (
    ConnectionErrorRetryHandler,
    RateLimitErrorRetryHandler,
)
from slack_sdk.web import SlackResponse, WebClient

from connectors.errors import SourceError, TemporarilyUnavailableError

Block: TypeAlias = dict[str, Any]
TIMEOUT_SECONDS = 20
RATE_LIMIT_TRIES = 5
_PAGE = 200
_PASSING = frozenset({"internal_error", "fatal_error", "service_unavailable", "ratelimited"})
_RETRY_AFTER = timedelta(seconds=30)


class SlackCallError(SourceError):
    """Slack refuses a call, by a code such as `channel_not_found` or `missing_scope`."""

    def __init__(self, method: str, code: str) -> None:
        super().__init__(f"Slack refuses {method}: {code}.")
        self.code = code


@dataclass(frozen=True, slots=True)
class BotIdentity:
    team_id: str
    team_name: str
    user_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackUser:
    id: str
    team_ids: frozenset[str]
    """The workspaces that the account belongs to."""
    email: str | None
    """The confirmed address; None where there is none, or where it is not confirmed."""
    is_active_member: bool
    """A person with a full account: no bot, no guest, no stranger of a shared channel, not deactivated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackChannel:
    is_shared: bool
    """With another organization, or another workspace of the same one."""
    is_public: bool
    """Everybody in the workspace may open it."""


@dataclass(frozen=True, slots=True)
class SlackPost:
    """What a message shows. Slack shows the blocks, and the text in notifications."""

    text: str
    blocks: Sequence[Block]


@dataclass(frozen=True, slots=True)
class Thread:
    channel_id: str
    ts: str
    """Of its first message; empty for the channel itself."""


class SlackApi:
    def __init__(self, token: str, base_url: str) -> None:
        limited = RateLimitErrorRetryHandler(max_retry_count=RATE_LIMIT_TRIES)
        repeated = ConnectionErrorRetryHandler(max_retry_count=2)

        def connect(*handlers: Any) -> WebClient:
            return WebClient(
                token, base_url=base_url, timeout=TIMEOUT_SECONDS, retry_handlers=list(handlers)
            )

        self._reading = connect(repeated, limited)
        # A message whose answer was lost may have been posted: it is not posted once more.
        self._posting = connect(limited)

    @property
    def client(self) -> WebClient:
        """The client, for Socket Mode."""
        return self._reading

    def identify(self) -> BotIdentity:
        """Return who the bot is. Raises SlackCallError: the token is not valid."""
        found = _call("auth.test", self._reading.auth_test)
        return BotIdentity(found["team_id"], found.get("team", ""), found["user_id"])

    def list_scopes(self) -> frozenset[str]:
        """Return what the token may do."""
        found = _call("auth.test", self._reading.auth_test)
        stated = {name.lower(): value for name, value in found.headers.items()}
        return frozenset(filter(None, map(str.strip, stated.get("x-oauth-scopes", "").split(","))))

    def open_socket(self, app_token: str) -> str:
        """Return an address of Socket Mode. Raises SlackCallError: the token of the app is not valid."""
        found = _call(
            "apps.connections.open",
            lambda: self._reading.apps_connections_open(app_token=app_token),
        )
        return str(found["url"])

    def find_user(self, user_id: str) -> SlackUser:
        found = _call("users.info", lambda: self._reading.users_info(user=user_id))
        return _read_user(found["user"])

    def find_channel(self, channel_id: str) -> SlackChannel:
        found = _call(
            "conversations.info", lambda: self._reading.conversations_info(channel=channel_id)
        )
        channel = found["channel"]
        return SlackChannel(
            is_shared=any(channel.get(name) for name in _SHARED),
            is_public=not any(channel.get(name) for name in _CLOSED),
        )

    def list_members(self, channel_id: str) -> Iterator[str]:
        """Yield the ids of the users in a channel, page by page."""
        cursor: str | None = ""
        while cursor is not None:
            found = self._list_members_from(channel_id, cursor)
            yield from found["members"]
            cursor = (found.get("response_metadata") or {}).get("next_cursor") or None

    def _list_members_from(self, channel_id: str, cursor: str) -> SlackResponse:
        return _call(
            "conversations.members",
            lambda: self._reading.conversations_members(
                channel=channel_id, cursor=cursor, limit=_PAGE
            ),
        )

    def post(self, thread: Thread, post: SlackPost) -> str:
        """Post a message in a thread, and return its `ts`."""
        found = _call(
            "chat.postMessage",
            lambda: self._posting.chat_postMessage(
                channel=thread.channel_id,
                thread_ts=thread.ts or None,
                text=post.text,
                blocks=post.blocks,
                parse="none",
                link_names=False,
                unfurl_links=False,
                unfurl_media=False,
            ),
        )
        return str(found["ts"])

    def update(self, channel_id: str, ts: str, post: SlackPost) -> None:
        """Replace what a message of the bot shows."""
        _call(
            "chat.update",
            lambda: self._reading.chat_update(
                channel=channel_id,
                ts=ts,
                text=post.text,
                blocks=post.blocks,
                parse="none",
                link_names=False,
            ),
        )

    def tell(self, thread: Thread, user_id: str, post: SlackPost) -> None:
        """Show a message in a thread to one person alone."""
        _call(
            "chat.postEphemeral",
            lambda: self._posting.chat_postEphemeral(
                channel=thread.channel_id,
                thread_ts=thread.ts,
                user=user_id,
                text=post.text,
                blocks=post.blocks,
                parse="none",
                link_names=False,
            ),
        )

    def open_direct_messages(self, user_id: str) -> str:
        """Return the channel of a person's direct messages with the bot."""
        found = _call("conversations.open", lambda: self._reading.conversations_open(users=user_id))
        return str(found["channel"]["id"])


_SHARED = ("is_shared", "is_ext_shared", "is_org_shared", "is_pending_ext_shared")
_CLOSED = ("is_private", "is_im", "is_mpim", "is_group")
_NO_MEMBER = ("deleted", "is_bot", "is_stranger", "is_restricted", "is_ultra_restricted")
"""What is true of accounts that are no full members: `is_restricted` and `is_ultra_restricted` are those of guests."""


def _read_user(user: Mapping[str, Any]) -> SlackUser:
    teams = (user.get("enterprise_user") or {}).get("teams", ())
    email = (user.get("profile") or {}).get("email")
    return SlackUser(
        id=user["id"],
        team_ids=frozenset({user.get("team_id", ""), *teams}),
        email=email if user.get("is_email_confirmed") else None,
        is_active_member=not any(user.get(name) for name in _NO_MEMBER),
    )


def _call(method: str, call: Callable[[], SlackResponse]) -> SlackResponse:
    """Call a method of Slack's API.

    Raises:
        SlackCallError: Slack refuses the call.
        TemporarilyUnavailableError: Slack cannot be reached, or limits the rate for too long.
    """
    try:
        return call()
    except SlackApiError as error:
        code = str(error.response.get("error") or error.response.status_code)
        if code in _PASSING or code.startswith("5"):
            raise TemporarilyUnavailableError(
                f"Slack does not answer: {code}.", _RETRY_AFTER
            ) from error
        raise SlackCallError(method, code) from error
    except (SlackClientError, URLError, OSError) as error:
        raise TemporarilyUnavailableError("Slack cannot be reached.", _RETRY_AFTER) from error
