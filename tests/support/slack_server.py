"""A workspace of Slack on this machine: its Web API over HTTP, and Socket Mode over a websocket.

    with SlackServer() as slack:
        ann = slack.add_user("ann@example.com")
        general = slack.add_channel(ann)
        settings = {"slack_api_url": slack.api_url, "slack_bot_token": BOT_TOKEN, "slack_app_token": APP_TOKEN}
        ...
        slack.mention(general, ann, "How long is leave?")

It is stricter than Slack: it refuses what Slack would show wrongly, and anything that notifies people. Envelopes are sent again,
as Slack does, where they are not acknowledged in time.
"""

import base64
import itertools
import json
import socket
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self, TypeAlias
from urllib.parse import parse_qsl, urlsplit

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import Server, ServerConnection, serve

from tests.support.slack_blocks import find_fault, list_texts

BOT_TOKEN, APP_TOKEN = "xoxb-of-the-bot", "xapp-of-the-app"
TEAM, BOT = "T001", "U0BOT"
SCOPES = (
    "app_mentions:read,channels:read,chat:write,groups:read,im:history,im:read,im:write,"
    "mpim:read,users:read,users:read.email"
)
PAGE = 3
"""Members in a page, whatever was asked for."""
TRIES = 10
"""Of an envelope that is not acknowledged: more than those of Slack, since the machine of a test may be slow."""
SOON = 30.0

Json: TypeAlias = dict[str, Any]


class Refusal(Exception):
    """Slack answers with an error."""


@dataclass
class Message:
    channel: str
    ts: str
    user: str
    text: str
    blocks: list[Json]
    thread_ts: str | None = None
    only_for: str | None = None
    """The one person who is shown an ephemeral message."""

    @property
    def shown(self) -> str:
        """All that it shows, buttons included."""
        return "\n".join(
            [self.text, *(part for block in self.blocks for part in list_texts(block))]
        )

    @property
    def buttons(self) -> dict[str, Json]:
        elements = [one for block in self.blocks for one in block.get("elements", ())]
        return {one["action_id"]: one for one in elements if "action_id" in one}


@dataclass
class Channel:
    id: str
    members: list[str]
    properties: Json = field(default_factory=dict)


