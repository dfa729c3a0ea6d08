"""Stream answers of any OpenAI-compatible endpoint as events. No other module calls it."""

import logging
import random
import socket
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from backend.chat.llm.event_stream import DONE, read_event_data
from backend.chat.llm.messages import (
    CallMessage,
    ModelEvent,
    ModelMessage,
    TextDelta,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from backend.chat.llm.model_settings import ModelSettings, SettingNames
from backend.chat.llm.stream_parser import ReportedError, StreamParser
from backend.search.llm_protocol import ChatMessage, Complete, CompletionError
from connectors.errors import HandledError
from connectors.http_client.address_guard import find_forbidden
from indexing.runtime.cancellable_socket import CancellableSocket
from indexing.runtime.deadline import Deadline

if TYPE_CHECKING:
    import httpx2
    import openai
    from openai import Stream
    from openai.types.chat import ChatCompletionChunk

LOG = logging.getLogger("quarry.language_model")
# Without a configured log, as in a terminal, nothing is printed beside the answer.
LOG.addHandler(logging.NullHandler())
TRIES = 3
CONNECT_SECONDS = 5.0
LONGEST_PAUSE = timedelta(seconds=60)
QUOTED_CHARACTERS = 300
"""Of a server's message, quoted in ours."""
USAGE = "stream_options"
TEMPERATURE = "temperature"
_OPTIONS = (USAGE, TEMPERATURE)
"""What a request is repeated without where its server refuses it."""

Json: TypeAlias = dict[str, Any]


class ModelError(HandledError):
    """The language model gave no answer.

    The summary may be shown to anyone. The details, which the text of the error contains as well, name
    settings and quote the server, which may quote keys: they are for the log and the administrator.
    """

    def __init__(self, summary: str, details: str = "") -> None:
        super().__init__(f"{summary} {details}".strip())
        self.summary = summary


class ModelUnavailableError(ModelError):
    """The model does not answer now; the same request may succeed later."""

    def __init__(
        self, summary: str, details: str = "", retry_after: timedelta = timedelta(0)
    ) -> None:
        super().__init__(summary, details)
        self.retry_after = retry_after


class ModelTimeoutError(ModelUnavailableError):
    """The model did not answer by the deadline."""


class ModelRequestError(ModelError):
    """The endpoint refuses the request; the details say which setting to change."""


class ModelSetupError(ModelRequestError):
    """A key, a name or an address is wrong, or the account is used up: the endpoint refuses every request."""


class ToolsUnsupportedError(ModelRequestError):
    """The model or its server cannot call tools."""


class MalformedCompletionError(ModelError):
    """The answer is no chat completion, or incomplete."""


class ChatModel(Protocol):
    """What a turn asks for text and for tool calls."""

    @property
    def settings(self) -> ModelSettings: ...

    def stream(
        self,
        messages: Sequence[ModelMessage],
        deadline: Deadline,
        tools: Sequence[ToolSpec] = (),
    ) -> Generator[ModelEvent, None, None]:
        """Stream as `LanguageModel.stream` does."""
        ...


class LanguageModel:
    """One model behind one endpoint. Safe to use from several threads."""

    def __init__(self, settings: ModelSettings) -> None:
        self.settings = settings
        self._refused_temperatures = set[float | None]()
        """Also by the copies of `with_temperature`."""
        self._client = _connect(settings)

    def close(self) -> None:
        self._client.close()

    def with_temperature(self, temperature: float | None) -> "LanguageModel":
        """Return the same model on the same connections, at another temperature; None leaves it as it is."""
        if temperature is None:
            return self
        other = copy(self)
        other.settings = replace(self.settings, temperature=temperature)
        return other

    def stream(
        self,
        messages: Sequence[ModelMessage],
        deadline: Deadline,
        tools: Sequence[ToolSpec] = (),
    ) -> Generator[ModelEvent, None, None]:
        """Stream the model's answer. Closing the generator closes the connection.

        A request that fails before its first event is retried, as long as the deadline allows. What
        fails in the end is logged.

        Raises:
            ModelUnavailableError: no answer after all retries; `ModelTimeoutError`: not by the deadline.
            ModelRequestError: it refuses the request; `ModelSetupError`: a wrong key, model or address;
                `ToolsUnsupportedError`: it cannot call tools.
            MalformedCompletionError: no chat completion, or an incomplete one.
        """
        try:
            yield from self._try(self._request(messages, tools), deadline)
        except (ModelTimeoutError, ToolsUnsupportedError) as error:
            LOG.info("%s", error)
            raise
        except ModelError as error:
            LOG.warning("%s", error)
            raise

    @property
    def refuses_temperature(self) -> bool:
        """Whether it has refused the temperature of its settings, and is asked without one from then on."""
        return self.settings.temperature in self._refused_temperatures

    @property
    def _names(self) -> SettingNames:
        return self.settings.names

    def _try(self, request: Json, deadline: Deadline) -> Generator[ModelEvent, None, None]:
        for attempt in range(1, TRIES + 1):
            started = False
            try:
                for event in self._attempt(request, deadline):
                    started = True
                    yield event
            except ModelUnavailableError as failure:
                if started:
                    raise _incomplete(failure) from failure
                pause = self._backoff(attempt, failure)
                if attempt == TRIES or pause >= deadline.remaining():
                    raise
                deadline.sleep(pause)
            except ModelRequestError as refusal:
                # Older servers reject the option that asks for token counts, models that reason a temperature.
                option = _find_refused_option(refusal, request)
                if started or attempt == TRIES or option is None:
                    raise
                self._leave_out(request, option)
            else:
                return

    def _leave_out(self, request: Json, option: str) -> None:
        del request[option]
        if option == TEMPERATURE:
            self._refused_temperatures.add(self.settings.temperature)
            LOG.info("%s refuses a temperature and is asked without one.", self.settings.shown_name)

    def _request(self, messages: Sequence[ModelMessage], tools: Sequence[ToolSpec]) -> Json:
        request: Json = {
            "model": self.settings.model,
            "messages": [_encode_message(message) for message in messages],
            "stream": True,
            USAGE: {"include_usage": True},
        }
        if self.settings.temperature is not None and not self.refuses_temperature:
            request[TEMPERATURE] = self.settings.temperature
        if tools:
            request["tools"] = [_encode_tool(tool) for tool in tools]
            request["tool_choice"] = "auto"
        return request

    def _attempt(self, request: Json, deadline: Deadline) -> Iterator[ModelEvent]:
        assembly = StreamParser()
        with self._map_errors(request, deadline):
            with self._open_stream(request, deadline) as stream:
                for data in read_event_data(stream.response.iter_bytes()):
                    if data.startswith(DONE):
                        assembly.finish("stop")
                        break
                    yield from assembly.feed(data)
            yield from assembly.end()

    @contextmanager
    def _open_stream(
        self, request: Json, deadline: Deadline
    ) -> "Iterator[Stream[ChatCompletionChunk]]":
        left = deadline.remaining()
        if not left:
            raise ModelTimeoutError(_TOO_LATE)
        cancellable = CancellableSocket()
        # The library's own time-out runs anew with every piece, so that a stalled stream could take
        # twice its time, and a dribbling one for ever.
        with (
            deadline.on_expiry(cancellable.cancel),
            self._wait_for_answer(request, left, cancellable) as stream,
        ):
            _check_content_type(stream, self.settings)
            yield stream

    def _wait_for_answer(
        self, request: Json, left: float, cancellable: CancellableSocket
    ) -> "Stream[ChatCompletionChunk]":
        """Wait until the server begins to answer on the connection of `cancellable`."""
        create: Callable[..., Stream[ChatCompletionChunk]] = self._client.chat.completions.create
        token = _current_socket.set(cancellable)
        try:
            return create(**request, timeout=_timeout(left))
        finally:
            _current_socket.reset(token)

    @contextmanager
    def _map_errors(self, request: Json, deadline: Deadline) -> Iterator[None]:
        """Map errors of the library, and those of its HTTP client that it lets through, to ours."""
        import httpx2
        import openai

        try:
            yield
        except openai.APIStatusError as error:
            raise self._status_error(error, request) from error
        # The last is that of `_check_peer`, which the library lets through.
        except (openai.APIConnectionError, httpx2.RequestError, ConnectionRefusedError) as error:
            if isinstance(error.__cause__ or error, httpx2.LocalProtocolError):
                # Its cause quotes the key.
                raise self._unsendable_key() from None
            if not deadline.remaining():
                raise ModelTimeoutError(_TOO_LATE) from error
            raise ModelUnavailableError(_NO_ANSWER, self._unreachable_details(error)) from error
        except (openai.APIError, ReportedError) as error:
            raise ModelUnavailableError(_FAILED, self._quote(str(error))) from error
        except UnicodeEncodeError:
            raise self._unsendable_key() from None
        except (ValueError, RecursionError) as error:
            raise MalformedCompletionError(_MALFORMED, self._malformed_details()) from error
        except RuntimeError as error:
            # What runs beside a turn may ask at the very moment in which the program ends.
            if not self._client.is_closed():
                raise
            raise ModelUnavailableError(_NO_ANSWER, "Its client is closed.") from error

    def _status_error(self, error: "openai.APIStatusError", request: Json) -> ModelError:
        quoted = self._quote(error.message)
        match error.status_code:
            case 401 | 403:
                return ModelSetupError(
                    _KEY_REFUSED, f"Set {self._names.key} to a valid one. {quoted}"
                )
            case 429 if error.code == "insufficient_quota":
                return ModelSetupError(
                    "The quota of the language model account is used up.", quoted
                )
            case 408 | 409 | 425 | 429:
                return ModelUnavailableError(
                    "The language model is busy.", quoted, _retry_after(error)
                )
            case status if status >= 500 and not _is_about_tools(error, request):
                return ModelUnavailableError(_FAILED, quoted, _retry_after(error))
        if _is_about_tools(error, request):
            return ToolsUnsupportedError("The language model cannot call tools.", quoted)
        if error.status_code == 404:
            details = (
                f"There is no model {self.settings.model!r} at {self.settings.base_url}. Set {self._names.model} to"
                f" a model that is there, and {self._names.url} to an address that ends in /v1. {quoted}"
            )
            return ModelSetupError("The language model was not found.", details)
        details = f"Check {self._names.model} and {self._names.window}. {quoted}"
        return ModelRequestError("The language model refused the request.", details)

    def _unsendable_key(self) -> ModelSetupError:
        return ModelSetupError(
            "The key of the language model cannot be sent.",
            f"The value of {self._names.key} contains an invalid character, such as a line break at its end."
            " Set it again.",
        )

    def _unreachable_details(self, error: Exception) -> str:
        cause = error.__cause__ or error
        address = self.settings.base_url
        return f"{address} is not reached ({cause}). Check that it runs and that {self._names.url} is right."

    def _malformed_details(self) -> str:
        return (
            f"Try again; if it stays so, check that {self._names.url} is that of an OpenAI-compatible server"
            f" ({self.settings.base_url})."
        )

    def _quote(self, message: str) -> str:
        """Quote a server on one line."""
        told = " ".join(self.settings.hide_key(message).split())
        return f"Its message: {told[:QUOTED_CHARACTERS]}"

    def _backoff(self, attempt: int, failure: ModelUnavailableError) -> float:
        """Return the seconds that the server asked for, or a doubled pause with a quarter of jitter."""
        backoff: float = self.settings.first_backoff * 2 ** (attempt - 1)
        return max(failure.retry_after.total_seconds(), backoff * random.uniform(0.75, 1.25))


def make_complete(model: ChatModel) -> Complete:
    """Adapt the model to what search uses: a text for a few messages, without reasoning."""

    def complete(messages: Sequence[ChatMessage], deadline: Deadline) -> str:
        try:
            events = list(model.stream(messages, deadline))
        except ModelError as error:
            raise CompletionError(error.summary) from error
        text = "".join(event.text for event in events if isinstance(event, TextDelta)).strip()
        if not text:
            raise CompletionError("the language model gave an empty answer")
        return text

    return complete


_TOO_LATE = "The language model did not answer in the time allowed. Ask again, or allow more time."
_NO_ANSWER = "The language model did not answer."
_FAILED = "The language model failed."
_KEY_REFUSED = "The language model refused the key."
_MALFORMED = "The response of the language model was cut off or is not a chat completion."


def _connect(settings: ModelSettings) -> "openai.OpenAI":
    import httpx2
    import openai

    client = openai.OpenAI(
        base_url=settings.base_url,
        # A local server needs no key, but the library does.
        api_key=settings.api_key or "none",
        max_retries=0,
        http_client=openai.DefaultHttpxClient(
            # A deadline closes the socket, which is known only when a connection is made.
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=0),
            event_hooks={"request": [_trace_connection]},
        ),
    )
    # The library takes these two from the environment; they must not be sent to other servers.
    client.organization = client.project = None
    return client


