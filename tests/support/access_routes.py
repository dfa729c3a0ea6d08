"""Every route with its rule, the object that a request to it names, and how one that exists is answered.

The rules stand here a second time, apart from the routes: a route that loses its own is told from its neighbors.
"""

from collections.abc import Mapping
from types import MappingProxyType

from backend.api.authorization import Permission
from tests.support.access_assistant_routes import ROUTES_OF_ASSISTANTS
from tests.support.access_conversation_routes import (
    ROUTES_OF_CONVERSATIONS,
    ROUTES_OF_FILES,
    ROUTES_OF_KNOWLEDGE,
    ROUTES_OF_MEMORIES,
    ROUTES_OF_PROJECTS,
    ROUTES_OF_RESEARCH,
    ROUTES_OF_SHARED_FILES,
    ROUTES_OF_SHARING,
)
from tests.support.access_expected import (
    ISSUER,
    MODEL_ADDRESS,
    OBJECT,
    QUESTION,
    Expected,
    Kind,
    answers,
)
from tests.support.access_ingest_routes import ROUTES_OF_INGESTION
from tests.support.access_oauth_routes import ROUTES_OF_OAUTH
from tests.support.access_set_routes import ROUTES_OF_SETS
from tests.support.access_web_routes import ROUTES_OF_WEB_SEARCH

_ANYONE, _SEARCH, _ASK = Permission.ANYONE, Permission.SEARCH, Permission.ASK
_SOURCES, _ADMIN, _METRICS = Permission.SOURCES, Permission.ADMIN, Permission.METRICS
_ACCOUNTS, _ACCOUNT = Permission.ACCOUNTS, Permission.ACCOUNT
_ADMIN_SOURCE = "/api/admin/sources/{name}"
_SOURCE_ACCOUNT = "/api/admin/source-accounts/{account_id}"
_FOLDER = {"kind": "folder", "settings": {"path": "/nowhere"}}
_FILTER = {"sources": [OBJECT]}
_MODEL = "/api/admin/models/{name}"
_MODEL_FORM = {
    "name": OBJECT,
    "base_url": MODEL_ADDRESS,
    "model": "large",
    "context_window": "32000",
}
_COMPLETION = {"model": "default", "messages": [{"role": "user", "content": QUESTION}]}
_IDENTITY = {"issuer": ISSUER, "subject": OBJECT}

