"""A fake of Slack's Web API, after its documentation.

Responses have `ok`, `error` and `needed`, lists have cursors in `response_metadata`, history is newest first
and replies are oldest first, a rate limit is a 429 with Retry-After, a deleted message with replies becomes a
tombstone, and a token is limited to its scopes.
"""

import base64
import itertools
import json
import time
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tests.support.services.serving import ReceivedRequest, Reply, reply_json

Json: TypeAlias = dict[str, Any]

TOKEN = "xoxb-right"
SCOPES = (
    "users:read users:read.email files:read channels:read channels:history groups:read"
    " groups:history mpim:read mpim:history im:read im:history"
)
_NEEDED = {"C": "channels", "G": "groups", "M": "mpim", "D": "im"}
_MOST = 999


class SlackApiError(Exception):
    """Raised for a response that is not ok."""

    def __init__(self, code: str, **more: str) -> None:
        super().__init__(code)
        self.body = {"ok": False, "error": code, **more}


@dataclass
class Conversation:
    """Public if its id begins with C, private with G, of several people with M, of two with D."""

    raw: Json
    members: list[str]
    messages: Sequence[Json] = field(default_factory=list)
    """Oldest first, including replies that were also sent to the channel."""
    replies: dict[str, list[Json]] = field(default_factory=dict)
    """By the `ts` of the first message of the thread; oldest first."""

    def with_replies(self, message: Json) -> Json:
        """Return a message as the API does, with the number of its replies and the last."""
        replies = self.replies.get(message["ts"])
        if not replies:
            return message
        return {
            **message,
            "thread_ts": message["ts"],
            "reply_count": len(replies),
            "reply_users_count": len({one.get("user") for one in replies}),
            "latest_reply": replies[-1]["ts"],
            "is_locked": False,
            "subscribed": False,
        }


def person(user_id: str, name: str, email: str = "", **more: Any) -> Json:
    profile = {"real_name": name, "display_name": "", **({"email": email} if email else {})}
    return {"id": user_id, "name": user_id.lower(), "profile": profile, "deleted": False, **more}


