"""Any OpenAI-compatible endpoint as a stream of events. This module alone speaks to it."""

import random
import socket
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from backend.chat.llm.messages import (
    CallMessage,
    Forced,
    ModelEvent,
    ModelMessage,
    TextDelta,
    ToolCall,
    ToolChoice,
    ToolResult,
    ToolSpec,
)
from backend.chat.llm.stream_parser import Assembly
from backend.search.llm_protocol import ChatMessage, Complete, CompletionError
from indexing.runtime.cancellable_socket import CancellableSocket
from indexing.runtime.deadline import Deadline

if TYPE_CHECKING:
    import httpx2
    import openai
    from openai import Stream
    from openai.types.chat import ChatCompletionChunk

TRIES = 3
CONNECT_SECONDS = 5.0
LONGEST_PAUSE = timedelta(seconds=60)
QUOTED_CHARACTERS = 300
"""Of a server's own words in our messages."""
USAGE = "stream_options"
URL, MODEL, KEY, WINDOW = (f"QUARRY_LLM_{name}" for name in ("URL", "MODEL", "KEY", "WINDOW"))
"""What a person sets, as messages name it."""

Json: TypeAlias = dict[str, Any]


class ModelError(Exception):
    """The language model gave no answer."""


class ModelUnavailable(ModelError):
    """It does not answer now; the same request may succeed later."""

    def __init__(self, message: str, after: timedelta = timedelta(0)) -> None:
        super().__init__(message)
        self.after = after


class ModelLate(ModelUnavailable):
    """The time for this was up."""


class ModelRefused(ModelError):
    """A person must change a setting first; the message says which."""


class ToolsRefused(ModelRefused):
    """This model or its server cannot call tools."""


