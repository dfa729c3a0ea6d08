"""A language model that says what a test wrote: an OpenAI-compatible server, over real HTTP.

    with ScriptedModel([Call(ToolUse("internal_search", {"queries": ["leave"]})), Say("25 days [1].")]) as server:
        settings = ModelSettings(base_url=server.base_url, model="scripted", ...)

A script is a sequence of replies, taken one a request, or a function from the request to a reply.
Every request is kept in `server.requests`. It serves `/v1/chat/completions`, streamed as
server-sent events or whole, as the request asks, and `/v1/models`.
"""

import json
import re
import select
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from types import TracebackType
from typing import Any, Self, TypeAlias

Json: TypeAlias = dict[str, Any]

MODEL = "scripted"
_NAMING = "You name a conversation"
"""How the prompt begins by which titles are asked for."""
_PLANNING = "You decide what has to be looked up"
"""How the prompt of the intent step begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How the pieces of a streamed reply arrive."""

    delay: float = 0.0
    """Seconds before each piece."""
    stall_after: int | None = None
    """Pieces, after which nothing more comes, for as long as the server runs."""
    cut_after: int | None = None
    """Pieces, after which the connection is closed without an end."""
    garbage_after: int | None = None
    """Pieces, after which comes one that is not JSON."""
    error_after: int | None = None
    """Pieces, after which the server reports an error inside the stream."""


@dataclass(frozen=True, slots=True)
class Say:
    """A text, a few characters a piece; a sequence of texts gives the pieces themselves."""

    text: str | Sequence[str]
    finish: str | None = "stop"
    """Without one, the stream ends with `[DONE]` alone."""
    reasoning: str = ""
    manner: Manner = field(default_factory=Manner)

    @property
    def pieces(self) -> list[str]:
        if not isinstance(self.text, str):
            return list(self.text)
        return [self.text[i : i + 4] for i in range(0, len(self.text), 4)]


@dataclass(frozen=True, slots=True)
class ToolUse:
    name: str
    arguments: Mapping[str, object] | str
    """A text is sent as it is, valid JSON or not."""
    id: str | None = None

    @property
    def text(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@dataclass(frozen=True, slots=True)
class Call:
    """Tool calls; their arguments are streamed in fragments, those of several calls in turn."""

    uses: ToolUse | Sequence[ToolUse]
    text: str = ""
    """Said before the calls."""
    manner: Manner = field(default_factory=Manner)

    @property
    def all(self) -> list[ToolUse]:
        return [self.uses] if isinstance(self.uses, ToolUse) else list(self.uses)


@dataclass(frozen=True, slots=True)
class Refuse:
    """An HTTP error, as OpenAI shapes it."""

    status: int
    message: str = "refused"
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Raw:
    """Any bytes at all, with status 200."""

    body: bytes
    content_type: str = "text/event-stream"


@dataclass(frozen=True, slots=True)
class HangUp:
    """The connection is closed before anything is answered."""


@dataclass(frozen=True, slots=True)
class Silent:
    """The request is read and never answered."""


Reply: TypeAlias = Say | Call | Refuse | Raw | HangUp | Silent


@dataclass(frozen=True, slots=True)
class Request:
    path: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: Json

    @property
    def messages(self) -> list[Json]:
        return list(self.body.get("messages", []))

    @property
    def tool_names(self) -> list[str]:
        return [tool["function"]["name"] for tool in self.body.get("tools", [])]

    @property
    def tool_choice(self) -> object:
        return self.body.get("tool_choice")

    @property
    def text(self) -> str:
        """All that is said in the messages."""
        return "\n".join(str(message.get("content") or "") for message in self.messages)

    @property
    def answers(self) -> bool:
        """Whether it is asked for an answer, and not for a query, a selection or a verdict."""
        return self.text.startswith("You answer the questions of people")

    @property
    def questions(self) -> list[str]:
        """What the person has asked, the last one without the references that go with it."""
        said = [_read_text(one) for one in self.messages if one["role"] == "user"]
        return [_QUESTION.sub(r"\1", text) for text in said]

    @property
    def sources(self) -> list[Json]:
        """What it is given to answer from, as `number`, `title` and `content`: references of its message, as a list or an array, or results of tools."""
        said = [_read_text(one) for one in self.messages if one["role"] in _SHOWING]
        references = [one for text in said for one in (*_read_list(text), *_read_references(text))]
        results = [one for text in said for one in _read_results(text)]
        return [*references, *results]

    @property
    def last_text(self) -> str:
        return _read_text(self.messages[-1])

    @property
    def has_sources(self) -> bool:
        return any(one["role"] == "tool" for one in self.messages) or bool(self.sources)


_SHOWING = ("user", "tool")
_QUESTION = re.compile(
    r".*^My question is:\n(.*?)\n\nReference materials:\n.*", re.DOTALL | re.MULTILINE
)
_REFERENCES = re.compile(r"^```json\n(\[\n.*?\n\])\n```$", re.DOTALL | re.MULTILINE)
_LISTED = re.compile(
    r"^(?P<number>\d+)\. Title: (?P<title>.*)\n   Address: (?P<sourceUrl>.*)\n   Summary: (?P<content>.*)$",
    re.MULTILINE,
)
_RESULTS = re.compile(r'^\{"results": .*\}$', re.MULTILINE)


def _read_references(text: str) -> list[Json]:
    found = [one for fenced in _REFERENCES.findall(text) for one in json.loads(fenced)]
    return [{"number": one["id"], **one} for one in found]


def _read_text(message: Json) -> str:
    """The text of a message, without the pictures that may come with it."""
    content = message["content"] or ""
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part["type"] == "text")


