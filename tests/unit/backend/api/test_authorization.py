"""Each route has one rule, and without one is open to nobody."""

from collections.abc import Iterator

import pytest
from fastapi import FastAPI, Request
from fastapi.routing import iter_route_contexts
from fastapi.testclient import TestClient
from starlette.responses import PlainTextResponse
from starlette.routing import BaseRoute, Route

from backend.access.roles import Role
from backend.api.app import create_app
from backend.api.authorization import (
    Asker,
    Permission,
    find_unprotected_routes,
    get_permission,
    requires,
)
from backend.api.cross_origin import is_for_other_origins
from backend.container import Container
from backend.web import routes as pages
from backend.web.machine_link import mount_link
from connectors.access import Readers
from tests.unit.backend.api.conftest import ADDRESS, SOURCE, api, authorization


class Stranger:
    """An asker who is not the owner, as there will be with accounts."""

    async def authenticate(self, request: Request) -> Asker:
        del request
        return Asker(kind="local", readers=Readers.of(), role=Role.MEMBER)


def _routes(app: FastAPI) -> Iterator[BaseRoute]:
    for context in iter_route_contexts(app.routes):
        yield context.original_route


def _whole(container: Container) -> FastAPI:
    """The API with the pages on it, as it is served."""
    app = api(container)
    pages.mount(app)
    mount_link(app, container.sign_in.machine_secret, container.database)
    return app


def test_every_route_has_a_rule(container: Container) -> None:
    app = _whole(container)
    routes = list(_routes(app))
    assert len(routes) > 12
    assert list(find_unprotected_routes(app.routes)) == []
    assert all(
        isinstance(get_permission(getattr(one, "endpoint", None)), Permission) for one in routes
    )


def test_every_operation_of_the_description_has_a_name_of_its_own(container: Container) -> None:
    operations = [
        operation["operationId"]
        for path in api(container).openapi()["paths"].values()
        for operation in path.values()
    ]
    assert len(operations) > 12
    assert sorted(set(operations)) == sorted(operations)


def test_only_what_reveals_nothing_is_open_to_anyone(container: Container) -> None:
    open_to_anyone = {
        getattr(one, "path", "")
        for one in _routes(_whole(container))
        if get_permission(getattr(one, "endpoint", None)) is Permission.ANYONE
    }
    static = {path for path in open_to_anyone if path.startswith("/static/")}
    nothing = {"/healthz", "/readyz", "/llms.txt", "/favicon.ico", "/link"}
    # Where programs learn how to get a token, and get it for what they prove.
    for_programs = {path for path in open_to_anyone if is_for_other_origins(path)}
    assert open_to_anyone - static - for_programs <= nothing | {"/oauth/authorize"}


def test_a_route_without_a_rule_is_named_and_keeps_the_server_from_starting(
    container: Container,
) -> None:
    app = api(container)
    app.get("/forgotten")(lambda: "secret")
    assert list(find_unprotected_routes(app.routes)) == ["/forgotten"]
    with pytest.raises(ValueError, match="/forgotten"), TestClient(app, base_url=ADDRESS):
        pass


def test_a_route_without_a_rule_answers_nobody(container: Container) -> None:
    app = api(container)
    app.get("/forgotten")(lambda: "secret")
    refused = TestClient(app, base_url=ADDRESS, headers=authorization(app)).get("/forgotten")
    assert refused.status_code == 403
    assert "secret" not in refused.text


def test_a_route_that_asks_for_nobody_must_be_open_to_anyone(container: Container) -> None:
    """A route of Starlette passes by FastAPI's dependencies, and with them by `check_permission`."""

    @requires(Permission.ADMIN)
    def bare(request: Request) -> PlainTextResponse:
        return PlainTextResponse(str(request.url))

    app = api(container)
    app.router.routes.append(Route("/bare", bare))
    assert list(find_unprotected_routes(app.routes)) == ["/bare"]


def test_what_is_the_owners_is_nobody_elses(container: Container) -> None:
    """Generated from the router: a route that is added is asked here as well."""
    app = create_app(container, Stranger())
    pages.mount(app)
    owners = [
        (method, getattr(one, "path", "").replace("{name}", SOURCE))
        for one in _routes(app)
        if get_permission(getattr(one, "endpoint", None)) in {Permission.ADMIN, Permission.SOURCES}
        for method in getattr(one, "methods", ())
    ]
    assert ("POST", f"/api/sources/{SOURCE}/sync") in owners
    with TestClient(app, base_url=ADDRESS) as client:
        actual = {one: client.request(*one, json={}).status_code for one in owners}
    assert actual == dict.fromkeys(owners, 403)
