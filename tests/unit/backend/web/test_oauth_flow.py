"""Programs are connected over HTTP: the whole way, and attacks on each part of it."""

import base64
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient
from httpx2 import Response

from backend.access.api_tokens import ApiTokenService, TokenScope
from backend.access.oauth import clients
from backend.access.people import PeopleService
from backend.access.roles import Role
from backend.access.sessions import Visitor, begin_session, make_csrf_token
from backend.api.account_authentication import AccountCookies
from backend.api.app import Api
from backend.cli.listening import Listening
from backend.cli.server import Owner, make_app
from backend.container import Container
from backend.store import audit
from backend.store.accounts import oauth_clients, people
from connectors.access import Readers
from tests.support.accounts import add_person
from tests.support.oauth import (
    AT_A_PORT,
    CALLBACK,
    CLIENT,
    Program,
    allow,
    connect,
    make_challenge,
    read_form,
    register,
)
from tests.unit.backend.api.conftest import ADDRESS, make_container
from tests.unit.backend.web.conftest import ANN, BOB

ELSEWHERE = {"origin": "https://chat.example.com", "sec-fetch-site": "cross-site"}
MCP = f"{ADDRESS}/mcp"
SEARCH = {"query": "leave"}


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Container:
    made = make_container(tmp_path_factory.mktemp("home"))
    for email, role in ((ANN, Role.ADMIN), (BOB, Role.MEMBER)):
        add_person(made.database, email, role)
    return made


@pytest.fixture(scope="module")
def app(container: Container) -> Iterator[Api]:
    """The whole server, ready."""
    owner = Owner(container.sign_in.machine_secret, Readers.of())
    made = make_app(container, owner, Listening(address="127.0.0.1"))
    with TestClient(made, base_url=ADDRESS):
        assert made.state.app_state.warmup.ready.wait(60)
        yield made


@pytest.fixture
def client(app: Api, container: Container) -> Iterator[TestClient]:
    """A program, which has no session. What it registers is gone at the end."""
    yield TestClient(app, base_url=ADDRESS, follow_redirects=False)
    for one in oauth_clients.list_used(container.database):
        oauth_clients.remove(container.database, one.client.id)


def _sign_in(app: Api, container: Container, email: str) -> TestClient:
    session = begin_session(
        container.database, people.get_by_email(container.database, email), Visitor()
    )
    proof = {"x-csrf-token": make_csrf_token(session)}
    browser = TestClient(app, base_url=ADDRESS, follow_redirects=False, headers=proof)
    browser.cookies.set(
        AccountCookies.of_machine(container.sign_in.machine_secret).session, session
    )
    return browser


@pytest.fixture
def ann(app: Api, container: Container) -> TestClient:
    """The browser of an admin."""
    return _sign_in(app, container, ANN)


@pytest.fixture
def bob(app: Api, container: Container) -> TestClient:
    """The browser of a member."""
    return _sign_in(app, container, BOB)


@pytest.fixture
def program(client: TestClient) -> Program:
    return register(client)


