"""Nobody is answered without the secret of the machine, or a session that began with it."""

import asyncio
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fastapi import Request
from fastapi.testclient import TestClient
from starlette.routing import BaseRoute
from starlette.types import Message, Receive, Scope, Send

from backend.access.api_tokens import ApiTokenService, TokenScope
from backend.access.machine_secret import SESSION_LIFETIME
from backend.api.app import Api, create_app
from backend.api.authentication import AuthenticationMiddleware, MachineAuthenticator
from backend.api.authorization import Permission, find_asker, requires
from backend.api.request_context import create_request_context
from backend.container import Container
from backend.store.audit import AuditEntry, AuditFilter, list_entries
from backend.web import routes as pages
from backend.web.machine_link import mount_link
from connectors.access import Readers
from tests.unit.backend.api.conftest import (
    ADDRESS,
    SOURCE,
    api,
    authorization,
    list_requests,
    owner,
)

PAGE = {"accept": "text/html"}
SEARCH = {"query": "leave"}
A_WEEK = timedelta(days=7)


NEEDED = {
    TokenScope.SEARCH: {Permission.SEARCH},
    TokenScope.ASK: {Permission.ASK},
    TokenScope.ADMIN: {Permission.ADMIN, Permission.SOURCES},
    TokenScope.METRICS: {Permission.METRICS},
    TokenScope.INGEST: {Permission.INGEST},
}
BY_SCOPE = {permission for needed in NEEDED.values() for permission in needed}
ALLOWED = {
    TokenScope.SEARCH: ("POST", "/api/search"),
    TokenScope.ASK: ("POST", "/api/ask"),
    TokenScope.ADMIN: ("GET", "/api/sources"),
    TokenScope.METRICS: ("GET", "/metrics"),
    TokenScope.INGEST: ("GET", "/api/ingestion?source=x"),
}
BODIES: dict[str, Any] = {
    "/api/search": SEARCH,
    "/api/ask": {"question": "How long is parental leave?"},
}


@pytest.fixture
def tokens(container: Container) -> Iterator[ApiTokenService]:
    """At the end there is none."""
    service = ApiTokenService(container.database)
    yield service
    for token in service.list_tokens():
        service.revoke(token.name)


def _bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@pytest.fixture(scope="module")
def app(container: Container) -> Iterator[Api]:
    """The whole server, ready."""
    app = api(container)
    pages.mount(app)
    mount_link(app, container.sign_in.machine_secret, container.database)
    with TestClient(app, base_url=ADDRESS):
        assert app.state.app_state.warmup.ready.wait(60)
        yield app


@pytest.fixture
def stranger(app: Api) -> TestClient:
    """A client that proves nothing."""
    return TestClient(app, base_url=ADDRESS, follow_redirects=False)


@pytest.fixture
def browser(stranger: TestClient, container: Container) -> TestClient:
    """One that has opened a link."""
    assert (
        _open_link(stranger, container.sign_in.machine_secret.make_link_code()).status_code == 303
    )
    return stranger


def _open_link(client: TestClient, code: str) -> Any:
    return client.get("/link", params={"code": code}, headers=PAGE)


def test_no_route_but_those_open_to_anyone_answers_a_stranger(
    app: Api, stranger: TestClient
) -> None:
    requests = list(list_requests(app))
    assert len(requests) > 30
    for method, path, permission in requests:
        answer = stranger.request(method, path)
        assert (answer.status_code == 401) is (
            permission is not Permission.ANYONE or path == "/link"
        ), path


