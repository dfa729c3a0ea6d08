"""Every route of the server, asked by everybody for what is theirs, another's, and missing.

The table of routes is compared with the router: a route that is added fails here until it has its place.
"""

import inspect
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, get_args
from urllib.parse import quote

import pytest
from fastapi.routing import iter_route_contexts
from httpx2 import Response

from backend.access.api_tokens import TokenScope
from backend.api.app import Api
from backend.api.authorization import Permission, get_permission
from backend.api.cross_origin import ENDPOINTS
from tests.support.access_actors import SERVICE, Actor, Relation
from tests.support.access_expected import OBJECT, Expected, Kind
from tests.support.access_requests import ask, read_status
from tests.support.access_routes import ROUTES
from tests.support.access_serving import make_world
from tests.support.access_world import World

PEOPLE = frozenset({"ann", "bob", "eve", "sam"})
OWNERS = ("ann", "bob", "sam", "service")
TOKENS = frozenset(f"{owner} {scope}" for owner in OWNERS for scope in TokenScope)
NOBODY = frozenset(
    {"nobody", "ended session", "disabled session", "disabled token", "machine secret", "machine session"}
)  # fmt: skip
EVERYBODY = PEOPLE | TOKENS | NOBODY
NONE: frozenset[str] = frozenset()
ADMINS = frozenset({"ann", "ann admin", "service admin"})
MANAGERS = frozenset({"sam", "sam admin"})
INGESTING_ADMINS = frozenset({"ann", "ann ingest", "service ingest"})

