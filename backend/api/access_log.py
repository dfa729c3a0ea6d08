"""The access log: an id for every request, and one line of JSON when it is done."""

import json
import logging
import re
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeAlias

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.api.request_context import RequestContext, create_request_context
from backend.version import describe_version

LOG = logging.getLogger("quarry.requests")
REQUEST_ID = "x-request-id"

RequestObserver: TypeAlias = Callable[[str, str | None, int | None, float], object]
"""Called with the method, the route, the status and the seconds of each request."""

_ACCEPTED = re.compile(r"[A-Za-z0-9._:-]{1,128}")


class AccessLogMiddleware:
    """The outermost layer: every response passes through it.

    Queries are private; they are logged at level DEBUG only.

    Args:
        process: the name of this process, where several serve.
    """

    def __init__(self, app: ASGIApp, observe: RequestObserver, process: str | None = None) -> None:
        self._app = app
        self._observe = observe
        self._process = process

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        context = create_request_context(scope, _request_id(scope))
        status: int | None = None

        async def send_and_record(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[REQUEST_ID] = context.request_id
            elif not message.get("more_body", False):
                context.is_answered = True
            await send(message)

        began = time.perf_counter()
        try:
            return await self._app(scope, receive, send_and_record)
        finally:
            seconds = time.perf_counter() - began
            self._observe(scope["method"], _route(scope), status, seconds)
            _log_request(scope, context, status, seconds, self._process)


def log_start() -> None:
    """Log the version: a line with an event instead of a request."""
    LOG.info(json.dumps({"time": _now(), "event": "start", "version": describe_version()}))


def _route(scope: Scope) -> str | None:
    """Return the declared path, without ids of documents; None where no route matches."""
    return getattr(scope.get("route"), "path", None)


def _request_id(scope: Scope) -> str:
    """Return the id that the client sent if it is safe to log, else a new one."""
    given = Headers(scope=scope).get(REQUEST_ID, "")
    return given if _ACCEPTED.fullmatch(given) else uuid.uuid4().hex


def _log_request(
    scope: Scope,
    context: RequestContext,
    status: int | None,
    seconds: float,
    process: str | None,
) -> None:
    line = {
        "time": _now(),
        "request": context.request_id,
        "method": scope["method"],
        "route": _route(scope),
        "status": status,
        "seconds": round(seconds, 4),
        "asker": context.asker,
    }
    if process is not None:
        line["process"] = process
    if context.is_disconnected:
        line["gone"] = True
    if context.query and LOG.isEnabledFor(logging.DEBUG):
        line["asked"] = context.query
    LOG.info(json.dumps(line, ensure_ascii=False))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