_current_socket: ContextVar[CancellableSocket] = ContextVar("_current_socket")


def _trace_connection(request: "httpx2.Request") -> None:
    cancellable = _current_socket.get()

    def trace(event: str, details: Json) -> None:
        """Receive a trace event of the HTTP client."""
        if event in {"connection.connect_tcp.complete", "connection.start_tls.complete"}:
            connected = details["return_value"].get_extra_info("socket")
            if isinstance(connected, socket.socket):
                _check_peer(connected)
                cancellable.attach(connected)

    request.extensions["trace"] = trace


def _check_peer(connected: socket.socket) -> None:
    """Send nothing, and no key, to where a machine gets its credentials, whatever a name resolves to."""
    try:
        peer = connected.getpeername()
    except OSError:
        return  # Its server has closed it already: nothing can be sent, and the client finds that out.
    if isinstance(peer, tuple) and (reason := find_forbidden(str(peer[0]))):
        connected.close()
        raise ConnectionRefusedError(f"{peer[0]} {reason}")


def _timeout(left: float) -> "openai.Timeout":
    import openai

    return openai.Timeout(left, connect=min(CONNECT_SECONDS, left))


def _check_content_type(stream: "Stream[ChatCompletionChunk]", settings: ModelSettings) -> None:
    kind = stream.response.headers.get("content-type", "")
    if kind.startswith("text/html"):
        details = (
            f"{settings.base_url} answers with a web page. Set {settings.names.url} to an OpenAI-compatible server; it"
            " usually ends in /v1."
        )
        raise ModelSetupError(_NO_ANSWER, details)