def _read_list(text: str) -> list[Json]:
    found = (one.groupdict() for one in _LISTED.finditer(text))
    return [{**one, "number": int(one["number"]), "type": "url"} for one in found]


def _read_results(text: str) -> list[Json]:
    found = [one for line in _RESULTS.findall(text) for one in json.loads(line)["results"]]
    return [{"number": one["document"], **one} for one in found]


Script: TypeAlias = Sequence[Reply] | Callable[[Request], Reply]


class ScriptedModel:
    """A server on a free port of this machine, for as long as the `with` block lasts."""

    def __init__(self, script: Script = ()) -> None:
        self.requests: list[Request] = []
        self.title = ""
        """What it calls conversations; that it is asked for one is not kept. Empty: it gives none."""
        self.plan: str | Callable[[Request], Reply] = ""
        """What it answers as the intent step. Empty: the message is searched as it stands."""
        self.planned: list[Request] = []
        """The requests of the intent step, which are not among the others."""
        self.hung_up = threading.Event()
        """A client closed its connection before the end of a stream."""
        self.stopping = threading.Event()
        self._script = script
        self._taken = 0
        self._lock = threading.Lock()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def play(self, script: Script) -> None:
        """From now on answer with `script`."""
        with self._lock:
            self._script, self._taken = script, 0

    def reply_to(self, request: Request) -> Reply:
        """Requests that come side by side are answered side by side, also by a function that waits."""
        if request.text.startswith(_NAMING):
            return Say(self.title)
        if request.text.startswith(_PLANNING):
            self.planned.append(request)
            return Say(self.plan) if isinstance(self.plan, str) else self.plan(request)
        with self._lock:
            self.requests.append(request)
            script = self._script
            if not callable(script):
                return self._next_of(script)
        return script(request)

    def _next_of(self, script: Sequence[Reply]) -> Reply:
        if self._taken >= len(script):
            return Refuse(418, "the script has no more replies")
        self._taken += 1
        return script[self._taken - 1]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, model: ScriptedModel) -> None:
        self.model = model
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that has gone is no error of the server; all others are shown."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base class's name)
        """Say nothing on standard error."""

    def do_GET(self) -> None:
        if self.path != "/v1/models":
            return self._send_error(Refuse(404, f"no such page: {self.path}"))
        listed = {"id": MODEL, "object": "model", "created": 0, "owned_by": "tests"}
        return self._send_json(200, {"object": "list", "data": [listed]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        if self.path != "/v1/chat/completions":
            return self._send_error(Refuse(404, f"no such page: {self.path}"))
        reply = self.server.model.reply_to(Request(self.path, headers, body))
        try:
            self._answer(reply, body)
        except ConnectionError:
            self._note_hang_up()

    def _answer(self, reply: Reply, body: Json) -> None:
        match reply:
            case Refuse():
                self._send_error(reply)
            case Raw():
                self._send(200, reply.body, reply.content_type)
            case HangUp():
                self._close()
            case Silent():
                self._stall()
            case Say() | Call() if body.get("stream"):
                self._stream(reply)
            case Say() | Call():
                self._send_json(200, _whole(reply))

    def _stream(self, reply: Say | Call) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        manner = reply.manner
        for count, piece in enumerate(_chunks(reply)):
            if self._disturbed(manner, count):
                return
            self.server.model.stopping.wait(manner.delay)
            self._event(json.dumps(piece))
        if not self._disturbed(manner, None):
            self._event("[DONE]")
            self.wfile.write(b"0\r\n\r\n")

    def _disturbed(self, manner: Manner, count: int | None) -> bool:
        """Disturb the stream if this is the piece, or (at the end) was still to come."""

        def due(after: int | None) -> bool:
            return after is not None and (count is None or count == after)

        if due(manner.stall_after):
            self._stall()
        elif due(manner.cut_after):
            self._close()
        elif due(manner.garbage_after):
            self._event('{"choices": [{"delta"')
            self.wfile.write(b"0\r\n\r\n")
        elif due(manner.error_after):
            self._event(json.dumps({"error": {"message": "out of memory", "type": "server_error"}}))
            self.wfile.write(b"0\r\n\r\n")
        else:
            return False
        return True

    def _event(self, data: str) -> None:
        payload = f"data: {data}\n\n".encode()
        self.wfile.write(f"{len(payload):x}\r\n".encode() + payload + b"\r\n")
        self.wfile.flush()

    def _stall(self) -> None:
        """Say nothing until the client hangs up or the server stops."""
        while not self.server.model.stopping.is_set():
            to_sendable_call, _, _ = select.select([self.connection], [], [], 0.01)
            if to_sendable_call and not self.connection.recv(1, socket.MSG_PEEK):
                return self._note_hang_up()
        return self._close()

    def _note_hang_up(self) -> None:
        self.server.model.hung_up.set()
        self.close_connection = True

    def _close(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def _send_error(self, reply: Refuse) -> None:
        error = {"message": reply.message, "type": "invalid_request_error", "code": reply.code}
        self._send_json(reply.status, {"error": error}, reply.headers)

    def _send_json(
        self, status: int, value: Json, headers: Mapping[str, str] | None = None
    ) -> None:
        self._send(status, json.dumps(value).encode(), "application/json", headers)

    def _send(
        self, status: int, body: bytes, content_type: str, headers: Mapping[str, str] | None = None
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def _whole(reply: Say | Call) -> Json:
    message: Json = {"role": "assistant"}
    match reply:
        case Say():
            message["content"] = "".join(reply.pieces)
            finish = reply.finish
        case Call():
            message["content"] = reply.text or None
            message["tool_calls"] = [_use(use, number) for number, use in enumerate(reply.all)]
            finish = "tool_calls"
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return _envelope("chat.completion", [choice]) | {"usage": _usage(reply)}


def _chunks(reply: Say | Call) -> Iterator[Json]:
    """The reply as OpenAI streams it: deltas, then the reason for the end, then the usage."""
    match reply:
        case Say():
            if reply.reasoning:
                yield _chunk({"reasoning_content": reply.reasoning})
            for piece in reply.pieces:
                yield _chunk({"role": "assistant", "content": piece})
            finish = reply.finish
        case Call():
            if reply.text:
                yield _chunk({"role": "assistant", "content": reply.text})
            yield from (_chunk({"tool_calls": [fragment]}) for fragment in _fragments(reply.all))
            finish = "tool_calls"
    if finish is not None:
        yield _chunk({}, finish)
        yield _envelope("chat.completion.chunk", []) | {"usage": _usage(reply)}


def _fragments(uses: Sequence[ToolUse]) -> Iterator[Json]:
    for number, use in enumerate(uses):
        head = _use(use, number)
        yield head | {"index": number, "function": {"name": use.name, "arguments": ""}}
    longest = max((len(use.text) for use in uses), default=0)
    for start in range(0, longest, 5):
        for number, use in enumerate(uses):
            if part := use.text[start : start + 5]:
                yield {"index": number, "function": {"arguments": part}}


def _use(use: ToolUse, number: int) -> Json:
    function = {"name": use.name, "arguments": use.text}
    return {"id": use.id or f"call_{number}", "type": "function", "function": function}


def _chunk(delta: Json, finish: str | None = None) -> Json:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return _envelope("chat.completion.chunk", [choice])


def _envelope(kind: str, choices: list[Json]) -> Json:
    return {"id": "x", "object": kind, "created": 0, "model": MODEL, "choices": choices}


def _usage(reply: Say | Call) -> Json:
    count = len(reply.pieces) if isinstance(reply, Say) else len(reply.all)
    return {"prompt_tokens": 7, "completion_tokens": count, "total_tokens": 7 + count}