class SlackService:
    """A service with state: `serve(SlackService())`. Tests change it at any time."""

    def __init__(self) -> None:
        self.token = TOKEN
        self.scopes = SCOPES
        self.is_app = True
        self.users: list[Json] = []
        self.conversations: dict[str, Conversation] = {}
        self.files: dict[str, bytes] = {}
        """By the path of their URL, which begins with /files-pri/."""
        self.failing_threads: set[str] = set()
        """The `ts` of messages whose replies cannot be read."""
        self.max_page_size = _MOST
        """Items on a page."""
        self.clock_offset = 0.0
        """Seconds by which its clock is ahead of this machine's."""
        self.requests_before_fault = 0
        self.fault: Callable[[ReceivedRequest], Reply] | None = None
        """Replies instead, after `requests_before_fault` more requests."""
        self.budget: Counter[str] | None = None
        """The number of requests of each method before its rate limit."""
        self.retry_after = "60"
        self.before_history: Callable[[int], None] = lambda _: None
        """Called with the number of the request, counted from 0."""
        self.has_gaps = False
        """Whether pages of history are short, and every second one is empty."""
        self.overlap = 0
        """The number of messages that a page of history repeats from the previous one."""
        self.calls: list[tuple[str, dict[str, str]]] = []
        self._stamps = itertools.count(1)
        self._histories = itertools.count()

    def add_channel(self, own: str, name: str, members: Iterable[str], **more: Any) -> Conversation:
        raw = {
            "id": own,
            "name": name,
            "is_member": True,
            "is_archived": False,
            **_flags(own),
            **more,
        }
        self.conversations[own] = Conversation(raw, list(members))
        return self.conversations[own]

    def create_ts(self, at: float | None = None) -> str:
        """Return a unique `ts` of now or of that time."""
        seconds = time.time() + self.clock_offset if at is None else at
        return f"{int(seconds)}.{next(self._stamps):06}"

    def post(
        self, channel: str, text: str, *, to: str = "", at: float | None = None, **more: Any
    ) -> str:
        """Add a message, or a reply to one, and return its `ts`."""
        ts = str(more.pop("ts", "")) or self.create_ts(at)
        message = {"type": "message", "user": "U1", "text": text, "ts": ts, **more}
        conversation = self.conversations[channel]
        if to:
            conversation.replies.setdefault(to, []).append({**message, "thread_ts": to})
        else:
            assert isinstance(conversation.messages, list)
            conversation.messages.append(message)
            conversation.messages.sort(key=_sort_key)
        return ts

    def edit(self, channel: str, ts: str, text: str) -> None:
        for message in self._all(channel):
            if message["ts"] == ts:
                message |= {"text": text, "edited": {"user": "U1", "ts": self.create_ts()}}

    def delete(self, channel: str, ts: str) -> None:
        """Delete a message; one with replies becomes a tombstone."""
        conversation = self.conversations[channel]
        if conversation.replies.get(ts):
            (tombstone,) = [one for one in conversation.messages if one["ts"] == ts]
            tombstone.clear()
            tombstone |= {"type": "message", "subtype": "tombstone", "ts": ts, "user": "USLACKBOT"}
            tombstone["text"] = "This message was deleted."
            return
        conversation.messages = [one for one in conversation.messages if one["ts"] != ts]
        conversation.replies = {
            root: [one for one in replies if one["ts"] != ts]
            for root, replies in conversation.replies.items()
        }

    def __call__(self, request: ReceivedRequest) -> Reply:
        method = request.path.removeprefix("/api/")
        self.requests_before_fault -= 1
        if self.requests_before_fault < 0 and self.fault is not None:
            return self.fault(request)
        if self.budget is not None:
            self.budget[method] -= 1
            if self.budget[method] < 0:
                return rate_limited(self.retry_after)
        if request.path in self.files:
            return self._file(request)
        params = {name: values[-1] for name, values in request.query.items()}
        self.calls.append((method, params))
        try:
            result = self._call(method, params, request)
        except SlackApiError as error:
            result = error.body
        return reply_json(result, headers={"X-OAuth-Scopes": self.scopes.replace(" ", ",")})

    def _call(self, method: str, params: Mapping[str, str], request: ReceivedRequest) -> Json:
        if request.headers.get("authorization") != f"Bearer {self.token}":
            raise SlackApiError("invalid_auth")
        known: dict[str, Callable[[Mapping[str, str]], Json]] = {
            "auth.test": self._auth_test,
            "users.list": self._users_list,
            "users.info": self._users_info,
            "conversations.list": self._conversations_list,
            "conversations.members": self._members,
            "conversations.history": self._history,
            "conversations.replies": self._replies,
        }
        if method not in known:
            raise SlackApiError("unknown_method")
        return {"ok": True, **known[method](params)}

    def _auth_test(self, params: Mapping[str, str]) -> Json:
        del params
        own = {"bot_id": "B0"} if self.is_app else {}
        return {"url": "https://acme.slack.com/", "team": "Acme", "user_id": "U0", **own}

    def _users_list(self, params: Mapping[str, str]) -> Json:
        self._require_scope("users:read")
        users, more = _slice_page(self.users, params, self.max_page_size)
        return {"members": [self._hide_email(one) for one in users], **more}

    def _users_info(self, params: Mapping[str, str]) -> Json:
        self._require_scope("users:read")
        if params["user"] != "USTRANGER":
            raise SlackApiError("user_not_found")
        return {"user": person("USTRANGER", "Eva Fern", is_stranger=True)}

    def _hide_email(self, user: Json) -> Json:
        if "users:read.email" in self.scopes.split():
            return user
        hidden = {name: value for name, value in user["profile"].items() if name != "email"}
        return {**user, "profile": hidden}

    def _conversations_list(self, params: Mapping[str, str]) -> Json:
        kinds = {"public_channel": "C", "private_channel": "G", "mpim": "M", "im": "D"}
        wanted = [kinds[one] for one in params.get("types", "public_channel").split(",")]
        for letter in wanted:
            self._require_scope(f"{_NEEDED[letter]}:read")
        found = [one.raw for own, one in self.conversations.items() if own[0] in wanted]
        listed, more = _slice_page(found, params, self.max_page_size)
        return {"channels": listed, **more}

    def _members(self, params: Mapping[str, str]) -> Json:
        members, more = _slice_page(
            self._find_channel(params, "read").members, params, self.max_page_size
        )
        return {"members": members, **more}

    def _history(self, params: Mapping[str, str]) -> Json:
        conversation = self._find_channel(params, "history")
        number = next(self._histories)
        self.before_history(number)
        messages = conversation.messages
        low, high = _find_range(messages, params)
        if "cursor" in params:
            high = min(high, bisect_left(messages, _parse_cursor(params["cursor"]), key=_sort_key))
        size = min(int(params.get("limit", 100)), self.max_page_size)
        if self.has_gaps:
            size = 0 if number % 2 else size // 2
        first = max(low, high - size)
        page = [messages[i] for i in range(first, high)][::-1]
        again = messages[high : high + self.overlap][::-1] if "latest" in params else []
        result = [conversation.with_replies(one) for one in [*again, *page]]
        has_more = first > low
        following = messages[first]["ts"] if has_more and first < len(messages) else "9" * 10
        more = _cursor_metadata(f"{following}#{number}" if has_more else "")
        return {"messages": result, "has_more": has_more, **more}

    def _replies(self, params: Mapping[str, str]) -> Json:
        conversation = self._find_channel(params, "history")
        ts = params["ts"]
        if ts in self.failing_threads:
            raise SlackApiError("fatal_error")
        root = next((one for one in conversation.messages if one["ts"] == ts), None)
        if root is None:
            raise SlackApiError("thread_not_found")
        replies = conversation.replies.get(ts, [])
        low, high = _find_range(replies, params)
        if "cursor" in params:
            low = max(low, bisect_left(replies, _parse_cursor(params["cursor"]), key=_sort_key))
        last = min(high, low + max(1, min(int(params.get("limit", 1000)), self.max_page_size) - 1))
        result = [conversation.with_replies(root), *replies[low:last]]
        following = replies[last]["ts"] if last < high else ""
        return {"messages": result, "has_more": bool(following), **_cursor_metadata(following)}

    def _find_channel(self, params: Mapping[str, str], right: str) -> Conversation:
        own = params["channel"]
        conversation = self.conversations.get(own)
        if conversation is None or (own[0] == "G" and not conversation.raw["is_member"]):
            raise SlackApiError("channel_not_found")
        self._require_scope(f"{_NEEDED[own[0]]}:{right}")
        if right == "history" and self.is_app and not conversation.raw["is_member"]:
            raise SlackApiError("not_in_channel")
        return conversation

    def _require_scope(self, scope: str) -> None:
        if scope not in self.scopes.split():
            raise SlackApiError("missing_scope", needed=scope, provided=self.scopes)

    def _file(self, request: ReceivedRequest) -> Reply:
        """Return a file, or a redirect to a login page without the permission."""
        allowed = request.headers.get("authorization") == f"Bearer {self.token}"
        if not (allowed and "files:read" in self.scopes.split()):
            return Reply(status=302, headers={"Location": "https://acme.slack.com/?redir=files"})
        return Reply(body=self.files[request.path])

    def _all(self, channel: str) -> Iterable[Json]:
        conversation = self.conversations[channel]
        yield from conversation.messages
        for replies in conversation.replies.values():
            yield from replies