@pytest.mark.parametrize(
    ("host", "command"),
    [
        ("127.0.0.1:9000", "quarry link --port 9000"),
        ("localhost", "quarry link --host localhost --port 80"),
        ("[::1]:8321", "quarry link --host ::1 --port 8321"),
        ("localhost:99999", "quarry link --host localhost --port 99999"),
    ],
)
def test_the_page_for_strangers_names_the_address_that_the_browser_asked(
    container: Container, host: str, command: str
) -> None:
    app = create_app(container, owner(container), error_page=pages.error_page)
    refused = TestClient(app, base_url=ADDRESS).get("/sources", headers={**PAGE, "host": host})
    assert refused.status_code == 401
    assert f"<code>{command}</code>" in refused.text


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/no/such/page", b""),
        ("GET", "/healthz/", b""),
        ("POST", "/api/search", b"not JSON"),
        ("POST", "/api/search", b"\xff"),
        ("PATCH", "/api/documents", b""),
        ("OPTIONS", "/api/search", b""),
        ("HEAD", "/", b""),
        ("GET", "/api//documents", b""),
        ("GET", "/static/../api/documents", b""),
        ("GET", "/static/0/%2e%2e/%2e%2e/api/documents", b""),
    ],
)
def test_a_stranger_learns_nothing_of_what_exists(
    stranger: TestClient, method: str, path: str, body: bytes
) -> None:
    json_type = {"content-type": "application/json"}
    refused = stranger.request(method, path, content=body, headers=json_type)
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"].startswith("Bearer")


def test_a_program_is_told_what_to_send(stranger: TestClient) -> None:
    problem = stranger.get("/api/documents", headers=PAGE)
    assert problem.headers["content-type"] == "application/problem+json"
    assert "machine.secret" in problem.json()["advice"]


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_a_program_is_known_by_the_secret(
    stranger: TestClient, container: Container, scheme: str
) -> None:
    known = {"authorization": f"{scheme} {container.sign_in.machine_secret.value}"}
    assert stranger.get("/api/sources", headers=known).status_code == 200
    assert stranger.post("/api/search", json=SEARCH, headers=known).status_code == 200


@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer", "Bearer ", "Bearer wrong", "Basic {secret}", "{secret}", "Bearer {secret}x", "Bearer {link}", "Bearer qry_{secret}", "Bearer {session}"],
)  # fmt: skip
def test_any_other_header_proves_nothing(
    browser: TestClient, container: Container, authorization: str
) -> None:
    """Not even beside a session that is valid: what a client says of itself has to be true."""
    secret = container.sign_in.machine_secret
    given = authorization.format(
        secret=secret.value, link=secret.make_link_code(), session=secret.make_session()
    )
    assert browser.get("/api/sources", headers={"authorization": given}).status_code == 401


def test_the_secret_is_read_from_the_header_alone(
    stranger: TestClient, container: Container
) -> None:
    secret = container.sign_in.machine_secret
    for name in ("code", "token", "secret", "access_token"):
        assert stranger.get("/api/sources", params={name: secret.value}).status_code == 401
    assert _open_link(stranger, secret.value).status_code == 401


def test_a_link_begins_a_session_and_leaves_the_address(
    stranger: TestClient, container: Container
) -> None:
    code = container.sign_in.machine_secret.make_link_code()
    opened = _open_link(stranger, code)
    assert (opened.status_code, opened.headers["location"]) == (303, "/")
    cookie = opened.headers["set-cookie"]
    assert re.search(r"; HttpOnly; Max-Age=2592000; Path=/; SameSite=lax$", cookie)
    assert code not in cookie
    assert container.sign_in.machine_secret.value not in cookie
    assert opened.headers["cache-control"] == "no-store"
    assert opened.headers["referrer-policy"] == "same-origin"
    assert stranger.get("/api/sources").status_code == 200


def test_a_link_lets_one_browser_in(app: Api, container: Container) -> None:
    code = container.sign_in.machine_secret.make_link_code()
    other = TestClient(app, base_url=ADDRESS, follow_redirects=False)
    assert _open_link(other, code).status_code == 303
    third = TestClient(app, base_url=ADDRESS, follow_redirects=False)
    refused = _open_link(third, code)
    assert refused.status_code == 401
    assert "set-cookie" not in refused.headers
    assert "used already" in refused.text
    assert "quarry link" in refused.text
    again = _open_link(other, code)
    assert (again.status_code, again.headers["location"]) == (303, "/")
    assert "set-cookie" not in again.headers, "the session goes on, and no other begins"


def test_of_browsers_that_open_a_link_at_once_one_is_let_in(app: Api, container: Container) -> None:
    code = container.sign_in.machine_secret.make_link_code()
    browsers = [TestClient(app, base_url=ADDRESS, follow_redirects=False) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda browser: _open_link(browser, code), browsers))
    assert sorted(answer.status_code for answer in answers) == [303, *[401] * 7]


