"""Every route with its rule, the object that a request to it names, and how one that exists is answered.

The rules stand here a second time, apart from the routes: a route that loses its own is told from its neighbours.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from backend.api.authorization import Permission

OBJECT = "OBJECT"
"""Stands in what is sent for what names the object."""
MODEL_ADDRESS = "http://127.0.0.1:8080/v1"
ISSUER = "https://idp.example.com"


class Kind(StrEnum):
    """What the path, the query or the body of a request names."""

    NOTHING = "nothing"
    DOCUMENT = "document"
    SOURCE = "source"
    FILTERED_SOURCE = "filtered source"
    """By which documents are filtered: it exists for whoever may read one of its documents."""
    PERSON = "person"
    GROUP = "group"
    INVITATION = "invitation"
    INVITATION_CODE = "invitation code"
    RESET_CODE = "reset code"
    TOKEN = "token"
    OWN_TOKEN = "own token"
    SESSION = "session"
    IDENTITY = "identity"
    CONVERSATION = "conversation"
    MESSAGE = "message"
    """Together with its conversation."""
    MESSAGE_IN_OWN = "message in an own conversation"
    """The conversation is the asker's; where the message stands is what differs."""
    MODEL = "language model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """How a route answers who has its permission."""

    permission: Permission
    of_people: bool = False
    """Tokens of services are refused, which belong to nobody."""
    kind: Kind = Kind.NOTHING
    found: int = 200
    """The status for an object that the asker may know of, and for a route that names none."""
    missing: int = 404
    signed_in: int | None = None
    """The status for a session, where that is another."""
    query: Mapping[str, str] | None = None
    json: Any = None
    form: Mapping[str, str] | None = None


def _of(
    permission: Permission, kind: Kind = Kind.NOTHING, found: int = 200, **more: Any
) -> Expected:
    return Expected(permission=permission, kind=kind, found=found, **more)


_ANYONE, _SEARCH, _ASK = Permission.ANYONE, Permission.SEARCH, Permission.ASK
_SOURCES, _ADMIN, _METRICS = Permission.SOURCES, Permission.ADMIN, Permission.METRICS
_ACCOUNTS, _ACCOUNT = Permission.ACCOUNTS, Permission.ACCOUNT
_ADMIN_SOURCE = "/api/admin/sources/{name}"
_FOLDER = {"kind": "folder", "settings": {"path": "/nowhere"}}
_FILTER = {"sources": [OBJECT]}
_CONVERSATION = "/api/conversations/{conversation_id}"
_MESSAGE = f"{_CONVERSATION}/messages/{{message_id}}"
_MODEL = "/api/admin/models/{name}"
_QUESTION = "How long is parental leave?"
_MODEL_FORM = {
    "name": OBJECT,
    "base_url": MODEL_ADDRESS,
    "model": "large",
    "context_window": "32000",
}
_IDENTITY = {"issuer": ISSUER, "subject": OBJECT}

# A route beside itself with something else in its query or body has a mark, which is not sent.
_FOR_ANYONE = {
    "GET /favicon.ico": _of(_ANYONE, found=307),
    "GET /healthz": _of(_ANYONE),
    "GET /readyz": _of(_ANYONE),
    "GET /static/{version}/{name}": _of(_ANYONE),
    "GET /link": _of(_ANYONE, found=303),
    "GET /sign-in": _of(_ANYONE, signed_in=303),
    "POST /sign-in": _of(_ANYONE, found=401, form={"email": f"{OBJECT}@example.com"}),
    "GET /sign-in/openid": _of(_ANYONE, found=503),
    "GET /sign-in/openid/continue": _of(_ANYONE),
    "GET /sign-in/openid/callback": _of(_ANYONE, found=403),
    "GET /invitation": _of(_ANYONE, Kind.INVITATION_CODE, query={"code": OBJECT}),
    "POST /invitation": _of(_ANYONE, Kind.INVITATION_CODE, 422, form={"code": OBJECT}),
    "GET /password-reset": _of(_ANYONE, Kind.RESET_CODE, query={"code": OBJECT}),
    "POST /password-reset": _of(_ANYONE, Kind.RESET_CODE, 422, form={"code": OBJECT}),
}
_FOR_READERS = {
    "GET /": _of(_SEARCH),
    "GET /results": _of(_SEARCH),
    "GET /results#source": _of(
        _SEARCH, Kind.FILTERED_SOURCE, missing=200, query={"q": "leave", "source": OBJECT}
    ),
    "GET /results#words": _of(
        _SEARCH, Kind.FILTERED_SOURCE, missing=200, query={"q": f"leave source:{OBJECT}"}
    ),
    "GET /ask": _of(_SEARCH),
    "GET /openapi.json": _of(_SEARCH),
    "GET /document/{document_id:path}": _of(_SEARCH, Kind.DOCUMENT),
    "GET /api/documents": _of(_SEARCH),
    "GET /api/documents#source": _of(
        _SEARCH, Kind.FILTERED_SOURCE, missing=200, query={"source": OBJECT}
    ),
    "GET /api/documents/{document_id:path}": _of(_SEARCH, Kind.DOCUMENT),
    "GET /api/documents/{document_id:path}/original": _of(_SEARCH, Kind.DOCUMENT),
    # It is no PDF file, which the body says.
    "GET /api/documents/{document_id:path}/pages/{number}": _of(_SEARCH, Kind.DOCUMENT, 404),
    "POST /api/search": _of(_SEARCH, json={"query": "leave"}),
    "POST /api/search#source": _of(
        _SEARCH,
        Kind.FILTERED_SOURCE,
        missing=200,
        json={"query": "leave", "filters": _FILTER},
    ),
    "POST /api/ask": _of(_ASK, json={"question": "How long is parental leave?"}),
    "POST /api/ask#source": _of(
        _ASK,
        Kind.FILTERED_SOURCE,
        missing=200,
        json={"question": "How long is parental leave?", "filters": _FILTER},
    ),
}


def _talk(kind: Kind = Kind.NOTHING, found: int = 200, **more: Any) -> Expected:
    return _of(_ASK, kind, found, of_people=True, **more)


_FOR_WHO_CONVERSES = {
    "GET /chat": _talk(),
    # The page is alike for all of them: what there is, its script asks the API.
    "GET /chat/{conversation_id}": _talk(Kind.CONVERSATION, missing=200),
    "GET /api/conversations": _talk(),
    "POST /api/conversations": _talk(found=202, json={"question": _QUESTION}),
    f"GET {_CONVERSATION}": _talk(Kind.CONVERSATION),
    f"GET {_CONVERSATION}#leaf": _talk(Kind.MESSAGE_IN_OWN, query={"leaf": OBJECT}),
    f"GET {_CONVERSATION}#before": _talk(Kind.MESSAGE_IN_OWN, query={"before": OBJECT}),
    f"PATCH {_CONVERSATION}": _talk(Kind.CONVERSATION, json={"title": "Leave", "archived": True}),
    f"PATCH {_CONVERSATION}#back": _talk(Kind.CONVERSATION, json={"archived": False}),
    f"PATCH {_CONVERSATION}#nothing": _talk(Kind.CONVERSATION, json={}),
    f"PATCH {_CONVERSATION}#leaf": _talk(Kind.MESSAGE_IN_OWN, json={"leaf_id": OBJECT}),
    f"DELETE {_CONVERSATION}": _talk(Kind.CONVERSATION, 204),
    f"POST {_CONVERSATION}/messages": _talk(
        Kind.CONVERSATION, 202, json={"question": _QUESTION, "parent_id": None}
    ),
    f"POST {_CONVERSATION}/messages#parent": _talk(
        Kind.MESSAGE_IN_OWN, 202, json={"question": _QUESTION, "parent_id": OBJECT}
    ),
    f"POST {_MESSAGE}/regenerate": _talk(Kind.MESSAGE, 202),
    f"POST {_MESSAGE}/regenerate#own": _talk(Kind.MESSAGE_IN_OWN, 202),
    f"POST {_MESSAGE}/stop": _talk(Kind.MESSAGE, 202),
    f"POST {_MESSAGE}/stop#own": _talk(Kind.MESSAGE_IN_OWN, 202),
    f"GET {_MESSAGE}/events": _talk(Kind.MESSAGE),
    f"GET {_MESSAGE}/events#own": _talk(Kind.MESSAGE_IN_OWN),
}
_FOR_OWNERS_OF_SOURCES = {
    "GET /sources": _of(_SOURCES),
    "GET /sources/table": _of(_SOURCES),
    "GET /source/{name}": _of(_SOURCES, Kind.SOURCE),
    "GET /source/{name}/state": _of(_SOURCES, Kind.SOURCE),
    "GET /source/{name}/decision": _of(_SOURCES, Kind.SOURCE, 303),
    "GET /api/sources": _of(_SOURCES),
    "POST /api/sources": _of(_SOURCES, found=422, json=_FOLDER),
    "POST /api/sources/{name}/sync": _of(_SOURCES, Kind.SOURCE),
    "GET /api/failures": _of(_SOURCES),
    "GET /api/failures#source": _of(_SOURCES, Kind.SOURCE, missing=200, query={"source": OBJECT}),
    "GET /api/admin/kinds": _of(_SOURCES),
    "GET /api/admin/sources": _of(_SOURCES),
    "POST /api/admin/sources": _of(_SOURCES, found=422, json=_FOLDER),
    f"GET {_ADMIN_SOURCE}": _of(_SOURCES, Kind.SOURCE),
    f"PATCH {_ADMIN_SOURCE}": _of(_SOURCES, Kind.SOURCE, json={}),
    f"DELETE {_ADMIN_SOURCE}": _of(_SOURCES, Kind.SOURCE, 202),
    f"PUT {_ADMIN_SOURCE}/schedule": _of(_SOURCES, Kind.SOURCE, json={"incremental": 3_600}),
    f"POST {_ADMIN_SOURCE}/test": _of(_SOURCES, Kind.SOURCE),
    f"GET {_ADMIN_SOURCE}/runs": _of(_SOURCES, Kind.SOURCE),
    f"GET {_ADMIN_SOURCE}/failures": _of(_SOURCES, Kind.SOURCE),
    f"POST {_ADMIN_SOURCE}/retry": _of(_SOURCES, Kind.SOURCE, 202, json={}),
    f"GET {_ADMIN_SOURCE}/decision": _of(_SOURCES, Kind.SOURCE, 404),
    f"POST {_ADMIN_SOURCE}/accept": _of(_SOURCES, Kind.SOURCE, 409),
    f"POST {_ADMIN_SOURCE}/pause": _of(_SOURCES, Kind.SOURCE, 202),
    f"POST {_ADMIN_SOURCE}/resume": _of(_SOURCES, Kind.SOURCE, 202),
    f"POST {_ADMIN_SOURCE}/cancel": _of(_SOURCES, Kind.SOURCE, 409),
    f"POST {_ADMIN_SOURCE}/refresh": _of(_SOURCES, Kind.SOURCE, 202),
    f"POST {_ADMIN_SOURCE}/prune": _of(_SOURCES, Kind.SOURCE, 202),
    f"POST {_ADMIN_SOURCE}/permissions": _of(_SOURCES, Kind.SOURCE, 202),
    f"POST {_ADMIN_SOURCE}/keep": _of(_SOURCES, Kind.SOURCE, 409),
}
_FOR_ADMINS = {
    "GET /metrics": _of(_METRICS),
    "GET /audit": _of(_ADMIN),
    "GET /api/admin/audit": _of(_ADMIN),
    "GET /api/admin/audit/export": _of(_ADMIN),
    "GET /explain": _of(_ADMIN),
    "GET /explain#document": _of(
        _ADMIN,
        Kind.DOCUMENT,
        missing=200,
        query={"document": OBJECT, "as": "user:bob@example.com"},
    ),
    "POST /api/admin/explain": _of(
        _ADMIN, Kind.DOCUMENT, missing=200, json={"document": OBJECT, "readers": []}
    ),
    "POST /api/admin/look": _of(_ADMIN, Kind.DOCUMENT, json={"document": OBJECT}),
    "POST /look": _of(_ADMIN, Kind.DOCUMENT, form={"document": OBJECT}),
    f"PUT {_ADMIN_SOURCE}/owner": _of(_ADMIN, Kind.SOURCE, json={"email": None}),
    "GET /people": _of(_ACCOUNTS),
    "POST /people/invite": _of(_ACCOUNTS, found=422, form={}),
    "POST /people/withdraw": _of(_ACCOUNTS, Kind.INVITATION, 303, form={"email": OBJECT}),
    "GET /person/{person_id}": _of(_ACCOUNTS, Kind.PERSON),
    "POST /person/{person_id}/password": _of(_ACCOUNTS, Kind.PERSON),
    "POST /person/{person_id}/role": _of(_ACCOUNTS, Kind.PERSON, 303, form={"role": "member"}),
    "POST /person/{person_id}/verify": _of(_ACCOUNTS, Kind.PERSON, 303),
    "POST /person/{person_id}/email": _of(_ACCOUNTS, Kind.PERSON, 422, form={"email": ""}),
    "POST /person/{person_id}/sessions": _of(_ACCOUNTS, Kind.PERSON, 303),
    "POST /person/{person_id}/disable": _of(_ACCOUNTS, Kind.PERSON, 303),
    "POST /person/{person_id}/enable": _of(_ACCOUNTS, Kind.PERSON, 303),
    "GET /groups": _of(_ACCOUNTS),
    "POST /groups": _of(_ACCOUNTS, found=422, form={}),
    "GET /group/{group_id}": _of(_ACCOUNTS, Kind.GROUP),
    "POST /group/{group_id}/rename": _of(_ACCOUNTS, Kind.GROUP, 422, form={}),
    "POST /group/{group_id}/add": _of(
        _ACCOUNTS, Kind.GROUP, 303, form={"email": "bob@example.com"}
    ),
    "POST /group/{group_id}/remove": _of(_ACCOUNTS, Kind.GROUP, 422, form={}),
    "POST /group/{group_id}/delete": _of(_ACCOUNTS, Kind.GROUP, 303),
    "GET /tokens": _of(_ACCOUNTS),
    "POST /tokens": _of(_ACCOUNTS, found=422, form={}),
    "POST /tokens/revoke": _of(_ACCOUNTS, Kind.TOKEN, 303, form={"name": OBJECT}),
}
_FOR_WHO_SETS_MODELS = {
    "GET /models": _of(_ADMIN),
    "POST /models": _of(_ADMIN, found=422, form={}),
    "GET /model/{name}": _of(_ADMIN, Kind.MODEL),
    "POST /model/{name}": _of(_ADMIN, Kind.MODEL, 303, form=_MODEL_FORM),
    # Its key cannot be decrypted.
    "POST /model/{name}/test": _of(_ADMIN, Kind.MODEL, 422),
    "POST /model/{name}/remove": _of(_ADMIN, Kind.MODEL, 303),
    "GET /api/admin/models": _of(_ADMIN),
    "POST /api/admin/models": _of(_ADMIN, found=422, json={}),
    f"PATCH {_MODEL}": _of(_ADMIN, Kind.MODEL, json={}),
    f"DELETE {_MODEL}": _of(_ADMIN, Kind.MODEL, 204),
    f"POST {_MODEL}/test": _of(_ADMIN, Kind.MODEL, 503),
}
_FOR_WHO_HAS_SIGNED_IN = {
    "GET /account": _of(_ACCOUNT),
    "POST /account/session": _of(_ACCOUNT, Kind.SESSION, 303, form={"session": OBJECT}),
    "POST /account/password": _of(_ACCOUNT, found=422, form={}),
    "POST /account/identity": _of(_ACCOUNT, Kind.IDENTITY, 303, form=_IDENTITY),
    "POST /account/tokens": _of(_ACCOUNT, found=422, form={}),
    "POST /account/token": _of(_ACCOUNT, Kind.OWN_TOKEN, 303, form={"name": OBJECT}),
    "POST /sign-in/openid/link": _of(_ACCOUNT, found=422, form={}),
    # The last one: the session has ended then.
    "POST /sign-out": _of(_ACCOUNT, found=303),
}
ROUTES: Mapping[str, Expected] = MappingProxyType(
    _FOR_ANYONE
    | _FOR_READERS
    | _FOR_WHO_CONVERSES
    | _FOR_OWNERS_OF_SOURCES
    | _FOR_ADMINS
    | _FOR_WHO_SETS_MODELS
    | _FOR_WHO_HAS_SIGNED_IN
)
