"""Checks before every route: host, origin and size of the request; and the security headers of every
response.

A page of another site may make a browser send requests to this machine, and with a name of its own
that it points to 127.0.0.1 (DNS rebinding) it could even read the answers. Both show in the
headers: Host holds that name, Origin and Sec-Fetch-Site name the other site.
"""

import ipaddress
import re
from collections.abc import Callable
from types import MappingProxyType
from typing import TypeAlias

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.api.problem_details import problem, response
from backend.schemas.system import ProblemDetails

MOST_BYTES = 1_000_000
"""Of a request's body."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self';"
    " frame-ancestors 'none'"
)
HEADERS = MappingProxyType(
    {
        "Content-Security-Policy": POLICY,
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cache-Control": "no-store",
    }
)
"""Of every answer that does not say otherwise."""

KnowsHost: TypeAlias = Callable[[str], bool]

_HOST = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<name>[^\s:/@\[\]]+))(?::\d{1,5})?")
_OWN_SITE = {"same-origin", "none"}


def is_this_machine(name: str) -> bool:
    """`localhost`, or an address of the loopback network, which no other site can point elsewhere."""
    if name.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


class RequestGuardMiddleware:
    def __init__(self, app: ASGIApp, knows_host: KnowsHost = is_this_machine) -> None:
        self._app = app
        self._knows_host = knows_host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                found = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    found.setdefault(name, value)
            await send(message)

        if refusal := self._refusal(scope):
            return await response(refusal)(scope, receive, send_with_headers)
        return await self._app(scope, _limit_body(receive), send_with_headers)

    def _refusal(self, scope: Scope) -> ProblemDetails | None:
        headers = Headers(scope=scope)
        return (
            _foreign_host(headers, self._knows_host)
            or _foreign_origin(headers, scope["scheme"])
            or _foreign_site(headers, scope["method"])
            or _too_long(headers)
        )


def _foreign_host(headers: Headers, knows_host: KnowsHost) -> ProblemDetails | None:
    hosts = headers.getlist("host")
    found = _HOST.fullmatch(hosts[0]) if len(hosts) == 1 else None
    if found and knows_host(found["v6"] or found["name"]):
        return None
    host = repr(hosts[0][:100]) if hosts else "nobody"
    return problem(
        421,
        f"The request is addressed to {host}, which is not a name of this machine. Without accounts,"
        " Quarry answers this machine alone; under another name, a foreign web page could read your"
        " documents through your browser (DNS rebinding).",
        "Use http://127.0.0.1 or http://localhost, with the port that quarry serve printed.",
    )


def _foreign_origin(headers: Headers, scheme: str) -> ProblemDetails | None:
    origin = headers.get("origin")
    if origin is None or origin.lower() == f"{scheme}://{headers['host']}".lower():
        return None
    return _from_elsewhere(f"from a page of {origin[:100]!r}")


def _foreign_site(headers: Headers, method: str) -> ProblemDetails | None:
    """A link that a person follows from elsewhere is welcome; anything else a page does is not."""
    site = headers.get("sec-fetch-site", "none")
    followed = (
        method in {"GET", "HEAD"}
        and headers.get("sec-fetch-mode") == "navigate"
        and headers.get("sec-fetch-dest") == "document"
    )
    if site in _OWN_SITE or followed:
        return None
    return _from_elsewhere("from a page of another site")


def _from_elsewhere(where: str) -> ProblemDetails:
    return problem(
        403,
        f"The request comes {where}. Quarry answers only its own pages and programs of this machine,"
        " so that no web page can ask it in your name.",
        "Open Quarry's own page, or send the request without a browser.",
    )


def _too_long(headers: Headers) -> ProblemDetails | None:
    length = headers.get("content-length", "")
    if not length.isdecimal() or int(length[:20]) <= MOST_BYTES:
        return None
    return problem(413, _TOO_LONG)


def _limit_body(receive: Receive) -> Receive:
    """Wrap `receive` to fail once the body is too long; a body need not declare its length."""
    size = 0

    async def receive_counted() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > MOST_BYTES:
            raise HTTPException(413, _TOO_LONG)
        return message

    return receive_counted


_TOO_LONG = f"The request is longer than {MOST_BYTES:,} bytes."