class ModelBroken(ModelError):
    """What came back cannot be understood, or broke off in the middle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    base_url: str
    """Usually ends in `/v1`."""
    model: str
    api_key: str | None = field(default=None, repr=False)
    context_window: int = 32_000
    """Tokens, of prompt and answer together."""
    answer_tokens: int = 2_048
    """Of the window, kept free for the answer; never more than a quarter of it."""
    temperature: float | None = None
    """None leaves it to the server; some models accept no other."""
    first_pause: float = 0.5
    """Seconds before the first repetition of a failed request; doubled for each further one."""

    @property
    def prompt_tokens(self) -> int:
        return self.context_window - min(self.answer_tokens, self.context_window // 4)


class LanguageModel:
    """One model behind one endpoint. Safe to use from several threads."""

    def __init__(self, settings: ModelSettings) -> None:
        self.settings = settings
        self._client = _connect(settings)

    def close(self) -> None:
        self._client.close()

    def stream(
        self,
        messages: Sequence[ModelMessage],
        deadline: Deadline,
        tools: Sequence[ToolSpec] = (),
        tool_choice: ToolChoice = "auto",
    ) -> Generator[ModelEvent, None, None]:
        """What the model says, as it says it. Closing the generator closes the connection.

        A request that fails before its first event is repeated, as long as the deadline allows.

        Raises:
            ModelUnavailable: no answer after all tries; `ModelLate`: not by the deadline.
            ModelRefused: a wrong key, model or setting; `ToolsRefused`: it cannot call tools.
            ModelBroken: garbage, or an answer cut off in the middle.
        """
        request = self._request(messages, tools, tool_choice)
        for attempt in range(1, TRIES + 1):
            begun = False
            try:
                for event in self._attempt(request, deadline):
                    begun = True
                    yield event
            except ModelUnavailable as failure:
                if begun:
                    raise _broken_off(failure) from failure
                pause = self._pause(attempt, failure)
                if attempt == TRIES or pause >= deadline.remaining():
                    raise
                deadline.sleep(pause)
            except ModelRefused as refusal:
                # An older server that does not know how to tell the usage.
                knows = begun or attempt == TRIES or USAGE not in str(refusal)
                if knows or not request.pop(USAGE, None):
                    raise
            else:
                return

    def _request(
        self, messages: Sequence[ModelMessage], tools: Sequence[ToolSpec], choice: ToolChoice
    ) -> Json:
        request: Json = {
            "model": self.settings.model,
            "messages": [_message(message) for message in messages],
            "stream": True,
            USAGE: {"include_usage": True},
        }
        if self.settings.temperature is not None:
            request["temperature"] = self.settings.temperature
        if tools:
            request["tools"] = [_tool(tool) for tool in tools]
            request["tool_choice"] = _choice(choice)
        return request

    def _attempt(self, request: Json, deadline: Deadline) -> Iterator[ModelEvent]:
        assembly = Assembly()
        with self._wrapped(request, deadline):
            with self._opened(request, deadline) as stream:
                for chunk in stream:
                    yield from assembly.feed(chunk)
            yield from assembly.end()

    @contextmanager
    def _opened(self, request: Json, deadline: Deadline) -> "Iterator[Stream[ChatCompletionChunk]]":
        left = deadline.remaining()
        if not left:
            raise ModelLate(_LATE)
        cancellable = CancellableSocket()
        # The library's own time-out runs anew with every piece, so that a stalled stream could take
        # twice its time, and a dribbling one for ever.
        with (
            deadline.on_expiry(cancellable.cancel),
            self._answered(request, left, cancellable) as stream,
        ):
            _expect_stream(stream, self.settings.base_url)
            yield stream

    def _answered(
        self, request: Json, left: float, cancellable: CancellableSocket
    ) -> "Stream[ChatCompletionChunk]":
        """Wait until the server begins to answer; `line` is the connection on which it does."""
        create: Callable[..., Stream[ChatCompletionChunk]] = self._client.chat.completions.create
        asking = _asking.set(cancellable)
        try:
            return create(**request, timeout=_timeout(left))
        finally:
            _asking.reset(asking)

    @contextmanager
    def _wrapped(self, request: Json, deadline: Deadline) -> Iterator[None]:
        """The library's errors as ours, and those of its HTTP client that it lets through."""
        import httpx2
        import openai

        try:
            yield
        except openai.APIStatusError as error:
            raise self._refusal(error, request) from error
        except (openai.APIConnectionError, httpx2.RequestError) as error:
            if not deadline.remaining():
                raise ModelLate(_LATE) from error
            raise ModelUnavailable(self._unreachable(error)) from error
        except openai.APIError as error:
            raise ModelUnavailable(f"The language model failed: {self._quote(error)}") from error
        except UnicodeEncodeError as error:
            raise ModelRefused(f"{KEY} holds a character that no key has. Set it again.") from error
        except (ValueError, RecursionError) as error:
            raise ModelBroken(self._garbled()) from error

    def _refusal(self, error: "openai.APIStatusError", request: Json) -> ModelError:
        said = self._quote(error)
        match error.status_code:
            case 401 | 403:
                return ModelRefused(
                    f"The language model refused the key. Set {KEY} to a valid one. {said}"
                )
            case 429 if error.code == "insufficient_quota":
                return ModelRefused(f"The account of the language model is used up. {said}")
            case 408 | 409 | 425 | 429:
                return ModelUnavailable(f"The language model is busy. {said}", _retry_after(error))
            case status if status >= 500 and not _is_about_tools(error, request):
                return ModelUnavailable(f"The language model failed. {said}", _retry_after(error))
        if _is_about_tools(error, request):
            return ToolsRefused(f"The language model cannot call tools. {said}")
        if error.status_code == 404:
            return ModelRefused(
                f"There is no model {self.settings.model!r} at {self.settings.base_url}. Set {MODEL} to"
                f" a model that is there, and {URL} to an address that ends in /v1. {said}"
            )
        return ModelRefused(
            f"The language model refused the request. Check {MODEL} and {WINDOW}. {said}"
        )

    def _unreachable(self, error: Exception) -> str:
        cause = error.__cause__ or error
        return (
            f"No answer from the language model at {self.settings.base_url} ({cause}). Check that"
            f" it runs and that {URL} is right."
        )

    def _garbled(self) -> str:
        return (
            f"The answer of {self.settings.base_url} broke off or is no chat completion. Try"
            f" again; if it stays so, check that {URL} is that of an OpenAI-compatible server."
        )

    def _quote(self, error: "openai.APIError") -> str:
        said = error.message
        if self.settings.api_key:
            said = said.replace(self.settings.api_key, "…")
        return f"It said: {said[:QUOTED_CHARACTERS]}"

    def _pause(self, attempt: int, failure: ModelUnavailable) -> float:
        """Seconds: what the server asked for, else doubled each time, spread by a quarter."""
        back_off: float = self.settings.first_pause * 2 ** (attempt - 1)
        return max(failure.after.total_seconds(), back_off * random.uniform(0.75, 1.25))