class SlackServer:
    def __init__(self, ack_seconds: float = 3.0) -> None:
        self.ack_seconds = ack_seconds
        self.users: dict[str, Json] = {}
        self.channels: dict[str, Channel] = {}
        self.messages: list[Message] = []
        self.versions: list[Message] = []
        """Every state in which a message was ever shown."""
        self.calls: list[tuple[str, Json]] = []
        self.limits: dict[str, list[int]] = defaultdict(list)
        """Seconds of `Retry-After` with which the next calls of a method are refused."""
        self.deliveries = Counter[str]()
        """How often each envelope was sent."""
        self.acknowledged: set[str] = set()
        self.before_call: Callable[[str, Json], object] = lambda *_: None
        """Called before each call is answered."""
        self.connections = 0
        self._numbers = itertools.count(1)
        self._changed = threading.Condition()
        self._sockets: list[ServerConnection] = []
        self._tickets: set[str] = set()
        self.add_user("bot@example.com", id=BOT, is_bot=True)

    # --- the workspace

    def add_user(self, email: str | None, **properties: Any) -> str:
        """Add a full member with a confirmed address; `properties` are those of Slack's user object."""
        user_id = str(properties.pop("id", f"U{next(self._numbers):03}"))
        self.users[user_id] = {
            "id": user_id,
            "team_id": TEAM,
            "deleted": False,
            "is_bot": False,
            "is_restricted": False,
            "is_email_confirmed": True,
            "profile": {"email": email} if email else {},
            **properties,
        }
        return user_id

    def add_channel(self, *members: str, **properties: Any) -> str:
        """Add a private channel with these members and the bot."""
        channel_id = f"C{next(self._numbers):03}"
        known = {"id": channel_id, "is_private": True, **properties}
        self.channels[channel_id] = Channel(channel_id, [BOT, *members], known)
        return channel_id

    def open_direct(self, user_id: str) -> str:
        channel_id = f"D{user_id}"
        self.channels.setdefault(
            channel_id, Channel(channel_id, [BOT, user_id], {"id": channel_id, "is_im": True})
        )
        return channel_id

    def mention(
        self, channel: str, user: str, text: str, thread_ts: str | None = None, **event: Any
    ) -> str:
        """Let somebody mention the bot, and return the `ts` of the message."""
        said = self.add_message(channel, user, f"<@{BOT}> {text}", thread_ts)
        self.report("app_mention", said, **event)
        return said.ts

    def write_to_bot(self, user: str, text: str, thread_ts: str | None = None, **event: Any) -> str:
        said = self.add_message(self.open_direct(user), user, text, thread_ts)
        self.report("message", said, channel_type="im", **event)
        return said.ts

    def report(self, kind: str, said: Message, **event: Any) -> None:
        """Send the event of a message."""
        known = {"type": kind, "channel": said.channel, "user": said.user, "text": said.text}
        known |= {"ts": said.ts, **({"thread_ts": said.thread_ts} if said.thread_ts else {})}
        number = next(self._numbers)
        payload = {"type": "event_callback", "team_id": TEAM, "event_id": f"Ev{number}"}
        self.send("events_api", {**payload, "event": {**known, **event}})

    def press(self, message: Message, user: str, action: str, option: int | None = None) -> None:
        """Let somebody press a button, or choose an option."""
        element = message.buttons[action]
        pressed: Json = {"action_id": action, "type": element["type"]}
        if option is None:
            pressed["value"] = element["value"]
        else:
            pressed["selected_option"] = element["options"][option]
        container = {"channel_id": message.channel, "message_ts": message.ts}
        if message.thread_ts:
            container["thread_ts"] = message.thread_ts
        payload = {"type": "block_actions", "team": {"id": TEAM}, "user": {"id": user}}
        self.send("interactive", {**payload, "container": container, "actions": [pressed]})

    def add_message(
        self, channel: str, user: str, text: str, thread_ts: str | None = None
    ) -> Message:
        """Let somebody say something, without telling the bot."""
        with self._changed:
            ts = f"1700000000.{next(self._numbers):06}"
            said = Message(channel, ts, user, text, [], thread_ts)
            self._keep(said)
            return said

    def _keep(self, said: Message) -> None:
        self.messages.append(said)
        self.versions.append(said)
        self._changed.notify_all()

    # --- what a test looks at

    def wait_for(self, is_so: Callable[[], Any], seconds: float = SOON) -> Any:
        """Return what a condition yields, once that is true."""
        end = time.monotonic() + seconds
        with self._changed:
            while not (found := is_so()):
                left = end - time.monotonic()
                if left <= 0:
                    said = [(one.channel, one.user, one.shown) for one in self.messages]
                    raise AssertionError(f"it did not come to that: {said}")
                self._changed.wait(min(left, 0.1))
            return found

    def of_bot(self, channel: str, thread_ts: str | None = None) -> list[Message]:
        """Return what the bot says in a channel, or in one of its threads; not what one person alone is shown."""
        return [
            one
            for one in self.messages
            if one.channel == channel
            and one.user == BOT
            and one.only_for is None
            and (thread_ts is None or one.thread_ts == thread_ts)
        ]

    def told(self, user: str) -> list[Message]:
        """Return the ephemeral messages that somebody is shown."""
        return [one for one in self.messages if one.only_for == user]

    def wait_for_answer(self, channel: str, thread_ts: str) -> Message:
        """Return the message of an answer with its buttons."""

        def find() -> Message | None:
            return next((one for one in self.of_bot(channel, thread_ts) if one.buttons), None)

        found: Message = self.wait_for(find)
        return found

    def ever_shown(self, channel: str) -> str:
        """Return all that the bot ever showed to everybody in a channel."""
        said = [one for one in self.versions if one.channel == channel and one.user == BOT]
        return "\n".join(one.shown for one in said if one.only_for is None)

    # --- Socket Mode

    def send(self, kind: str, payload: Json) -> None:
        """Send an envelope, and again where it is not acknowledged in time."""
        envelope_id = f"E{next(self._numbers)}"
        threading.Thread(
            target=self._deliver, args=(envelope_id, kind, payload), daemon=True
        ).start()

    def _deliver(self, envelope_id: str, kind: str, payload: Json) -> None:
        envelope = {"envelope_id": envelope_id, "type": kind, "payload": payload}
        for number in range(TRIES):
            retry = {"retry_attempt": number, "retry_reason": "timeout"} if number else {}
            self._send_once(json.dumps({**envelope, **retry}))
            self.deliveries[envelope_id] += 1
            if self._wait_for_ack(envelope_id):
                return

    def _send_once(self, text: str) -> None:
        """Send to the latest connection, once there is one."""
        end = time.monotonic() + SOON
        while time.monotonic() < end:
            with self._changed:
                self._changed.wait_for(lambda: self._sockets, SOON)
                connection = self._sockets[-1] if self._sockets else None
            try:
                if connection is not None:
                    connection.send(text)
                    return
            except ConnectionClosed:
                time.sleep(0.05)

    def _wait_for_ack(self, envelope_id: str) -> bool:
        with self._changed:
            return self._changed.wait_for(
                lambda: envelope_id in self.acknowledged, self.ack_seconds
            )

    def disconnect(self) -> None:
        """Ask the client for another connection, as Slack does about every hour, then close this one."""
        with self._changed:
            former = self._sockets[-1]
        former.send(json.dumps({"type": "disconnect", "reason": "warning", "debug_info": {}}))
        self.wait_for(lambda: self._sockets and self._sockets[-1] is not former)
        former.close()

    def cut(self) -> None:
        """Lose all connections without a word."""
        with self._changed:
            sockets = list(self._sockets)
        for each in sockets:
            with suppress(OSError):
                each.socket.shutdown(socket.SHUT_RDWR)

    def _serve_socket(self, connection: ServerConnection) -> None:
        assert connection.request is not None
        ticket = dict(parse_qsl(urlsplit(connection.request.path).query)).get("ticket")
        if ticket not in self._tickets:
            connection.close(1008, "invalid ticket")
            return
        self._tickets.discard(ticket)
        connection.send(json.dumps({"type": "hello", "num_connections": 1}))
        with self._changed:
            self._sockets.append(connection)
            self.connections += 1
            self._changed.notify_all()
        try:
            for text in connection:
                self._acknowledge(json.loads(text))
        except (ConnectionClosed, OSError):
            pass
        finally:
            with self._changed:
                self._sockets.remove(connection)
                self._changed.notify_all()

    def _acknowledge(self, response: Json) -> None:
        with self._changed:
            self.acknowledged.add(response["envelope_id"])
            self._changed.notify_all()

    # --- the Web API

    def call(self, method: str, token: str, arguments: Json) -> Json:
        """Answer a call. Raises Refusal."""
        self.before_call(method, arguments)
        wanted = APP_TOKEN if method == "apps.connections.open" else BOT_TOKEN
        if token != wanted:
            raise Refusal("invalid_auth")
        with self._changed:
            self.calls.append((method, arguments))
            return {"ok": True, **self._answer(method, arguments)}

    def _answer(self, method: str, arguments: Json) -> Json:
        match method:
            case "apps.connections.open":
                ticket = f"ticket{next(self._numbers)}"
                self._tickets.add(ticket)
                return {"url": f"ws://127.0.0.1:{self._socket_port}/link?ticket={ticket}"}
            case "auth.test":
                return {"team_id": TEAM, "team": "Example", "user_id": BOT, "bot_id": "B1"}
            case "users.info":
                return {"user": self._get_user(arguments["user"])}
            case "conversations.info":
                return {"channel": self._get_channel(arguments["channel"]).properties}
            case "conversations.members":
                return self._list_members(arguments)
            case "conversations.open":
                self._get_user(arguments["users"])
                return {"channel": {"id": self.open_direct(arguments["users"])}}
            case "chat.postMessage":
                return {"ts": self._post(arguments, None)}
            case "chat.postEphemeral":
                if arguments["user"] not in self._get_channel(arguments["channel"]).members:
                    raise Refusal("user_not_in_channel")
                return {"message_ts": self._post(arguments, arguments["user"])}
            case "chat.update":
                return self._update(arguments)
            case _:
                raise Refusal("unknown_method")

    def _get_user(self, user_id: str) -> Json:
        if user_id not in self.users:
            raise Refusal("user_not_found")
        return self.users[user_id]

    def _get_channel(self, channel_id: str) -> Channel:
        if channel_id not in self.channels:
            raise Refusal("channel_not_found")
        return self.channels[channel_id]

    def _list_members(self, arguments: Json) -> Json:
        members = self._get_channel(arguments["channel"]).members
        cursor = arguments.get("cursor") or ""
        start = int(base64.b64decode(cursor)) if cursor else 0
        more = start + PAGE < len(members)
        following = base64.b64encode(str(start + PAGE).encode()).decode() if more else ""
        page = members[start : start + PAGE]
        return {"members": page, "response_metadata": {"next_cursor": following}}

    def _post(self, arguments: Json, only_for: str | None) -> str:
        channel = self._get_channel(arguments["channel"])
        if BOT not in channel.members:
            raise Refusal("not_in_channel")
        thread_ts = arguments.get("thread_ts")
        if thread_ts and not any(
            one.ts == thread_ts and one.channel == channel.id for one in self.messages
        ):
            raise Refusal("thread_not_found")
        text, blocks = self._read_content(arguments)
        ts = f"1700000000.{next(self._numbers):06}"
        self._keep(Message(channel.id, ts, BOT, text, blocks, thread_ts, only_for))
        return ts

    def _read_content(self, arguments: Json) -> tuple[str, list[Json]]:
        blocks = arguments.get("blocks") or []
        blocks = json.loads(blocks) if isinstance(blocks, str) else blocks
        text = arguments.get("text") or ""
        if fault := find_fault(text, blocks):
            raise Refusal(fault)
        if arguments.get("link_names") not in (None, False, "0", "false"):
            raise Refusal("names would be mentioned")
        if arguments.get("parse") != "none" or arguments.get("unfurl_links"):
            raise Refusal("links would be made, or opened")
        return text, blocks

    def _update(self, arguments: Json) -> Json:
        channel = self._get_channel(arguments["channel"])
        text, blocks = self._read_content(arguments)
        for number, one in enumerate(self.messages):
            if one.channel == channel.id and one.ts == arguments["ts"]:
                if one.user != BOT or one.only_for is not None:
                    raise Refusal("cant_update_message")
                changed = Message(one.channel, one.ts, BOT, text, blocks, one.thread_ts)
                self.messages[number] = changed
                self.versions.append(changed)
                self._changed.notify_all()
                return {"ts": one.ts}
        raise Refusal("message_not_found")

    # --- serving

    @property
    def api_url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/api/"

    @property
    def settings(self) -> Mapping[str, str]:
        """What the bot is told to connect here."""
        return {
            "slack_api_url": self.api_url,
            "slack_bot_token": BOT_TOKEN,
            "slack_app_token": APP_TOKEN,
        }

    def __enter__(self) -> Self:
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _make_handler(self))
        self._socket_server: Server = serve(self._serve_socket, "127.0.0.1", 0, ping_interval=None)
        self._socket_port = self._socket_server.socket.getsockname()[1]
        self._threads = [
            threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True),
            threading.Thread(target=self._socket_server.serve_forever, daemon=True),
        ]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http.shutdown()
        self._http.server_close()
        with self._changed:
            sockets = list(self._sockets)
        for each in sockets:
            each.close()
        self._socket_server.shutdown()
        for thread in self._threads:
            thread.join(SOON)


def _make_handler(slack: SlackServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._respond(dict(parse_qsl(urlsplit(self.path).query)))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            is_json = "json" in (self.headers.get("Content-Type") or "")
            self._respond(json.loads(body) if is_json else dict(parse_qsl(body)))

        def _respond(self, arguments: Json) -> None:
            method = urlsplit(self.path).path.removeprefix("/api/")
            token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
            if waits := slack.limits.get(method):
                self._send(
                    429, {"ok": False, "error": "ratelimited"}, ("Retry-After", str(waits.pop(0)))
                )
                return
            try:
                answer = slack.call(method, token, arguments)
            except Refusal as refusal:
                answer = {"ok": False, "error": str(refusal)}
            self._send(200, answer, ("X-OAuth-Scopes", SCOPES))

        def _send(self, status: int, answer: Json, header: tuple[str, str]) -> None:
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header(*header)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 (its name in the standard library)
            del format, arguments

    return Handler