MAY: Mapping[Permission, frozenset[str]] = MappingProxyType(
    {
        Permission.ANYONE: EVERYBODY,
        Permission.SEARCH: PEOPLE | {f"{owner} search" for owner in OWNERS},
        Permission.ASK: PEOPLE | {f"{owner} ask" for owner in OWNERS},
        Permission.SOURCES: ADMINS | MANAGERS,
        Permission.ADMIN: ADMINS,
        Permission.METRICS: frozenset({"ann", "ann metrics", "service metrics"}),
        Permission.INGEST: frozenset({"ann", "ann ingest", "service ingest", "sam", "sam ingest"}),
        Permission.ACCOUNTS: frozenset({"ann"}),
        Permission.ACCOUNT: PEOPLE,
    }
)
"""Who reaches a route."""
FIND_ANOTHERS: Mapping[tuple[Permission, Kind], frozenset[str]] = MappingProxyType(
    {
        (Permission.SEARCH, Kind.DOCUMENT): NONE,
        (Permission.SEARCH, Kind.FILTERED_SOURCE): NONE,
        (Permission.ASK, Kind.FILTERED_SOURCE): NONE,
        (Permission.ASK, Kind.DOCUMENT): NONE,
        (Permission.SOURCES, Kind.SOURCE): ADMINS,
        (Permission.INGEST, Kind.INGEST_SOURCE): INGESTING_ADMINS,
        (Permission.INGEST, Kind.PUSHED_DOCUMENT): INGESTING_ADMINS,
        (Permission.ADMIN, Kind.SOURCE): ADMINS,
        (Permission.ADMIN, Kind.DOCUMENT): ADMINS,
        (Permission.ADMIN, Kind.MODEL): ADMINS,
        (Permission.ADMIN, Kind.GROUP): ADMINS,
        (Permission.ADMIN, Kind.WEB_PROVIDER): ADMINS,
        # Also not for admins.
        (Permission.ASK, Kind.CONVERSATION): NONE,
        (Permission.ASK, Kind.MESSAGE): NONE,
        (Permission.ASK, Kind.MESSAGE_IN_OWN): NONE,
        (Permission.ASK, Kind.FILE): NONE,
        (Permission.ASK, Kind.MEMORY): NONE,
        (Permission.ASK, Kind.RESEARCH): NONE,
        (Permission.ASK, Kind.KNOWLEDGE): NONE,
        (Permission.ASK, Kind.PROJECT_FILE): NONE,
        (Permission.ASK, Kind.JOINED_PROJECT_FILE): NONE,
        (Permission.ASK, Kind.FILE_FOR_OWN_PROJECT): NONE,
        (Permission.ASK, Kind.PROJECT): NONE,
        (Permission.ASK, Kind.JOINED_PROJECT): NONE,
        (Permission.ASK, Kind.PROJECT_CONVERSATION): NONE,
        (Permission.ASK, Kind.PROJECT_CONVERSATION_IN_OWN): NONE,
        (Permission.ASK, Kind.PROJECT_MESSAGE): NONE,
        (Permission.ASK, Kind.PROJECT_MESSAGE_IN_OWN): NONE,
        (Permission.ASK, Kind.PROJECT_OF_OWN_CONVERSATION): NONE,
        (Permission.ASK, Kind.PROJECT_MEMBER): NONE,
        (Permission.ASK, Kind.PROJECT_MEMBER_IN_OWN): NONE,
        (Permission.ASK, Kind.ASSISTANT): NONE,
        (Permission.ASK, Kind.ASSISTANT_FILE): NONE,
        (Permission.ASK, Kind.FILE_FOR_OWN_ASSISTANT): NONE,
        (Permission.ASK, Kind.ASSISTANT_IN_OWN): NONE,
        (Permission.SEARCH, Kind.ASSISTANT): NONE,
        # Admins look after what is shared.
        (Permission.ASK, Kind.GROUP_ASSISTANT): frozenset({"ann"}),
        (Permission.SEARCH, Kind.GROUP_ASSISTANT): frozenset({"ann"}),
        (Permission.ASK, Kind.SHARED_ASSISTANT): EVERYBODY,
        (Permission.SEARCH, Kind.SHARED_ASSISTANT): EVERYBODY,
        # Of whoever has the link, and has signed in.
        (Permission.ASK, Kind.SHARE): EVERYBODY,
        (Permission.ASK, Kind.ENDED_SHARE): NONE,
        (Permission.SOURCES, Kind.DOCUMENT_SET): ADMINS,
        (Permission.SOURCES, Kind.MIXED_SET): ADMINS,
        (Permission.SOURCES, Kind.SET_BY_OWN_SOURCE): ADMINS,
        (Permission.SOURCES, Kind.SOURCE_OF_OWN_SET): ADMINS,
        (Permission.SEARCH, Kind.FILTERED_SET): NONE,
        (Permission.ASK, Kind.FILTERED_SET): NONE,
        (Permission.ACCOUNTS, Kind.PERSON): ADMINS,
        (Permission.ACCOUNTS, Kind.GROUP): ADMINS,
        (Permission.ACCOUNTS, Kind.INVITATION): ADMINS,
        (Permission.ACCOUNTS, Kind.TOKEN): ADMINS,
        (Permission.ACCOUNTS, Kind.OAUTH_CLIENT): ADMINS,
        (Permission.ACCOUNT, Kind.CONNECTED_PROGRAM): NONE,
        (Permission.ACCOUNT, Kind.SESSION): NONE,
        (Permission.ACCOUNT, Kind.SOURCE_ACCOUNT): NONE,
        (Permission.SOURCES, Kind.SOURCE_ACCOUNT): ADMINS,
        (Permission.ACCOUNT, Kind.OWN_TOKEN): NONE,
        (Permission.ACCOUNT, Kind.IDENTITY): NONE,
        # A code is of whoever has it.
        (Permission.ANYONE, Kind.INVITATION_CODE): EVERYBODY,
        (Permission.ANYONE, Kind.RESET_CODE): EVERYBODY,
    }
)
"""For whom another's object exists, of those who reach the route."""
OF_SERVICES = frozenset(name for name in TOKENS if name.startswith(SERVICE))
FIND_OWN: Mapping[Kind, frozenset[str]] = MappingProxyType(
    {
        Kind.ASSISTANT: EVERYBODY - OF_SERVICES,
        Kind.ASSISTANT_IN_OWN: EVERYBODY - OF_SERVICES,
        Kind.GROUP_ASSISTANT: EVERYBODY - OF_SERVICES,
        Kind.MIXED_SET: ADMINS,
        Kind.ENDED_SHARE: NONE,
    }
)
"""For whom an own object exists, where that is not everybody."""
RELATIONS: tuple[Relation, ...] = ("own", "another's", "missing")
PROOF = "x-csrf-token"
NOT_FROM_ITS_PAGE = "The request does not come from a page of this session."
FROM_ELSEWHERE = "Quarry answers only its own pages and programs of this machine"
CHANGING = {"POST", "PUT", "PATCH", "DELETE"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with make_world(tmp_path_factory.mktemp("world")) as made:
        yield made


def list_routes(app: Api) -> Iterator[tuple[str, Permission | None]]:
    """Yield every method and path of the router with its rule; one with a choice of actions once for each."""
    for context in iter_route_contexts(app.routes):
        route = context.original_route
        endpoint, path = getattr(route, "endpoint", None), getattr(route, "path", "")
        for method in getattr(route, "methods", None) or ("GET",):
            for action in _list_actions(endpoint) if "{action}" in path else ("",):
                yield f"{method} {path.replace('{action}', action)}", get_permission(endpoint)


def _list_actions(endpoint: Any) -> tuple[str, ...]:
    return get_args(inspect.signature(endpoint).parameters["action"].annotation)


def read_answer(answer: Response, named: str) -> tuple[int, str, dict[str, str]]:
    """Return all of an answer that could tell one object from another, without what the asker sent."""
    own = {"content-length", "x-request-id"}
    headers = {name: value for name, value in answer.headers.items() if name not in own}
    return (
        answer.status_code,
        _leave_out(answer.text, named),
        {name: _leave_out(value, named) for name, value in headers.items()},
    )


def _leave_out(text: str, named: str) -> str:
    for part in named.split("/"):
        text = re.sub(_spell(part), OBJECT, text) if part else text
    return re.sub(r'"seconds":\s?[\d.e-]+', "", text)


def _spell(part: str) -> str:
    if part.isdecimal():
        # Any number may stand in a page, but what was sent stands in an address.
        return rf"((?<=/)|(?<=%2F)|(?<=%3D)){part}(?!\w)"
    quoted = quote(part, safe="")
    spelled = map(re.escape, (quote(quoted, safe=""), quoted, quote(part), part))
    # One new name may begin with another.
    return rf"({'|'.join(spelled)})(?!\d)"


def expect(actor: Actor, expected: Expected, relation: Relation) -> int:
    if not may_reach(actor, expected):
        return 401 if actor.name in NOBODY else 403
    if expected.signed_in and actor.name in PEOPLE:
        return expected.signed_in
    if not finds(actor, expected, relation):
        return expected.missing
    if expected.managers_own and relation == "own" and actor.name in MANAGERS:
        return expected.managers_own
    return expected.admin if expected.admin and actor.name == "ann" else expected.found


def list_relations(actor: Actor, expected: Expected) -> tuple[Relation, ...]:
    """Who is refused before an object is looked for is asked for one that exists, and for one that does not."""
    if expected.kind is Kind.NOTHING:
        return ("own",)
    return RELATIONS if may_reach(actor, expected) else ("own", "missing")


def may_reach(actor: Actor, expected: Expected) -> bool:
    is_refused = expected.of_people and actor.owner == SERVICE
    return actor.name in MAY[expected.permission] and not is_refused


def finds(actor: Actor, expected: Expected, relation: Relation) -> bool:
    """Whether the object exists for an actor who reaches the route."""
    if relation == "own":
        return actor.name in FIND_OWN.get(expected.kind, EVERYBODY)
    anothers = FIND_ANOTHERS[expected.permission, expected.kind]
    return relation == "another's" and actor.name in anothers


def test_every_route_is_in_the_table_with_its_rule(world: World) -> None:
    known = {name: one.permission for name, one in ROUTES.items() if "#" not in name}
    assert dict(list_routes(world.app)) == known
    assert {(one.permission, one.kind) for one in ROUTES.values() if one.kind is not Kind.NOTHING} == set(FIND_ANOTHERS)  # fmt: skip


@pytest.mark.soak("slow")
@pytest.mark.parametrize("name", sorted(EVERYBODY))
def test_each_is_answered_as_the_table_says(world: World, name: str) -> None:
    actor = world.make_actor(name)
    before = world.record_state(actor)
    actual, right = {}, {}
    for route, expected in ROUTES.items():
        hidden = []
        for relation in list_relations(actor, expected):
            may = may_reach(actor, expected) and finds(actor, expected, relation)
            # Sharing makes conversations of the other person, which are compared.
            is_shared = expected.kind is Kind.SHARE and relation == "another's"
            is_new = may and not is_shared
            named = (world.make_object if is_new else world.find_object)(
                expected.kind, relation, actor
            )
            answer = ask(world, actor, route, named)
            cell = (route, relation)
            actual[cell], right[cell] = read_status(answer), expect(actor, expected, relation)
            if not may:
                hidden.append(read_answer(answer, named))
        assert hidden == hidden[:1] * len(hidden), route
    wrong = {cell: status for cell, status in actual.items() if status != right[cell]}
    assert wrong == {}
    # With the scope of ingestion, admins put documents into the sources of everybody.
    if name not in ADMINS | INGESTING_ADMINS:
        assert world.record_state(actor) == before


def list_changing() -> list[str]:
    """Return the routes that change something for whoever has signed in."""
    return [
        route
        for route, expected in ROUTES.items()
        if route.partition(" ")[0] in CHANGING and expected.permission is not Permission.ANYONE
    ]


@pytest.mark.parametrize(
    "proof",
    [
        "none",
        pytest.param("of another session", marks=pytest.mark.soak("slow")),
        pytest.param("empty", marks=pytest.mark.soak("slow")),
    ],
)
def test_a_session_changes_nothing_without_its_proof(world: World, proof: str) -> None:
    ann, bob = world.make_actor("ann"), world.make_actor("bob")
    given = {"none": {}, "empty": {PROOF: ""}, "of another session": {PROOF: bob.headers[PROOF]}}
    without = {name: value for name, value in ann.headers.items() if name != PROOF}
    unproven = Actor("ann", MappingProxyType(without | given[proof]))
    assert refusals(world, unproven, list_changing()) == {NOT_FROM_ITS_PAGE}


@pytest.mark.soak("slow")
@pytest.mark.parametrize(
    "headers",
    [{"origin": "https://evil.example.com"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}],
)
def test_a_page_of_elsewhere_changes_nothing(world: World, headers: dict[str, str]) -> None:
    """Not even with the proof, and nothing that is open to anyone but where programs of other sites get their tokens."""
    ann = world.make_actor("ann")
    foreign = Actor("ann", MappingProxyType({**ann.headers, **headers}))
    for_programs = {f"POST {path}" for path in ENDPOINTS}
    routes = [
        route
        for route in ROUTES
        if route.partition(" ")[0] in CHANGING and route not in for_programs
    ]
    assert len(routes) > len(list_changing()) > 60
    assert refusals(world, foreign, routes) == {FROM_ELSEWHERE}


def refusals(world: World, actor: Actor, routes: list[str]) -> set[str]:
    """Return the sentences by which routes refuse; anything else that they answer, as it is."""
    found = set()
    for route in routes:
        answer = ask(world, actor, route, world.find_object(ROUTES[route].kind, "own", actor))
        known = [one for one in (NOT_FROM_ITS_PAGE, FROM_ELSEWHERE) if one in answer.text]
        found.add(known[0] if known and answer.status_code == 403 else f"{route} {answer!r}")
    return found