def rate_limited(retry_after: str) -> Reply:
    result = {"ok": False, "error": "ratelimited"}
    return reply_json(result, status=429, headers={"Retry-After": retry_after})


def _flags(own: str) -> Json:
    match own[0]:
        case "D":
            return {"is_im": True}
        case "M":
            return {"is_mpim": True, "is_private": True, "is_group": False}
        case letter:
            return {"is_channel": letter == "C", "is_private": letter == "G"}


def _sort_key(message: Mapping[str, Any]) -> tuple[int, int]:
    return _parse_ts(message["ts"])


def _parse_ts(ts: str) -> tuple[int, int]:
    seconds, _, micros = ts.partition(".")
    return int(seconds), int(micros.ljust(6, "0"))


def _find_range(messages: Sequence[Json], params: Mapping[str, str]) -> tuple[int, int]:
    """Return the index range of the messages between `oldest` and `latest`."""
    inclusive = params.get("inclusive") in ("1", "true")
    oldest, latest = params.get("oldest", "0"), params.get("latest", "99999999999")
    lower, upper = (bisect_left, bisect_right) if inclusive else (bisect_right, bisect_left)
    return lower(messages, _parse_ts(oldest), key=_sort_key), upper(
        messages, _parse_ts(latest), key=_sort_key
    )


def _slice_page(
    items: Sequence[Any], params: Mapping[str, str], max_page_size: int
) -> tuple[list[Any], Json]:
    first = int(_decode_cursor(params["cursor"])) if params.get("cursor") else 0
    size = min(int(params.get("limit", 0)) or max_page_size, max_page_size)
    following = str(first + size) if first + size < len(items) else ""
    return list(items[first : first + size]), _cursor_metadata(following)


def _cursor_metadata(following: str) -> Json:
    encoded = base64.b64encode(f"next:{following}".encode()).decode() if following else ""
    return {"response_metadata": {"next_cursor": encoded}}


def _decode_cursor(cursor: str) -> str:
    try:
        return base64.b64decode(cursor).decode().removeprefix("next:")
    except ValueError as error:
        raise SlackApiError("invalid_cursor") from error


def _parse_cursor(cursor: str) -> tuple[int, int]:
    """Parse a cursor: the next page of history is older than it, that of a thread begins with it."""
    return _parse_ts(_decode_cursor(cursor).partition("#")[0])


def build_export(service: SlackService) -> dict[str, bytes]:
    """Return the files of an export of the workspace, by their names in the zip."""
    lists = {"C": "channels.json", "G": "groups.json", "M": "mpims.json", "D": "dms.json"}
    result: dict[str, list[Json]] = {
        "users.json": service.users,
        **{name: [] for name in lists.values()},
    }
    for own, conversation in service.conversations.items():
        result[lists[own[0]]].append({**conversation.raw, "members": conversation.members})
        folder = own if own[0] == "D" else conversation.raw["name"]
        for message in service._all(own):
            day = time.strftime("%Y-%m-%d", time.gmtime(_sort_key(message)[0]))
            result.setdefault(f"{folder}/{day}.json", []).append(conversation.with_replies(message))
    return {name: json.dumps(value).encode() for name, value in result.items()}