def test_the_audit_tells_once_that_a_link_was_opened_and_from_where(
    stranger: TestClient, container: Container
) -> None:
    code, before = container.sign_in.machine_secret.make_link_code(), _list_opened(container)
    for _ in range(2):
        _open_link(stranger, code)
    _open_link(stranger, "x" * 150)
    (opened,) = _list_opened(container)[: -len(before) or None]
    assert (opened.actor, opened.address) == ("owner", "testclient")
    assert code not in str(opened)


def _list_opened(container: Container) -> list[AuditEntry]:
    return list_entries(container.database, AuditFilter(subject="machine:link"))


def test_a_link_leads_nowhere_else(stranger: TestClient, container: Container) -> None:
    code = container.sign_in.machine_secret.make_link_code()
    elsewhere = {"code": code, "next": "//evil.example", "url": "https://evil.example"}
    opened = stranger.get("/link", params=elsewhere, headers={"host": "localhost:8321"})
    assert opened.headers["location"] == "/"


@pytest.mark.parametrize("code", ["", "1", "..", "x" * 150, "1.2.3"])
def test_another_link_lets_nobody_in(stranger: TestClient, code: str) -> None:
    refused = _open_link(stranger, code)
    assert refused.status_code == 401
    assert "set-cookie" not in refused.headers


def test_a_session_that_somebody_chose_is_none(stranger: TestClient, container: Container) -> None:
    """Fixation: a cookie that was set before does not become a session, and opening a link replaces it."""
    secret = container.sign_in.machine_secret
    stranger.cookies.set(secret.cookie_name, "chosen")
    assert stranger.get("/api/sources").status_code == 401
    opened = _open_link(stranger, secret.make_link_code())
    assert "chosen" not in opened.headers["set-cookie"]


def test_a_session_ends(stranger: TestClient, container: Container) -> None:
    secret = container.sign_in.machine_secret
    ended = secret.make_session(datetime.now(UTC) - SESSION_LIFETIME)
    stranger.cookies.set(secret.cookie_name, ended)
    assert stranger.get("/api/sources").status_code == 401


def test_a_session_outlives_the_server(browser: TestClient, container: Container) -> None:
    restarted = TestClient(api(container.reopen()), base_url=ADDRESS)
    restarted.cookies = browser.cookies
    assert restarted.get("/metrics").status_code == 200


def _csrf_token(browser: TestClient) -> str:
    found = re.search('<meta name="csrf-token" content="([0-9a-f]{64})">', browser.get("/ask").text)
    assert found
    return found[1]


def test_a_page_of_the_session_may_change_something(browser: TestClient) -> None:
    proof = {"x-csrf-token": _csrf_token(browser)}
    assert browser.post("/api/search", json=SEARCH, headers=proof).status_code == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_without_the_proof_of_its_page_a_session_changes_nothing(
    browser: TestClient, container: Container, method: str
) -> None:
    secret = container.sign_in.machine_secret
    foreign = secret.csrf_token(secret.make_session())
    for proof in ({}, {"x-csrf-token": ""}, {"x-csrf-token": foreign}):
        refused = browser.request(method, "/api/search", json=SEARCH, headers=proof)
        assert refused.status_code == 403
        assert "Reload the page" in refused.json()["advice"]


class NoRoutes(list[BaseRoute]):
    """Routes that nobody may look through."""

    def __iter__(self) -> Iterator[BaseRoute]:
        raise AssertionError("looked through the routes")


def test_a_request_with_its_proof_is_let_in_without_a_look_at_all_routes(
    container: Container,
) -> None:
    secret = container.sign_in.machine_secret
    session = secret.make_session()
    headers = {
        "cookie": f"{secret.cookie_name}={session}",
        "x-csrf-token": secret.csrf_token(session),
    }
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/api/search",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    create_request_context(scope, "request")
    authenticator = MachineAuthenticator(secret, Readers.of(), lambda _: None)
    asyncio.run(
        AuthenticationMiddleware(_accept, authenticator, NoRoutes())(scope, _receive, _send)
    )
    assert find_asker(scope)


async def _accept(scope: Scope, receive: Receive, send: Send) -> None:
    """An application that answers nothing."""


async def _receive() -> Message:
    return {"type": "http.disconnect"}