def completion(model: LanguageModel) -> Complete:
    """The model as search uses it: a text for a few messages. Thoughts are left out."""

    def complete(messages: Sequence[ChatMessage], deadline: Deadline) -> str:
        try:
            events = list(model.stream(messages, deadline))
        except ModelError as error:
            raise CompletionError(str(error)) from error
        text = "".join(event.text for event in events if isinstance(event, TextDelta)).strip()
        if not text:
            raise CompletionError("the language model gave an empty answer")
        return text

    return complete


_LATE = "The language model did not answer in the time allowed. Ask again, or allow more time."


def _connect(settings: ModelSettings) -> "openai.OpenAI":
    import httpx2
    import openai

    client = openai.OpenAI(
        base_url=settings.base_url,
        # A local server wants no key, but the library wants one.
        api_key=settings.api_key or "none",
        max_retries=0,
        http_client=openai.DefaultHttpxClient(
            # A connection is seen when it is made, and one that is used again is not.
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=0),
            event_hooks={"request": [_watch]},
        ),
    )
    # The library takes these two from the environment; they are nobody else's business.
    client.organization = client.project = None
    return client


_asking: ContextVar[CancellableSocket] = ContextVar("_asking")


def _watch(request: "httpx2.Request") -> None:
    cancellable = _asking.get()

    def note(event: str, told: Json) -> None:
        """Called by the HTTP client with each step of its work."""
        if event in {"connection.connect_tcp.complete", "connection.start_tls.complete"}:
            connected = told["return_value"].get_extra_info("socket")
            if isinstance(connected, socket.socket):
                cancellable.attach(connected)

    request.extensions["trace"] = note


def _timeout(left: float) -> "openai.Timeout":
    import openai

    return openai.Timeout(left, connect=min(CONNECT_SECONDS, left))


def _expect_stream(stream: "Stream[ChatCompletionChunk]", base_url: str) -> None:
    kind = stream.response.headers.get("content-type", "")
    if kind.startswith("text/html"):
        raise ModelRefused(
            f"{base_url} answers with a web page. Set {URL} to an OpenAI-compatible server; it"
            " usually ends in /v1."
        )


def _broken_off(failure: ModelUnavailable) -> ModelError:
    if isinstance(failure, ModelLate):
        return failure
    return ModelBroken(f"The answer broke off in the middle. {failure}")


def _retry_after(error: "openai.APIStatusError") -> timedelta:
    """What the server asks for, in seconds or as a date; nothing where it makes no sense."""
    value = error.response.headers.get("retry-after", "")
    try:
        seconds = float(value)
    except ValueError:
        seconds = _seconds_until(value)
    if not seconds > 0:
        return timedelta(0)
    return timedelta(seconds=min(seconds, LONGEST_PAUSE.total_seconds()))


def _seconds_until(date: str) -> float:
    try:
        moment = parsedate_to_datetime(date)
    except ValueError:
        return 0.0
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - datetime.now(UTC)).total_seconds()


def _is_about_tools(error: "openai.APIStatusError", request: Json) -> bool:
    """Servers say it with 400, 404, 422, 500 or 501; only their words tell."""
    told = f"{error.message} {error.param or ''}".lower()
    return "tools" in request and ("tool" in told or "function call" in told)


def _message(message: ModelMessage) -> Json:
    match message:
        case ChatMessage(role, text):
            return {"role": role, "content": _sendable(text)}
        case CallMessage(text, calls):
            return {
                "role": "assistant",
                "content": _sendable(text) or None,
                "tool_calls": [_call(call) for call in calls],
            }
        case ToolResult(call_id, text):
            return {"role": "tool", "tool_call_id": call_id, "content": _sendable(text)}


def _sendable(text: str) -> str:
    """Half a surrogate pair, as a broken file name holds it, cannot be sent."""
    return text.encode("utf-8", "replace").decode()


def _call(call: ToolCall) -> Json:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _tool(tool: ToolSpec) -> Json:
    function: Mapping[str, object] = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }
    return {"type": "function", "function": function}


def _choice(choice: ToolChoice) -> str | Json:
    match choice:
        case Forced(name):
            return {"type": "function", "function": {"name": name}}
        case _:
            return choice
