"""The access log: an id for every request, and one entry in the log when it is done.

What an entry says beside its message are the `fields` of its record, which `backend.worker.logs` writes.
"""

import logging
import re
import time
import uuid
from collections.abc import Callable
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
    """

    def __init__(self, app: ASGIApp, observe: RequestObserver) -> None:
        self._app = app
        self._observe = observe

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
            _log_request(scope, context, status, seconds)


def log_start() -> None:
    """Log the version: an entry with an event instead of a request."""
    version = describe_version()
    LOG.info("%s starts", version, extra={"fields": {"event": "start", "version": version}})


def _route(scope: Scope) -> str | None:
    """Return the declared path, without ids of documents; None where no route matches."""
    return getattr(scope.get("route"), "path", None)


def _request_id(scope: Scope) -> str:
    """Return the id that the client sent if it is safe to log, else a new one."""
    given = Headers(scope=scope).get(REQUEST_ID, "")
    return given if _ACCEPTED.fullmatch(given) else uuid.uuid4().hex


def _log_request(scope: Scope, context: RequestContext, status: int | None, seconds: float) -> None:
    method, route = scope["method"], _route(scope)
    fields = {
        "request": context.request_id,
        "method": method,
        "route": route,
        "status": status,
        "seconds": round(seconds, 4),
        "asker": context.asker,
    }
    if context.is_disconnected:
        fields["gone"] = True
    if context.query and LOG.isEnabledFor(logging.DEBUG):
        fields["asked"] = context.query
    outcome = "without a response" if status is None else status
    LOG.info("%s %s: %s", method, route or "no route", outcome, extra={"fields": fields})