async def _send(message: Message) -> None:
    raise AssertionError(message)


def test_a_program_needs_no_proof_and_is_shown_none(app: Api) -> None:
    program = TestClient(app, base_url=ADDRESS, headers=authorization(app))
    assert program.post("/api/search", json=SEARCH).status_code == 200
    assert "csrf-token" not in program.get("/ask").text


def test_a_page_of_another_site_is_refused_with_the_cookie_too(browser: TestClient) -> None:
    proof = {"x-csrf-token": _csrf_token(browser), "origin": "http://evil.example"}
    assert browser.post("/api/search", json=SEARCH, headers=proof).status_code == 403


@pytest.mark.soak("slow")
def test_a_token_reaches_what_its_scopes_say(
    app: Api, stranger: TestClient, tokens: ApiTokenService
) -> None:
    """Generated from the router: every route by every scope."""
    bearers = {scope: _bearer(tokens.create(scope, [scope], A_WEEK)) for scope in TokenScope}
    requests = list(list_requests(app))
    for scope, bearer in bearers.items():
        for method, path, permission in requests:
            if permission is Permission.ANYONE or permission in NEEDED[scope]:
                continue
            refused = stranger.request(method, path, headers=bearer)
            assert refused.status_code == 403, (scope, path)
            challenge = refused.headers.get("www-authenticate", "")
            assert ("insufficient_scope" in challenge) is (permission in BY_SCOPE)
    for scope, (method, path) in ALLOWED.items():
        answer = stranger.request(method, path, headers=bearers[scope], json=BODIES.get(path))
        # There is no source that takes documents.
        expected = 404 if scope is TokenScope.INGEST else 200
        assert answer.status_code == expected, (scope, path)


def test_every_rule_is_a_scope_but_those_for_anyone_and_for_sessions() -> None:
    of_sessions = {Permission.ACCOUNT, Permission.ACCOUNTS}
    assert {*BY_SCOPE, Permission.ANYONE, *of_sessions} == set(Permission)


def test_a_token_that_has_ended_or_was_revoked_proves_nothing(
    stranger: TestClient, tokens: ApiTokenService
) -> None:
    revoked = _bearer(tokens.create("revoked", TokenScope, A_WEEK))
    assert stranger.get("/api/sources", headers=revoked).status_code == 200
    tokens.revoke("revoked")
    assert stranger.get("/api/sources", headers=revoked).status_code == 401
    ended = tokens.create("ended", TokenScope, A_WEEK, datetime.now(UTC) - A_WEEK)
    assert stranger.get("/api/sources", headers=_bearer(ended)).status_code == 401


def test_a_token_is_read_from_the_header_alone(
    stranger: TestClient, tokens: ApiTokenService, container: Container
) -> None:
    token = tokens.create("header", TokenScope, A_WEEK)
    assert stranger.get("/api/sources", params={"token": token}).status_code == 401
    assert _open_link(stranger, token).status_code == 401
    stranger.cookies.set(container.sign_in.machine_secret.cookie_name, token)
    assert stranger.get("/api/sources").status_code == 401


def test_what_a_token_did_is_in_the_audit_under_its_name(
    app: Api, stranger: TestClient, tokens: ApiTokenService
) -> None:
    bearer = _bearer(tokens.create("deployer", [TokenScope.ADMIN], A_WEEK))
    address = f"/api/admin/sources/{SOURCE}/test"
    assert stranger.post(address, headers=bearer).status_code == 200
    program = TestClient(app, base_url=ADDRESS, headers=authorization(app))
    entries = program.get("/api/admin/audit", params={"actor": "token:deployer"}).json()
    assert [(each["action"], each["subject"]) for each in entries] == [("test", SOURCE)]


def test_a_route_beside_one_that_is_open_is_not(container: Container) -> None:
    """Two routes of one path, such as two methods: a stranger reaches neither."""
    app = api(container)

    @requires(Permission.ANYONE)
    def opened() -> None: ...

    @requires(Permission.SEARCH)
    def closed(request: Request) -> str:
        return str(request.url)

    app.get("/both")(opened)
    app.post("/both")(closed)
    stranger = TestClient(app, base_url=ADDRESS)
    assert [stranger.request(each, "/both").status_code for each in ("GET", "POST")] == [401, 401]