def _incomplete(failure: ModelUnavailableError) -> ModelError:
    if isinstance(failure, ModelTimeoutError):
        return failure
    return MalformedCompletionError("The answer broke off in the middle.", str(failure))


def _retry_after(error: "openai.APIStatusError") -> timedelta:
    """Parse Retry-After, in seconds or as a date; zero if it is invalid."""
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


def _find_refused_option(refusal: ModelRequestError, request: Json) -> str | None:
    told = str(refusal).lower()
    return next((one for one in _OPTIONS if one in request and one in told), None)


def _is_about_tools(error: "openai.APIStatusError", request: Json) -> bool:
    """Return whether tools are refused: servers use 400, 404, 422, 500 or 501, so only the message identifies it."""
    text = f"{error.message} {error.param or ''}".lower()
    return "tools" in request and ("tool" in text or "function call" in text)


def _encode_message(message: ModelMessage) -> Json:
    match message:
        case ChatMessage(role, text, ()):
            return {"role": role, "content": _replace_surrogates(text)}
        case ChatMessage(role, text, pictures):
            parts = [{"type": "text", "text": _replace_surrogates(text)}]
            shown = [{"type": "image_url", "image_url": {"url": one.url}} for one in pictures]
            return {"role": role, "content": [*parts, *shown]}
        case CallMessage(text, calls):
            return {
                "role": "assistant",
                "content": _replace_surrogates(text) or None,
                "tool_calls": [_encode_call(call) for call in calls],
            }
        case ToolResult(call_id, text):
            return {"role": "tool", "tool_call_id": call_id, "content": _replace_surrogates(text)}


def _replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which broken file names contain and JSON cannot encode."""
    return text.encode("utf-8", "replace").decode()


def _encode_call(call: ToolCall) -> Json:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _encode_tool(tool: ToolSpec) -> Json:
    function: Mapping[str, object] = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }
    return {"type": "function", "function": function}