# A route beside itself with something else in its query or body has a mark, which is not sent.
_FOR_ANYONE = {
    "GET /favicon.ico": answers(_ANYONE, found=307),
    "GET /healthz": answers(_ANYONE),
    "GET /readyz": answers(_ANYONE),
    "GET /llms.txt": answers(_ANYONE),
    "GET /static/{version}/{name}": answers(_ANYONE),
    "GET /link": answers(_ANYONE, found=303),
    "GET /sign-in": answers(_ANYONE, signed_in=303),
    "POST /sign-in": answers(_ANYONE, found=401, form={"email": f"{OBJECT}@example.com"}),
    "GET /sign-in/openid": answers(_ANYONE, found=503),
    "GET /sign-in/openid/continue": answers(_ANYONE),
    "GET /sign-in/openid/callback": answers(_ANYONE, found=403),
    "GET /invitation": answers(_ANYONE, Kind.INVITATION_CODE, query={"code": OBJECT}),
    "POST /invitation": answers(_ANYONE, Kind.INVITATION_CODE, 422, form={"code": OBJECT}),
    "GET /password-reset": answers(_ANYONE, Kind.RESET_CODE, query={"code": OBJECT}),
    "POST /password-reset": answers(_ANYONE, Kind.RESET_CODE, 422, form={"code": OBJECT}),
}
_FOR_READERS = {
    "GET /": answers(_SEARCH),
    "GET /results": answers(_SEARCH),
    "GET /results#source": answers(
        _SEARCH, Kind.FILTERED_SOURCE, missing=200, query={"q": "leave", "source": OBJECT}
    ),
    "GET /results#words": answers(
        _SEARCH, Kind.FILTERED_SOURCE, missing=200, query={"q": f"leave source:{OBJECT}"}
    ),
    "GET /ask": answers(_SEARCH),
    "GET /openapi.json": answers(_SEARCH),
    "GET /document/{document_id:path}": answers(_SEARCH, Kind.DOCUMENT),
    "GET /api/documents": answers(_SEARCH),
    "GET /api/documents#source": answers(
        _SEARCH, Kind.FILTERED_SOURCE, missing=200, query={"source": OBJECT}
    ),
    "GET /api/documents/{document_id:path}": answers(_SEARCH, Kind.DOCUMENT),
    "GET /api/documents/{document_id:path}/original": answers(_SEARCH, Kind.DOCUMENT),
    # It is no PDF file, which the body says.
    "GET /api/documents/{document_id:path}/pages/{number}": answers(_SEARCH, Kind.DOCUMENT, 404),
    "POST /api/search": answers(_SEARCH, json={"query": "leave"}),
    "POST /api/search#source": answers(
        _SEARCH,
        Kind.FILTERED_SOURCE,
        missing=200,
        json={"query": "leave", "filters": _FILTER},
    ),
    "POST /api/references": answers(
        _ASK, json={"text": QUESTION, "sources": [{"text": "Leave is 25 days."}]}
    ),
    "POST /api/references#document": answers(
        _ASK,
        Kind.DOCUMENT,
        json={"text": QUESTION, "sources": [{"document_id": OBJECT}]},
    ),
    # It speaks to those who take its two media types.
    "POST /mcp": answers(_SEARCH, found=406, json={}),
    "GET /v1/models": answers(_ASK),
    "POST /v1/chat/completions": answers(_ASK, json=_COMPLETION),
    "POST /v1/chat/completions#stream": answers(_ASK, json=_COMPLETION | {"stream": True}),
    "POST /v1/responses": answers(_ASK, json={"model": "default", "input": QUESTION}),
    "POST /v1/embeddings": answers(_SEARCH, json={"model": "default", "input": "leave"}),
    "POST /api/ask": answers(_ASK, json={"question": QUESTION}),
    "POST /api/ask#source": answers(
        _ASK,
        Kind.FILTERED_SOURCE,
        missing=200,
        json={"question": QUESTION, "filters": _FILTER},
    ),
}
_FOR_OWNERS_OF_SOURCES = {
    "GET /sources": answers(_SOURCES),
    "GET /sources/table": answers(_SOURCES),
    "GET /source/{name}": answers(_SOURCES, Kind.SOURCE),
    "GET /source/{name}/state": answers(_SOURCES, Kind.SOURCE),
    "GET /source/{name}/decision": answers(_SOURCES, Kind.SOURCE, 303),
    "GET /api/sources": answers(_SOURCES),
    "POST /api/sources": answers(_SOURCES, found=422, json=_FOLDER),
    "POST /api/sources/{name}/sync": answers(_SOURCES, Kind.SOURCE),
    "GET /api/failures": answers(_SOURCES),
    "GET /api/failures#source": answers(
        _SOURCES, Kind.SOURCE, missing=200, query={"source": OBJECT}
    ),
    "GET /api/admin/kinds": answers(_SOURCES),
    "GET /api/admin/sources": answers(_SOURCES),
    f"GET {_ADMIN_SOURCE}/accounts": answers(_SOURCES, Kind.SOURCE),
    "GET /api/admin/source-accounts": answers(_SOURCES),
    "GET /source-accounts": answers(_SOURCES),
    "POST /source-account/{account_id}/approve": answers(
        _SOURCES, Kind.SOURCE_ACCOUNT, 303, managers_own=422
    ),
    "POST /source-account/{account_id}/withdraw": answers(_SOURCES, Kind.SOURCE_ACCOUNT, 303),
    f"POST {_SOURCE_ACCOUNT}/approve": answers(_SOURCES, Kind.SOURCE_ACCOUNT, managers_own=409),
    f"DELETE {_SOURCE_ACCOUNT}": answers(_SOURCES, Kind.SOURCE_ACCOUNT, 204),
    "POST /api/admin/sources": answers(_SOURCES, found=422, json=_FOLDER),
    f"GET {_ADMIN_SOURCE}": answers(_SOURCES, Kind.SOURCE),
    f"PATCH {_ADMIN_SOURCE}": answers(_SOURCES, Kind.SOURCE, json={}),
    f"DELETE {_ADMIN_SOURCE}": answers(_SOURCES, Kind.SOURCE, 202),
    f"PUT {_ADMIN_SOURCE}/schedule": answers(_SOURCES, Kind.SOURCE, json={"incremental": 3_600}),
    f"POST {_ADMIN_SOURCE}/test": answers(_SOURCES, Kind.SOURCE),
    f"GET {_ADMIN_SOURCE}/runs": answers(_SOURCES, Kind.SOURCE),
    f"GET {_ADMIN_SOURCE}/failures": answers(_SOURCES, Kind.SOURCE),
    f"POST {_ADMIN_SOURCE}/retry": answers(_SOURCES, Kind.SOURCE, 202, json={}),
    f"GET {_ADMIN_SOURCE}/decision": answers(_SOURCES, Kind.SOURCE, 404),
    f"POST {_ADMIN_SOURCE}/accept": answers(_SOURCES, Kind.SOURCE, 409),
    f"POST {_ADMIN_SOURCE}/pause": answers(_SOURCES, Kind.SOURCE, 202),
    f"POST {_ADMIN_SOURCE}/resume": answers(_SOURCES, Kind.SOURCE, 202),
    f"POST {_ADMIN_SOURCE}/cancel": answers(_SOURCES, Kind.SOURCE, 409),
    f"POST {_ADMIN_SOURCE}/refresh": answers(_SOURCES, Kind.SOURCE, 202),
    f"POST {_ADMIN_SOURCE}/prune": answers(_SOURCES, Kind.SOURCE, 202),
    f"POST {_ADMIN_SOURCE}/permissions": answers(_SOURCES, Kind.SOURCE, 202),
    f"POST {_ADMIN_SOURCE}/keep": answers(_SOURCES, Kind.SOURCE, 409),
}
_FOR_ADMINS = {
    "GET /metrics": answers(_METRICS),
    "GET /audit": answers(_ADMIN),
    "GET /api/admin/audit": answers(_ADMIN),
    "GET /api/admin/audit/export": answers(_ADMIN),
    "GET /explain": answers(_ADMIN),
    "GET /explain#document": answers(
        _ADMIN,
        Kind.DOCUMENT,
        missing=200,
        query={"document": OBJECT, "as": "user:bob@example.com"},
    ),
    "POST /api/admin/explain": answers(
        _ADMIN, Kind.DOCUMENT, missing=200, json={"document": OBJECT, "readers": []}
    ),
    "POST /api/admin/look": answers(_ADMIN, Kind.DOCUMENT, json={"document": OBJECT}),
    "POST /look": answers(_ADMIN, Kind.DOCUMENT, form={"document": OBJECT}),
    f"PUT {_ADMIN_SOURCE}/owner": answers(_ADMIN, Kind.SOURCE, json={"email": None}),
    "POST /source-accounts": answers(_ADMIN, found=422, form={}),
    "POST /api/admin/source-accounts": answers(_ADMIN, found=422, json={}),
    "GET /people": answers(_ACCOUNTS),
    "POST /people/invite": answers(_ACCOUNTS, found=422, form={}),
    "POST /people/withdraw": answers(_ACCOUNTS, Kind.INVITATION, 303, form={"email": OBJECT}),
    "GET /person/{person_id}": answers(_ACCOUNTS, Kind.PERSON),
    "POST /person/{person_id}/password": answers(_ACCOUNTS, Kind.PERSON),
    "POST /person/{person_id}/role": answers(_ACCOUNTS, Kind.PERSON, 303, form={"role": "member"}),
    "POST /person/{person_id}/verify": answers(_ACCOUNTS, Kind.PERSON, 303),
    "POST /person/{person_id}/email": answers(_ACCOUNTS, Kind.PERSON, 422, form={"email": ""}),
    "POST /person/{person_id}/sessions": answers(_ACCOUNTS, Kind.PERSON, 303),
    "POST /person/{person_id}/disable": answers(_ACCOUNTS, Kind.PERSON, 303),
    "POST /person/{person_id}/enable": answers(_ACCOUNTS, Kind.PERSON, 303),
    "GET /groups": answers(_ACCOUNTS),
    "POST /groups": answers(_ACCOUNTS, found=422, form={}),
    "GET /group/{group_id}": answers(_ACCOUNTS, Kind.GROUP),
    "POST /group/{group_id}/rename": answers(_ACCOUNTS, Kind.GROUP, 422, form={}),
    "POST /group/{group_id}/add": answers(
        _ACCOUNTS, Kind.GROUP, 303, form={"email": "bob@example.com"}
    ),
    "POST /group/{group_id}/remove": answers(_ACCOUNTS, Kind.GROUP, 422, form={}),
    "POST /group/{group_id}/delete": answers(_ACCOUNTS, Kind.GROUP, 303),
    "GET /tokens": answers(_ACCOUNTS),
    "POST /tokens": answers(_ACCOUNTS, found=422, form={}),
    "POST /tokens/revoke": answers(_ACCOUNTS, Kind.TOKEN, 303, form={"name": OBJECT}),
}
_FOR_WHO_SETS_MODELS = {
    "GET /models": answers(_ADMIN),
    "POST /models": answers(_ADMIN, found=422, form={}),
    "GET /model/{name}": answers(_ADMIN, Kind.MODEL),
    "POST /model/{name}": answers(_ADMIN, Kind.MODEL, 303, form=_MODEL_FORM),
    # Its key cannot be decrypted.
    "POST /model/{name}/test": answers(_ADMIN, Kind.MODEL, 422),
    "POST /model/{name}/remove": answers(_ADMIN, Kind.MODEL, 303),
    "POST /models/budget": answers(_ADMIN, found=422, form={}),
    "POST /models/person-budget": answers(_ADMIN, found=422, form={}),
    "GET /api/admin/token-budgets": answers(_ADMIN),
    "PUT /api/admin/token-budgets/{group_id}": answers(_ADMIN, Kind.GROUP, json={"tokens": 5}),
    "GET /api/admin/person-token-budgets": answers(_ADMIN),
    "PUT /api/admin/person-token-budgets": answers(_ADMIN, found=422, json={}),
    "GET /api/admin/models": answers(_ADMIN),
    "POST /api/admin/models": answers(_ADMIN, found=422, json={}),
    f"PATCH {_MODEL}": answers(_ADMIN, Kind.MODEL, json={}),
    f"DELETE {_MODEL}": answers(_ADMIN, Kind.MODEL, 204),
    f"POST {_MODEL}/test": answers(_ADMIN, Kind.MODEL, 503),
}
_FOR_WHO_HAS_SIGNED_IN = {
    "GET /account": answers(_ACCOUNT),
    "POST /account/language": answers(_ACCOUNT, found=303, form={"language": "zh"}),
    "POST /account/session": answers(_ACCOUNT, Kind.SESSION, 303, form={"session": OBJECT}),
    "POST /account/password": answers(_ACCOUNT, found=422, form={}),
    "POST /account/identity": answers(_ACCOUNT, Kind.IDENTITY, 303, form=_IDENTITY),
    "POST /account/source-accounts": answers(_ACCOUNT, found=422, form={}),
    "POST /account/source-account": answers(
        _ACCOUNT, Kind.SOURCE_ACCOUNT, 303, form={"account_id": OBJECT}
    ),
    "POST /account/tokens": answers(_ACCOUNT, found=422, form={}),
    "POST /account/token": answers(_ACCOUNT, Kind.OWN_TOKEN, 303, form={"name": OBJECT}),
    "GET /api/source-accounts": answers(_ACCOUNT),
    "POST /api/source-accounts": answers(_ACCOUNT, found=422, json={}),
    "DELETE /api/source-accounts/{account_id}": answers(_ACCOUNT, Kind.SOURCE_ACCOUNT, 204),
    "POST /sign-in/openid/link": answers(_ACCOUNT, found=422, form={}),
    # The last one: the session has ended then.
    "POST /sign-out": answers(_ACCOUNT, found=303),
}
ROUTES: Mapping[str, Expected] = MappingProxyType(
    _FOR_ANYONE
    | _FOR_READERS
    | ROUTES_OF_CONVERSATIONS
    | ROUTES_OF_SHARING
    | ROUTES_OF_PROJECTS
    | ROUTES_OF_FILES
    | ROUTES_OF_MEMORIES
    | ROUTES_OF_RESEARCH
    | ROUTES_OF_KNOWLEDGE
    | ROUTES_OF_SHARED_FILES
    | ROUTES_OF_ASSISTANTS
    | _FOR_OWNERS_OF_SOURCES
    | ROUTES_OF_INGESTION
    | ROUTES_OF_SETS
    | _FOR_ADMINS
    | _FOR_WHO_SETS_MODELS
    | ROUTES_OF_WEB_SEARCH
    | ROUTES_OF_OAUTH
    | _FOR_WHO_HAS_SIGNED_IN
)
