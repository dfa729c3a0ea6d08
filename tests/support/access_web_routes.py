"""The routes of web search, which are for admins alone."""

from backend.api.authorization import Permission
from tests.support.access_expected import Kind, answers

_ADMIN = Permission.ADMIN
_WEB = "/api/admin/web"
_PROVIDER = f"{_WEB}/providers/{{name}}"

ROUTES_OF_WEB_SEARCH = {
    "GET /web-search": answers(_ADMIN),
    "GET /web-search/providers": answers(_ADMIN),
    "GET /web-provider/{name}": answers(_ADMIN, Kind.WEB_PROVIDER),
    f"GET {_WEB}": answers(_ADMIN),
    f"PATCH {_WEB}": answers(_ADMIN, json={}),
    f"GET {_WEB}/kinds": answers(_ADMIN),
    # The web is switched off.
    f"POST {_WEB}/search": answers(_ADMIN, found=409, json={"query": "leave"}),
    f"POST {_WEB}/providers": answers(_ADMIN, found=422, json={}),
    f"PATCH {_PROVIDER}": answers(_ADMIN, Kind.WEB_PROVIDER, json={}),
    f"DELETE {_PROVIDER}": answers(_ADMIN, Kind.WEB_PROVIDER, 204),
    f"PUT {_PROVIDER}/position": answers(_ADMIN, Kind.WEB_PROVIDER, json={"position": 1}),
    f"POST {_PROVIDER}/test": answers(_ADMIN, Kind.WEB_PROVIDER, json={}),
}
