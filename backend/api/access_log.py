"""A request id for every request, and one line of JSON when it is done."""

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

from backend.api.request_context import Visit, begin_visit
from backend.version import describe_version

LOG = logging.getLogger("quarry.requests")
REQUEST_ID = "x-request-id"

Answered: TypeAlias = Callable[[str, str | None, int | None, float], object]
"""Told of the method, the route, the status and the seconds of each request."""

_ACCEPTED = re.compile(r"[A-Za-z0-9._:-]{1,128}")


class RequestLog:
    """The outermost layer: everything that is answered passes through it.

    What was asked is private, and stands in the line only where debugging is on.
    """

    def __init__(self, app: ASGIApp, answered: Answered) -> None:
        self._app = app
        self._answered = answered

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        visit = begin_visit(scope, _request_id(scope))
        status: int | None = None

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[REQUEST_ID] = visit.request_id
            elif not message.get("more_body", False):
                visit.is_answered = True
            await send(message)

        began = time.perf_counter()
        try:
            return await self._app(scope, receive, noting)
        finally:
            seconds = time.perf_counter() - began
            self._answered(scope["method"], _route(scope), status, seconds)
            _note(scope, visit, status, seconds)


def log_start() -> None:
    """Begin the log with what runs: a line of its own form, with an event instead of a request."""
    LOG.info(json.dumps({"time": _now(), "event": "start", "version": describe_version()}))


def _route(scope: Scope) -> str | None:
    """As it was declared: not which document, and none where nothing is at the address."""
    return getattr(scope.get("route"), "path", None)


def _request_id(scope: Scope) -> str:
    """That of the client, if it is one that can stand in a log; else a new one."""
    given = Headers(scope=scope).get(REQUEST_ID, "")
    return given if _ACCEPTED.fullmatch(given) else uuid.uuid4().hex


def _note(scope: Scope, visit: Visit, status: int | None, seconds: float) -> None:
    line = {
        "time": _now(),
        "request": visit.request_id,
        "method": scope["method"],
        "route": _route(scope),
        "status": status,
        "seconds": round(seconds, 4),
        "asker": visit.asker,
    }
    if visit.is_gone:
        line["gone"] = True
    if visit.asked and LOG.isEnabledFor(logging.DEBUG):
        line["asked"] = visit.asked
    LOG.info(json.dumps(line, ensure_ascii=False))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
