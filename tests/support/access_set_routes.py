"""The routes of document sets, and those that filter by one."""

from backend.api.authorization import Permission
from tests.support.access_expected import OBJECT, QUESTION, Kind, answers

_SOURCES, _SEARCH, _ASK = Permission.SOURCES, Permission.SEARCH, Permission.ASK
_ALL = "/api/admin/document-sets"
_ONE = f"{_ALL}/{{name}}"
_PAGE = "/set/{name}"
_OF_SOURCE = {"name": OBJECT, "sources": [OBJECT]}
_FORM = {"name": OBJECT, "source": OBJECT}
_FILTER = {"sets": [OBJECT]}

ROUTES_OF_SETS = {
    "GET /sets": answers(_SOURCES),
    "GET /sets/table": answers(_SOURCES),
    "POST /sets": answers(_SOURCES, found=422, form={}),
    "POST /sets#source": answers(_SOURCES, Kind.SOURCE, 303, missing=422, form=_FORM),
    f"GET {_PAGE}": answers(_SOURCES, Kind.DOCUMENT_SET),
    f"GET {_PAGE}#mixed": answers(_SOURCES, Kind.MIXED_SET),
    f"GET {_PAGE}/state": answers(_SOURCES, Kind.DOCUMENT_SET),
    f"GET {_PAGE}/state#mixed": answers(_SOURCES, Kind.MIXED_SET),
    f"POST {_PAGE}": answers(_SOURCES, Kind.SET_BY_OWN_SOURCE, 303, form=_FORM),
    f"POST {_PAGE}#source": answers(_SOURCES, Kind.SOURCE_OF_OWN_SET, 303, missing=422, form=_FORM),
    f"POST {_PAGE}#mixed": answers(_SOURCES, Kind.MIXED_SET, 422, form={}),
    f"POST {_PAGE}/remove": answers(_SOURCES, Kind.DOCUMENT_SET, 303),
    f"POST {_PAGE}/remove#mixed": answers(_SOURCES, Kind.MIXED_SET, 303),
    f"GET {_ALL}": answers(_SOURCES),
    f"POST {_ALL}": answers(_SOURCES, found=422, json={}),
    f"POST {_ALL}#source": answers(_SOURCES, Kind.SOURCE, 201, json=_OF_SOURCE),
    f"POST {_ALL}/count": answers(_SOURCES, found=422, json={}),
    f"POST {_ALL}/count#source": answers(_SOURCES, Kind.SOURCE, json={"sources": [OBJECT]}),
    f"GET {_ONE}": answers(_SOURCES, Kind.DOCUMENT_SET),
    f"GET {_ONE}#mixed": answers(_SOURCES, Kind.MIXED_SET),
    f"PUT {_ONE}": answers(_SOURCES, Kind.SET_BY_OWN_SOURCE, json=_OF_SOURCE),
    f"PUT {_ONE}#source": answers(_SOURCES, Kind.SOURCE_OF_OWN_SET, json=_OF_SOURCE),
    f"DELETE {_ONE}": answers(_SOURCES, Kind.DOCUMENT_SET, 204),
    f"DELETE {_ONE}#mixed": answers(_SOURCES, Kind.MIXED_SET, 204),
    "GET /api/document-sets": answers(_SEARCH),
    "GET /results#set": answers(
        _SEARCH, Kind.FILTERED_SET, missing=200, query={"q": "leave", "set": OBJECT}
    ),
    "GET /results#set-words": answers(
        _SEARCH, Kind.FILTERED_SET, missing=200, query={"q": f"leave set:{OBJECT}"}
    ),
    "POST /api/search#set": answers(
        _SEARCH, Kind.FILTERED_SET, missing=200, json={"query": "leave", "filters": _FILTER}
    ),
    "POST /api/ask#set": answers(
        _ASK, Kind.FILTERED_SET, missing=200, json={"question": QUESTION, "filters": _FILTER}
    ),
}
