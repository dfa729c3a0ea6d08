"""What pages of other sites may ask: the metadata of OAuth, and the endpoints at which programs get their tokens.

Programs that run in a browser come from a site of their own. These routes use no cookie, and answer what the request itself
proves; with `*` a browser shows a page none of an answer that a cookie was sent for (Fetch, 3.2.5).
"""

from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

METADATA = "/.well-known/oauth-"
ENDPOINTS = ("/oauth/register", "/oauth/token", "/oauth/revoke")
_HEADERS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "WWW-Authenticate, Retry-After",
    "Cross-Origin-Resource-Policy": "cross-origin",
}
_OF_PREFLIGHTS = {
    "Access-Control-Allow-Methods": "GET, POST",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, MCP-Protocol-Version",
    "Access-Control-Max-Age": "3600",
}


def is_for_other_origins(path: str) -> bool:
    return path in ENDPOINTS or path.startswith(METADATA)


class CrossOriginMiddleware:
    """Lets pages of other sites read the answers of these routes, and answers what browsers ask before (Fetch, 3.2)."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not is_for_other_origins(scope["path"]):
            return await self._app(scope, receive, send)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        if scope["method"] == "OPTIONS":
            preflight = Response(status_code=204, headers=_OF_PREFLIGHTS)
            return await preflight(scope, receive, send_with_headers)
        return await self._app(scope, receive, send_with_headers)
