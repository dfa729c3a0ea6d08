"""Checks before every route: host, origin and size of the request; and the security headers of every
response.

A page of another site may make a browser send requests to this machine, and with a name of its own
that it points to 127.0.0.1 (DNS rebinding) it could even read the answers. Both show in the
headers: Host holds that name, Origin and Sec-Fetch-Site name the other site.
"""

import ipaddress
import re
from types import MappingProxyType

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.api.cross_origin import is_for_other_origins
from backend.api.multipart import OVERHEAD
from backend.api.problem_details import problem, respond
from backend.api.public_address import PublicAddress
from backend.api.request_context import get_request_context
from backend.files.file_types import LARGEST_FILE
from backend.schemas.system import ProblemDetails

MOST_BYTES = 1_000_000
"""Of a request's body."""
MOST_UPLOADED = LARGEST_FILE + OVERHEAD
"""Of the body of a request that uploads a file, puts documents in, or imports knowledge."""
MOST_WITH_PICTURES = 10_000_000
"""Of the body of a request whose messages may hold pictures."""

_WITH_PICTURES = {"/v1/chat/completions", "/v1/responses"}
_UPLOADS = re.compile(
    r"/api/(?:(?:projects|assistants)/[^/]+/)?files|/api/documents(?:/file)?|/api/knowledge",
    re.ASCII,
)
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

_HOST = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<name>[^\s:/@\[\]]+))(?::\d{1,5})?")
_OWN_SITE = {"same-origin", "none"}
_FOR_PROBES = {"/healthz", "/readyz"}
"""What a load balancer asks by the address of the machine."""
_HSTS = "max-age=31536000"


def is_this_machine(name: str) -> bool:
    """Return whether it is `localhost` or an address of the loopback network, which no site can point elsewhere."""
    if name.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


class RequestGuardMiddleware:
    """Lets requests to this machine in, or to the site, where others reach the server under an address of its own."""

    def __init__(self, app: ASGIApp, site: PublicAddress | None = None) -> None:
        self._app = app
        self._site = site
        strict = {"Strict-Transport-Security": _HSTS} if site else {}
        self._headers = {**HEADERS, **strict}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                found = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    found.setdefault(name, value)
            await send(message)

        if refusal := self._refusal(scope):
            return await respond(scope, refusal)(scope, receive, send_with_headers)
        if self._site:
            # A proxy may speak TLS for it: addresses that are made of the request are those that people open.
            scope["scheme"] = "https"
        get_request_context(scope).origin = self._origin(scope, Headers(scope=scope)).lower()
        most = _find_limit(scope)
        return await self._app(scope, _limit_body(receive, most), send_with_headers)

    def _refusal(self, scope: Scope) -> ProblemDetails | None:
        headers = Headers(scope=scope)
        return (
            self._foreign_host(headers, scope["path"])
            or self._foreign_page(scope, headers)
            or _too_long(headers, _find_limit(scope))
        )

    def _foreign_page(self, scope: Scope, headers: Headers) -> ProblemDetails | None:
        if is_for_other_origins(scope["path"]):
            return None
        return _foreign_origin(headers, self._origin(scope, headers)) or _foreign_site(
            headers, scope["method"]
        )

    def _foreign_host(self, headers: Headers, path: str) -> ProblemDetails | None:
        hosts = headers.getlist("host")
        if path in _FOR_PROBES:
            return None
        if self._site is None:
            return None if _is_addressed_to_this_machine(hosts) else _not_this_machine(hosts)
        return None if self._site.is_host(hosts) else _not_the_site(hosts, self._site)

    def _origin(self, scope: Scope, headers: Headers) -> str:
        return self._site.url if self._site else f"{scope['scheme']}://{headers.get('host')}"


def _is_addressed_to_this_machine(hosts: list[str]) -> bool:
    found = _HOST.fullmatch(hosts[0]) if len(hosts) == 1 else None
    return found is not None and is_this_machine(found["v6"] or found["name"])


def _not_the_site(hosts: list[str], site: PublicAddress) -> ProblemDetails:
    return problem(
        421,
        f"The request is addressed to {_quote(hosts)}, which is not the address of this Quarry.",
        f"Use {site.url}, or set QUARRY_PUBLIC_URL to the address that people open.",
    )


def _quote(hosts: list[str]) -> str:
    return repr(hosts[0][:100]) if hosts else "nobody"


def _not_this_machine(hosts: list[str]) -> ProblemDetails:
    return problem(
        421,
        f"The request is addressed to {_quote(hosts)}, which is not a name of this machine. Without"
        " QUARRY_PUBLIC_URL, Quarry answers this machine alone; under another name, a foreign web page"
        " could read your documents through your browser (DNS rebinding).",
        "Use http://127.0.0.1 or http://localhost, with the port that quarry serve printed.",
    )


def _foreign_origin(headers: Headers, own: str) -> ProblemDetails | None:
    origin = headers.get("origin")
    if origin is None or origin.lower() == own.lower():
        return None
    return _from_elsewhere(f"from a page of {origin[:100]!r}")


def _foreign_site(headers: Headers, method: str) -> ProblemDetails | None:
    """Refuse what a page of another site does, but for a link that a person follows: that is welcome."""
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


def _find_limit(scope: Scope) -> int:
    if scope["method"] != "POST":
        return MOST_BYTES
    if scope["path"] in _WITH_PICTURES:
        return MOST_WITH_PICTURES
    return MOST_UPLOADED if _UPLOADS.fullmatch(scope["path"]) else MOST_BYTES


def _too_long(headers: Headers, most: int) -> ProblemDetails | None:
    length = headers.get("content-length", "")
    if not length.isdecimal() or int(length[:20]) <= most:
        return None
    return problem(413, _describe_limit(most))


def _limit_body(receive: Receive, most: int) -> Receive:
    """Wrap `receive` to fail once the body is too long; a body need not declare its length."""
    size = 0

    async def receive_counted() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > most:
            raise HTTPException(413, _describe_limit(most))
        return message

    return receive_counted


def _describe_limit(most: int) -> str:
    if most == MOST_UPLOADED:
        return f"The upload is too large: a file may have {LARGEST_FILE:,} bytes."
    return f"The request is longer than {most:,} bytes."
