"""The routes of assistants, and those that ask one."""

from collections.abc import Mapping
from typing import Any

from backend.api.authorization import Permission
from tests.support.access_expected import OBJECT, QUESTION, Expected, Kind, answers, answers_people

_ASK, _SEARCH = Permission.ASK, Permission.SEARCH
_ONE = "/api/assistants/{assistant_id}"
_PAGE = "/assistants/{assistant_id}"
_DESK = {"name": "Travel desk"}
_NEW = {"name": "New name"}
_COMPLETION = {"model": OBJECT, "messages": [{"role": "user", "content": QUESTION}]}
_TRY = {"assistant": {}, "question": QUESTION}
_KINDS: Mapping[str, Kind] = {
    "": Kind.ASSISTANT,
    "#group": Kind.GROUP_ASSISTANT,
    "#shared": Kind.SHARED_ASSISTANT,
}


def _of_each(route: str, permission: Permission = _ASK, **more: Any) -> dict[str, Expected]:
    """It may be used by whom its visibility says."""
    return {f"{route}{mark}": answers(permission, kind, **more) for mark, kind in _KINDS.items()}


def _of_own(route: str, found: int, **more: Any) -> dict[str, Expected]:
    """Its owner changes it; one that is shared, admins."""
    return {
        route: answers(_ASK, Kind.ASSISTANT, found, **more),
        f"{route}#group": answers(_ASK, Kind.GROUP_ASSISTANT, 403, admin=found, **more),
        f"{route}#shared": answers(_ASK, Kind.SHARED_ASSISTANT, 403, admin=found, **more),
    }


def _of_asking(
    route: str, permission: Permission, body: Mapping[str, object]
) -> dict[str, Expected]:
    return {
        f"{route}#assistant{mark}": answers(permission, kind, json={**body, "assistant": OBJECT})
        for mark, kind in _KINDS.items()
    }


ROUTES_OF_ASSISTANTS = {
    "GET /assistants": answers(_ASK),
    "GET /assistants/new": answers(_ASK),
    **_of_each(f"GET {_PAGE}"),
    "GET /api/assistants": answers(_ASK),
    "POST /api/assistants": answers_people(found=201, json=_DESK),
    "POST /api/assistants#source": answers_people(
        Kind.FILTERED_SOURCE, 201, missing=422, json=_DESK | {"sources": [OBJECT]}
    ),
    "POST /api/assistants/try": answers(_ASK, json=_TRY),
    "POST /api/assistants/try#source": answers(
        _ASK,
        Kind.FILTERED_SOURCE,
        missing=422,
        json=_TRY | {"assistant": {"sources": [OBJECT]}},
    ),
    **_of_each("POST /api/assistants/try#assistant", json=_TRY | {"assistant_id": OBJECT}),
    **_of_each(f"GET {_ONE}"),
    **_of_own(f"PATCH {_ONE}", 200, json=_NEW),
    **_of_own(f"DELETE {_ONE}", 204),
    **_of_asking("POST /api/search", _SEARCH, {"query": "leave"}),
    **_of_asking("POST /api/ask", _ASK, {"question": QUESTION}),
    **_of_each("GET /v1/models/{model}"),
    **_of_each("POST /v1/chat/completions#assistant", json=_COMPLETION),
    **_of_each("POST /v1/responses#assistant", json={"model": OBJECT, "input": QUESTION}),
    "POST /api/conversations#assistant": answers_people(
        Kind.ASSISTANT, 202, json={"question": QUESTION, "assistant_id": OBJECT}
    ),
    "PATCH /api/conversations/{conversation_id}#assistant": answers_people(
        Kind.ASSISTANT_IN_OWN, json={"assistant_id": OBJECT}
    ),
}