def _error(answer: Response, status: int = 400) -> str:
    """Return the code of a refusal, which has the form of OAuth."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store"
    body = answer.json()
    assert set(body) == {"error", "error_description"}
    assert body["error_description"].isascii()
    assert not set(body["error_description"]) & set('"\\')
    return str(body["error"])


def _refusal(answer: Response) -> str:
    """Return the page that says why a program cannot be connected: nobody is led anywhere."""
    assert answer.status_code == 400, answer.text
    assert "location" not in answer.headers
    assert "The program cannot be connected" in answer.text
    assert 'action="/oauth/consent"' not in answer.text
    return answer.text


# The whole way.


def test_the_whole_way(bob: TestClient, program: Program, container: Container) -> None:
    told = allow(bob, program.make_address(resource=MCP, scope="search ask"))
    assert (told["state"], told["iss"]) == (program.state, ADDRESS)
    answer = program.redeem(told["code"], resource=MCP)
    tokens = answer.json()
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["pragma"] == "no-cache"
    assert {name: tokens[name] for name in ("token_type", "expires_in", "scope")} == {
        "token_type": "Bearer", "expires_in": 3_600, "scope": "search ask",
    }  # fmt: skip
    # Known at /mcp, and nowhere else.
    assert program.use(tokens["access_token"], "/mcp") != 401
    for path in ("/api/documents", "/v1/models", "/openapi.json", "/", "/sources", "/account"):
        assert program.use(tokens["access_token"], path) == 401, path
    refreshed = program.refresh(tokens["refresh_token"]).json()
    assert program.use(tokens["access_token"], "/mcp") == 401
    assert program.use(refreshed["access_token"], "/mcp") != 401
    assert program.revoke(refreshed["refresh_token"]).json() == {}
    assert program.use(refreshed["access_token"], "/mcp") == 401
    actions = [one.action for one in audit.list_entries(container.database)]
    assert actions[:3] == ["disconnect_program", "connect_program", "register_client"]


def test_a_token_for_the_api_reads_and_asks_and_does_nothing_else(
    bob: TestClient, program: Program
) -> None:
    token = connect(bob, program, resource=ADDRESS)["access_token"]
    bearer = {"authorization": f"Bearer {token}"}
    assert program.client.post("/api/search", json=SEARCH, headers=bearer).status_code == 200
    assert program.use(token, "/api/conversations") == 200
    assert program.use(token, "/mcp") == 401
    for path in ("/", "/account", "/tokens", "/metrics", "/audit", "/oauth/authorize?client_id=x"):
        assert program.use(token, path) in {401, 400}, path
    for path in ("/api/sources", "/api/admin/sources", "/api/admin/audit", "/api/ingestion"):
        assert program.use(token, path) == 403, path


def test_a_token_of_an_admin_is_no_admins(ann: TestClient, program: Program) -> None:
    token = connect(ann, program, resource=ADDRESS, scope="search ask admin")
    assert token["scope"] == "search ask"
    assert program.use(token["access_token"], "/api/admin/audit") == 403
    assert program.use(token["access_token"], "/api/sources") == 403


def test_a_scope_that_was_not_granted_is_refused(bob: TestClient, program: Program) -> None:
    token = connect(bob, program, resource=ADDRESS, scope="search")["access_token"]
    assert program.use(token, "/api/documents") == 200
    assert program.use(token, "/api/conversations") == 403


def test_an_api_token_still_works_everywhere(client: TestClient, container: Container) -> None:
    owner = people.get_by_email(container.database, BOB)
    token = ApiTokenService(container.database, owner=owner).create(
        "editor", [TokenScope.SEARCH], timedelta(days=1)
    )
    bearer = {"authorization": f"Bearer {token}"}
    assert client.get("/api/documents", headers=bearer).status_code == 200
    assert client.post("/mcp", headers=bearer).status_code != 401


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
def test_a_client_with_a_secret_proves_itself(
    bob: TestClient, client: TestClient, method: str
) -> None:
    program = register(client, token_endpoint_auth_method=method)
    secret = str(program.registered["client_secret"])
    assert program.registered["client_secret_expires_at"] == 0
    code = allow(bob, program.make_address())["code"]
    for wrong in (None, "wrong", ""):
        assert _error(program.redeem(code, client_secret=wrong), 401) == "invalid_client"
    assert program.redeem(code, client_secret=secret).status_code == 200
    basic = base64.b64encode(f"{program.id}:{secret}".encode()).decode()
    form = {"token": "unknown"}
    headers = {"authorization": f"Basic {basic}"}
    assert client.post("/oauth/revoke", data=form, headers=headers).status_code == 200
    both = client.post("/oauth/revoke", data=form | {"client_secret": secret}, headers=headers)
    assert _error(both) == "invalid_request"


# Metadata.


def test_the_metadata_say_where_everything_is(client: TestClient) -> None:
    for path, resource in (("", ADDRESS), ("/mcp", MCP)):
        found = client.get(f"/.well-known/oauth-protected-resource{path}").json()
        assert found["resource"] == resource
        assert found["authorization_servers"] == [ADDRESS]
        assert found["scopes_supported"] == ["search", "ask"]
    for path in ("", "/mcp"):
        found = client.get(f"/.well-known/oauth-authorization-server{path}").json()
        assert found["issuer"] == ADDRESS
        assert found["code_challenge_methods_supported"] == ["S256"]
        assert found["response_types_supported"] == ["code"]
        assert found["authorization_response_iss_parameter_supported"] is True
        for name in ("authorization", "token", "registration", "revocation"):
            endpoint = found[f"{name}_endpoint"]
            assert endpoint.startswith(f"{ADDRESS}/oauth/")
            assert client.get(endpoint).status_code in {303, 400, 405}, endpoint


def test_no_host_is_believed_that_is_not_the_servers(client: TestClient) -> None:
    for host in ("evil.example.com", "127.0.0.1.evil.example.com", "quarry.example.com"):
        answer = client.get("/.well-known/oauth-authorization-server", headers={"host": host})
        assert answer.status_code == 421
        assert "issuer" not in answer.json()


def test_a_page_of_another_site_reads_metadata_and_gets_tokens(
    bob: TestClient, client: TestClient
) -> None:
    found = client.get("/.well-known/oauth-protected-resource/mcp", headers=ELSEWHERE)
    assert found.status_code == 200
    assert found.headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-credentials" not in found.headers
    asked = {**ELSEWHERE, "access-control-request-method": "POST"}
    for path in ("/oauth/token", "/oauth/register", "/oauth/revoke"):
        preflight = client.options(path, headers=asked)
        assert preflight.status_code == 204
        assert preflight.headers["access-control-allow-origin"] == "*"
        assert "POST" in preflight.headers["access-control-allow-methods"]
    made = client.post("/oauth/register", json=CLIENT, headers=ELSEWHERE)
    assert made.status_code == 201
    assert made.headers["access-control-allow-origin"] == "*"
    program = Program(client, made.json())
    code = allow(bob, program.make_address())["code"]
    form = {"grant_type": "authorization_code", "code": code, "client_id": program.id}
    form |= {"code_verifier": program.verifier, "redirect_uri": AT_A_PORT}
    redeemed = client.post("/oauth/token", data=form, headers=ELSEWHERE)
    assert redeemed.status_code == 200
    assert redeemed.headers["access-control-allow-origin"] == "*"


@pytest.mark.parametrize("path", ["/oauth/authorize", "/oauth/consent", "/api/search", "/mcp", "/"])
def test_a_page_of_another_site_reads_nothing_else(bob: TestClient, path: str) -> None:
    for method in ("GET", "POST", "OPTIONS"):
        answer = bob.request(method, path, headers=ELSEWHERE)
        assert answer.status_code == 403, (method, path)
        assert "access-control-allow-origin" not in answer.headers


# Registration.


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"redirect_uris": None}, "invalid_redirect_uri"),
        ({"redirect_uris": []}, "invalid_redirect_uri"),
        ({"redirect_uris": ["javascript:alert(1)"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["data:text/html,x"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["http://evil.example.com/"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["https://example.com/#x"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["https://*.example.com/"]}, "invalid_redirect_uri"),
        ({"redirect_uris": [CALLBACK, "ftp://example.com/"]}, "invalid_redirect_uri"),
        ({"redirect_uris": [f"{CALLBACK}/{n}" for n in range(11)]}, "invalid_redirect_uri"),
        ({"redirect_uris": [CALLBACK] * 5_000}, "invalid_request"),
        ({"redirect_uris": CALLBACK}, "invalid_redirect_uri"),
        ({"redirect_uris": [7]}, "invalid_redirect_uri"),
        ({"client_name": "x" * 101}, "invalid_client_metadata"),
        ({"client_name": "x" * 10_000}, "invalid_client_metadata"),
        ({"client_name": "x" * 60_000}, "invalid_request"),
        ({"client_name": {"en": "x"}}, "invalid_client_metadata"),
        ({"token_endpoint_auth_method": "private_key_jwt"}, "invalid_client_metadata"),
        ({"token_endpoint_auth_method": 1}, "invalid_client_metadata"),
        ({"grant_types": ["implicit"]}, "invalid_client_metadata"),
        ({"grant_types": ["client_credentials", "password"]}, "invalid_client_metadata"),
        ({"response_types": ["token"]}, "invalid_client_metadata"),
        ({"response_types": []}, "invalid_client_metadata"),
        ({"scope": ["search"]}, "invalid_client_metadata"),
    ],
)
def test_what_registers_no_client(
    client: TestClient, container: Container, changed: dict[str, Any], error: str
) -> None:
    assert _error(client.post("/oauth/register", json=CLIENT | changed)) == error
    assert oauth_clients.list_used(container.database) == []


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b"{", b"\xff", b'"x"', b"[" * 40_000])
def test_what_is_no_json_object_registers_no_client(client: TestClient, body: bytes) -> None:
    assert _error(client.post("/oauth/register", content=body)) == "invalid_client_metadata"


def test_what_is_not_understood_is_left_out(client: TestClient) -> None:
    program = register(
        client,
        scope="search admin openid",
        grant_types=["authorization_code", "refresh_token", "implicit"],
        logo_uri="https://evil.example.com/logo.svg",
        jwks_uri="http://169.254.169.254/",
        software_statement="x.y.z",
        client_id="chosen-by-the-program",
        client_secret="chosen-by-the-program",
    )
    assert program.registered["scope"] == "search"
    assert program.registered["grant_types"] == ["authorization_code", "refresh_token"]
    assert program.id != "chosen-by-the-program"
    assert set(program.registered) == {
        "client_id", "client_id_issued_at", "client_name", "redirect_uris", "grant_types",
        "response_types", "token_endpoint_auth_method", "scope",
    }  # fmt: skip


def test_without_a_method_a_client_has_a_secret_as_the_standard_says(client: TestClient) -> None:
    made = client.post("/oauth/register", json={"redirect_uris": [CALLBACK]}).json()
    assert made["token_endpoint_auth_method"] == "client_secret_basic"
    assert made["client_secret"].startswith("qocs_")
    assert made["grant_types"] == ["authorization_code"]


def test_a_flood_of_registrations_ends(
    client: TestClient, container: Container, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "MOST_BY_NETWORK", 5)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: client.post("/oauth/register", json=CLIENT), range(20)))
    refused = [one for one in answers if one.status_code != 201]
    assert len(oauth_clients.list_used(container.database)) == 5
    assert {_error(one, 429) for one in refused} == {"temporarily_unavailable"}
    assert {one.headers["retry-after"] for one in refused} == {"3600"}


# What a person is asked.


@pytest.mark.parametrize(
    "changed",
    [
        {"client_id": None},
        {"client_id": "absent"},
        {"client_id": "a\x00b"},
        {"client_id": "x" * 1_000},
        {"redirect_uri": "https://evil.example.com/callback"},
        {"redirect_uri": "https://editor.example.com/callback/"},
        {"redirect_uri": "https://editor.example.com/callback?x=1"},
        {"redirect_uri": "https://editor.example.com@evil.example.com/callback"},
        {"redirect_uri": "https://editor.example.com.evil.com/callback"},
        {"redirect_uri": "//evil.example.com"},
        {"redirect_uri": "javascript:alert(1)//127.0.0.1/callback"},
        {"redirect_uri": "http://localhost:33418/callback"},
        {"redirect_uri": None},
    ],
)
def test_nobody_is_led_where_no_program_has_registered(
    bob: TestClient, program: Program, changed: dict[str, str | None]
) -> None:
    text = _refusal(bob.get(program.make_address(**changed)))
    assert 'rel="noreferrer"' not in text
    assert "evil" not in text


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"response_type": None}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": "code token"}, "unsupported_response_type"),
        ({"response_mode": "form_post"}, "invalid_request"),
        ({"response_mode": "fragment"}, "invalid_request"),
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": "s256"}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"code_challenge": "x" * 44}, "invalid_request"),
        ({"code_challenge": f"{'x' * 42}="}, "invalid_request"),
        ({"scope": "admin"}, "invalid_scope"),
        ({"scope": "openid profile"}, "invalid_scope"),
        ({"resource": "https://evil.example.com/mcp"}, "invalid_target"),
        ({"resource": f"{ADDRESS}/other"}, "invalid_target"),
        ({"resource": f"{MCP}#x"}, "invalid_target"),
        ({"state": "x" * 1_501}, "invalid_request"),
    ],
)
def test_a_program_is_told_what_is_wrong_after_a_click_alone(
    bob: TestClient, program: Program, changed: dict[str, str | None], error: str
) -> None:
    text = _refusal(bob.get(program.make_address(**changed)))
    assert f'href="{AT_A_PORT}?error={error}' in text
    assert "iss=http%3A%2F%2F127.0.0.1%3A8321" in text
    assert 'rel="noreferrer"' in text


@pytest.mark.parametrize("name", ["client_id", "redirect_uri", "state", "code_challenge", "scope"])
def test_no_parameter_is_given_twice(bob: TestClient, program: Program, name: str) -> None:
    address = f"{program.make_address(scope='search')}&{name}=other"
    assert f"{name} is given more than once" in _refusal(bob.get(address))


def test_two_resources_are_refused(bob: TestClient, program: Program) -> None:
    address = f"{program.make_address(resource=MCP)}&resource={ADDRESS}"
    assert "error=invalid_target" in _refusal(bob.get(address))


def test_an_address_that_signing_in_would_lose_is_refused(
    client: TestClient, program: Program
) -> None:
    """Who has not signed in would otherwise be led to the first page."""
    address = program.make_address(state="x" * 1_400, resource=MCP)
    assert len(address) < 2_000
    assert client.get(address).headers["location"].startswith("/sign-in?next=%2Foauth%2Fauthorize")
    assert "too long" in _refusal(client.get(f"{address}&more={'x' * 600}"))


def test_who_has_not_signed_in_does_so_first(client: TestClient, program: Program) -> None:
    page = {"accept": "text/html"}
    led = client.get(program.make_address(), headers=page)
    assert led.status_code == 303
    assert led.headers["location"].startswith("/sign-in?next=%2Foauth%2Fauthorize%3F")
    answer = client.post(
        "/oauth/consent", data=program.make_request(decision="allow"), headers=page
    )
    assert answer.headers["location"].startswith("/sign-in")


def test_a_token_does_not_connect_another_program(
    bob: TestClient, client: TestClient, program: Program
) -> None:
    token = connect(bob, program, resource=ADDRESS)["access_token"]
    bearer = {"authorization": f"Bearer {token}", "accept": "application/json"}
    other = register(client)
    led = client.get(other.make_address(), headers=bearer)
    assert led.headers["location"].startswith("/sign-in")
    form = other.make_request(decision="allow")
    assert client.post("/oauth/consent", data=form, headers=bearer).status_code == 401


@pytest.mark.parametrize("proof", [{}, {"csrf_token": ""}, {"csrf_token": "0" * 64}])
def test_a_page_that_is_not_ours_does_not_decide(
    bob: TestClient, program: Program, container: Container, proof: dict[str, str]
) -> None:
    del bob.headers["x-csrf-token"]
    form = read_form(bob.get(program.make_address()).text) | {"decision": "allow"}
    del form["csrf_token"]
    assert bob.post("/oauth/consent", data=form | proof).status_code == 403
    assert [one.grants for one in oauth_clients.list_used(container.database)] == [0]
    foreign = {"origin": "https://evil.example.com"}
    proved = read_form(bob.get(program.make_address()).text) | {"decision": "allow"}
    assert bob.post("/oauth/consent", data=proved, headers=foreign).status_code == 403
    assert bob.post("/oauth/consent", data=proved).status_code == 303


def test_the_page_is_shown_in_no_frame_and_leads_to_the_program_alone(
    bob: TestClient, program: Program
) -> None:
    shown = bob.get(program.make_address())
    policy = shown.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    assert "form-action 'self' http://127.0.0.1:33418;" in policy
    assert "script-src 'self';" in policy
    assert shown.headers["x-frame-options"] == "DENY"
    assert shown.headers["cache-control"] == "no-store"
    framed = {
        "sec-fetch-site": "cross-site",
        "sec-fetch-mode": "navigate",
        "sec-fetch-dest": "iframe",
    }
    assert bob.get(program.make_address(), headers=framed).status_code == 403
    followed = framed | {"sec-fetch-dest": "document"}
    assert bob.get(program.make_address(), headers=followed).status_code == 200


@pytest.mark.parametrize(
    ("uri", "source"),
    [
        ("https://editor.example.com/callback", "https://editor.example.com"),
        ("https://editor.example.com:8443/a;b", "https://editor.example.com:8443"),
        ("http://[::1]:8080/callback", "http:"),
    ],
)
def test_no_redirect_uri_adds_to_the_policy(
    bob: TestClient, client: TestClient, uri: str, source: str
) -> None:
    program = register(client, redirect_uris=[uri])
    shown = bob.get(program.make_address(redirect_uri=uri))
    policy = shown.headers["content-security-policy"]
    assert f"form-action 'self' {source};" in policy
    assert policy.count(";") == 8


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ('"><img src=x onerror=alert(1)>', "&#34;&gt;&lt;img src=x onerror=alert(1)&gt;"),
        ("Quarry\u202e (verified)", "Quarry (verified)"),
        ("{{ 7 * 7 }}%(host)s", "{{ 7 * 7 }}%(host)s"),
        ("x" * 100, "x" * 100),
    ],
)
def test_a_hostile_name_is_a_text(
    bob: TestClient, client: TestClient, name: str, shown: str
) -> None:
    program = register(client, client_name=name)
    text = bob.get(program.make_address()).text
    assert f"Connect <bdi>{shown}</bdi>?" in text
    assert "Quarry has not verified this program" in text
    assert "<strong>127.0.0.1:33418</strong>" in text
    connect(bob, program)
    assert f"<bdi>{shown}</bdi>" in bob.get("/account").text


def test_the_page_says_what_the_program_may_do(bob: TestClient, program: Program) -> None:
    for_mcp = bob.get(program.make_address(scope="search")).text
    assert "find and read the documents" in for_mcp
    assert "questions answered" not in for_mcp
    for_api = bob.get(program.make_address(resource=ADDRESS)).text
    assert "read and change your conversations" in for_api
    elsewhere = program.make_address(redirect_uri="https://editor.example.com/callback")
    assert "redirected to <strong>editor.example.com</strong>" in bob.get(elsewhere).text


def test_who_refuses_is_led_back_without_a_code(bob: TestClient, program: Program) -> None:
    told = allow(bob, program.make_address(), "deny")
    assert told == {"error": "access_denied", "state": program.state, "iss": ADDRESS}


@pytest.mark.parametrize("decision", ["", "ALLOW", "yes"])
def test_nothing_else_is_a_decision(bob: TestClient, program: Program, decision: str) -> None:
    form = read_form(bob.get(program.make_address()).text) | {"decision": decision}
    again = bob.post("/oauth/consent", data=form)
    assert again.status_code == 200
    assert 'action="/oauth/consent"' in again.text


@pytest.mark.parametrize(
    "changed",
    [
        {"redirect_uri": "https://evil.example.com/"},
        {"client_id": "absent"},
        {"code_challenge_method": "plain"},
        {"resource": "https://evil.example.com"},
        {"scope": "admin"},
    ],
)
def test_what_the_form_sends_is_checked_again(
    bob: TestClient, program: Program, changed: dict[str, str]
) -> None:
    form = read_form(bob.get(program.make_address()).text) | {"decision": "allow"}
    _refusal(bob.post("/oauth/consent", data=form | changed))


def test_a_response_without_a_state_has_none(bob: TestClient, program: Program) -> None:
    assert set(allow(bob, program.make_address(state=None))) == {"code", "iss"}


# Tokens.


def _begin(bob: TestClient, program: Program) -> str:
    return allow(bob, program.make_address())["code"]


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"grant_type": None}, "invalid_request"),
        ({"grant_type": "password"}, "unsupported_grant_type"),
        ({"grant_type": "client_credentials"}, "unsupported_grant_type"),
        ({"code": None}, "invalid_request"),
        ({"code": "qoac_unknown"}, "invalid_grant"),
        ({"code_verifier": None}, "invalid_request"),
        ({"code_verifier": "w" * 43}, "invalid_grant"),
        ({"code_verifier": "short"}, "invalid_grant"),
        ({"redirect_uri": "https://editor.example.com/callback"}, "invalid_grant"),
        ({"redirect_uri": CALLBACK}, "invalid_grant"),
        ({"resource": ADDRESS}, "invalid_target"),
        ({"resource": "https://evil.example.com"}, "invalid_target"),
    ],
)
def test_a_code_is_not_exchanged(
    bob: TestClient, program: Program, changed: dict[str, str | None], error: str
) -> None:
    assert _error(program.redeem(_begin(bob, program), **changed)) == error


def test_the_challenge_is_no_verifier(bob: TestClient, program: Program) -> None:
    """As it would be with the method `plain`."""
    challenge = make_challenge(program.verifier)
    answer = program.redeem(_begin(bob, program), code_verifier=challenge)
    assert _error(answer) == "invalid_grant"


@pytest.mark.parametrize("client_id", [None, "absent", "a\x00"])
def test_nobody_exchanges_a_code(bob: TestClient, program: Program, client_id: str | None) -> None:
    code = _begin(bob, program)
    assert _error(program.redeem(code, client_id=client_id), 401) == "invalid_client"
    assert program.redeem(code).status_code == 200


def test_another_client_does_not_exchange_a_code(
    bob: TestClient, program: Program, client: TestClient
) -> None:
    """Also not with the verifier: an injected code is of another client."""
    other = Program(client, register(client).registered, verifier=program.verifier)
    code = _begin(bob, program)
    assert _error(other.redeem(code)) == "invalid_grant"
    assert program.redeem(code).status_code == 200


def test_a_code_that_comes_again_ends_its_tokens(bob: TestClient, program: Program) -> None:
    code = _begin(bob, program)
    tokens = program.redeem(code).json()
    assert _error(program.redeem(code)) == "invalid_grant"
    assert program.use(tokens["access_token"], "/mcp") == 401
    assert _error(program.refresh(tokens["refresh_token"])) == "invalid_grant"


def test_a_refresh_token_that_comes_again_ends_all(bob: TestClient, program: Program) -> None:
    first = connect(bob, program)
    second = program.refresh(first["refresh_token"]).json()
    assert _error(program.refresh(first["refresh_token"])) == "invalid_grant"
    assert program.use(second["access_token"], "/mcp") == 401
    assert _error(program.refresh(second["refresh_token"])) == "invalid_grant"


def test_no_token_is_taken_for_another(bob: TestClient, program: Program) -> None:
    tokens = connect(bob, program, resource=ADDRESS)
    assert program.use(tokens["refresh_token"]) == 401
    assert _error(program.refresh(tokens["access_token"])) == "invalid_grant"
    assert _error(program.redeem(tokens["refresh_token"])) == "invalid_grant"
    assert program.use(tokens["access_token"].replace("qoat_", "qry_")) == 401
    assert program.use(tokens["access_token"].removeprefix("qoat_")) == 401
    assert program.client.get(f"/api/documents?access_token={tokens['access_token']}").status_code == 401  # fmt: skip


def test_scopes_are_not_widened_later(bob: TestClient, program: Program) -> None:
    tokens = connect(bob, program, resource=ADDRESS, scope="search")
    wide = program.refresh(tokens["refresh_token"], scope="search ask")
    assert _error(wide) == "invalid_scope"
    elsewhere = program.refresh(tokens["refresh_token"], resource=MCP)
    assert _error(elsewhere) == "invalid_target"
    assert program.refresh(tokens["refresh_token"]).json()["scope"] == "search"


@pytest.mark.parametrize("path", ["/oauth/token", "/oauth/revoke"])
@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b'{"grant_type": "authorization_code"}', "application/json"),
        (b"grant_type=authorization_code", "text/plain"),
        (b"\xff=\xff", "application/x-www-form-urlencoded"),
        (b"a=1&" * 60, "application/x-www-form-urlencoded"),
        (b"a=" + b"x" * 60_000, "application/x-www-form-urlencoded"),
        (b"client_id=a&client_id=b&grant_type=refresh_token&token=x", "application/x-www-form-urlencoded"),
    ],
)  # fmt: skip
def test_what_is_no_form_is_refused(
    client: TestClient, path: str, body: bytes, content_type: str
) -> None:
    answer = client.post(path, content=body, headers={"content-type": content_type})
    assert _error(answer) == "invalid_request"


@pytest.mark.parametrize("header", ["Basic", "Basic !", "Basic w6k", "Basic /w==", "Bearer x"])
def test_a_header_that_proves_nothing(client: TestClient, header: str) -> None:
    form = {"grant_type": "refresh_token", "refresh_token": "x"}
    answer = client.post("/oauth/token", data=form, headers={"authorization": header})
    assert _error(answer, 401) == "invalid_client"
    assert answer.headers["www-authenticate"].startswith("Basic")


def test_a_session_beside_it_changes_nothing(bob: TestClient, program: Program) -> None:
    """A page of another site could have the browser send it."""
    form = {"grant_type": "refresh_token", "refresh_token": "x", "client_id": program.id}
    answer = bob.post("/oauth/token", data=form, headers=ELSEWHERE)
    assert _error(answer) == "invalid_grant"


# People and admins.


def test_a_disabled_account_has_no_programs_at_once(
    app: Api, program: Program, container: Container
) -> None:
    add_person(container.database, "eve@example.com")
    tokens = connect(_sign_in(app, container, "eve@example.com"), program)
    assert program.use(tokens["access_token"], "/mcp") != 401
    PeopleService(container.database).disable("eve@example.com")
    assert program.use(tokens["access_token"], "/mcp") == 401
    assert _error(program.refresh(tokens["refresh_token"])) == "invalid_grant"


def test_people_disconnect_their_own_programs(
    ann: TestClient, bob: TestClient, program: Program
) -> None:
    tokens = connect(bob, program)
    text = bob.get("/account").text
    number = text.split('name="grant" value="')[1].split('"')[0]
    assert ann.post("/account/program", data={"grant": number}).status_code == 404
    assert program.use(tokens["access_token"], "/mcp") != 401
    for wrong in ("", "x", "-1", "9" * 30):
        assert bob.post("/account/program", data={"grant": wrong}).status_code == 404
    assert bob.post("/account/program", data={"grant": number}).headers["location"] == "/account"
    assert program.use(tokens["access_token"], "/mcp") == 401
    assert "Connected programs" not in bob.get("/account").text


def test_admins_delete_programs(ann: TestClient, bob: TestClient, program: Program) -> None:
    tokens = connect(bob, program)
    text = ann.get("/tokens").text
    assert program.id in text
    assert "127.0.0.1, editor.example.com" in text
    assert bob.post("/tokens/program", data={"client": program.id}).status_code == 403
    assert program.use(tokens["access_token"], "/mcp") != 401
    deleted = ann.post("/tokens/program", data={"client": program.id})
    assert deleted.headers["location"] == "/tokens"
    assert program.use(tokens["access_token"], "/mcp") == 401
    assert ann.post("/tokens/program", data={"client": program.id}).status_code == 404
    assert _error(program.refresh(tokens["refresh_token"]), 401) == "invalid_client"
    _refusal(bob.get(program.make_address()))
