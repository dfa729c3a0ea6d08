"""A Quarry with accounts: who reaches which route, how people come in, and what nobody can do to them."""

import json
import logging
import re
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest
from fastapi.testclient import TestClient
from httpx2 import ASGITransport, AsyncClient

from backend.access.api_tokens import ApiTokenService, TokenScope
from backend.access.groups import GroupService
from backend.access.password_reset import PasswordResetService
from backend.access.passwords import MOST_OF_NETWORK, MOST_WAITING, PasswordQueue
from backend.access.people import AccountDetails, PeopleService
from backend.access.random_secrets import digest
from backend.access.roles import Role
from backend.access.sessions import Visitor, begin_session, end_session, make_csrf_token
from backend.access.sign_in_limits import MOST_BY_ACCOUNT
from backend.api.account_authentication import AccountCookies, AccountPresence
from backend.api.app import Api, create_app
from backend.api.authorization import Permission
from backend.cli.server import Owner, make_authenticator
from backend.container import Container
from backend.store import audit
from backend.store.accounts import api_tokens, people
from backend.store.accounts.people import Person
from backend.web import routes as pages
from backend.web.machine_link import mount_link
from backend.web.pages.password_reset_pages import PasswordResetPages
from backend.web.pages.sign_in import SignInPages
from backend.worker.logs import JsonFormatter
from connectors.access import Readers
from tests.support.accounts import CHEAP, PASSWORD, add_person
from tests.unit.backend.api.conftest import (
    ADDRESS,
    FILES,
    SOURCE,
    connected,
    list_requests,
    make_container,
)

ANN, BOB, SAM, GONE = (f"{name}@example.com" for name in ("ann", "bob", "sam", "gone"))
PAGE = {"accept": "text/html"}
WEEK = timedelta(days=7)
FOR_ADMINS = {Permission.ADMIN, Permission.METRICS, Permission.ACCOUNTS}
OF_SESSIONS = {Permission.ACCOUNT, Permission.ACCOUNTS}
NOT_FOR_MEMBERS = FOR_ADMINS | {Permission.SOURCES}
ENTRANCES = {"/link", "/sign-in", "/invitation", "/password-reset"}
"""Open to anyone, and an answer to what is given there may be a refusal."""


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Container:
    """One whose files name people, with an admin, a source manager, a member and a disabled account."""
    folder = tmp_path_factory.mktemp("files")
    readers = (
        f"rules:\n  - match: leave.md\n    readers: [user:{BOB}]\n  - match: finance/**\n    readers: [group:hr]\n"
        f"  - match: '**'\n    readers: [user:{ANN}]\n"
    )
    for name, text in {**FILES, "access.yaml": readers}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    made = make_container(tmp_path_factory.mktemp("home"))
    connected(made, folder)
    roles = {ANN: Role.ADMIN, BOB: Role.MEMBER, SAM: Role.SOURCE_MANAGER, GONE: Role.ADMIN}
    for email, role in roles.items():
        add_person(made.database, email, role)
    return made


@pytest.fixture(scope="module")
def cookies(container: Container) -> AccountCookies:
    return AccountCookies.of_machine(container.sign_in.machine_secret)


@pytest.fixture(scope="module")
def app(container: Container, cookies: AccountCookies) -> Iterator[Api]:
    app = make_app(container, cookies, PasswordQueue())
    with TestClient(app, base_url=ADDRESS):
        assert app.state.app_state.warmup.ready.wait(60)
        yield app


def make_app(container: Container, cookies: AccountCookies, queue: PasswordQueue) -> Api:
    owner = Owner(container.sign_in.machine_secret, Readers.of())
    accounts = AccountPresence(lambda: people.has_people(container.database))
    authenticator = make_authenticator(lambda: container.database, owner, cookies, accounts)
    app = create_app(container, authenticator, error_page=pages.error_page)
    pages.mount(app)
    mount_link(app, container.sign_in.machine_secret, container.database)
    SignInPages(lambda: container.database, cookies, CHEAP, queue).mount(app)
    PasswordResetPages(lambda: container.database, cookies, CHEAP, queue).mount(app)
    return app


@pytest.fixture
def stranger(app: Api) -> TestClient:
    return TestClient(app, base_url=ADDRESS, follow_redirects=False)


class Browser:
    """A client with the session of a person, which sends the proof of its pages."""

    def __init__(self, app: Api, container: Container, cookies: AccountCookies, email: str) -> None:
        self.person = people.get_by_email(container.database, email)
        self.session = begin_session(container.database, self.person, Visitor())
        proof = {"x-csrf-token": make_csrf_token(self.session)}
        self.client = TestClient(app, base_url=ADDRESS, follow_redirects=False, headers=proof)
        self.client.cookies.set(cookies.session, self.session)


@pytest.fixture
def bob(app: Api, container: Container, cookies: AccountCookies) -> Browser:
    return Browser(app, container, cookies, BOB)


@pytest.fixture
def ann(app: Api, container: Container, cookies: AccountCookies) -> Browser:
    return Browser(app, container, cookies, ANN)


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@pytest.fixture
def make_token(container: Container) -> Iterator[Any]:
    made: list[tuple[ApiTokenService, str]] = []

    def make(owner: Person | None, *scopes: TokenScope) -> dict[str, str]:
        service = ApiTokenService(container.database, owner=owner)
        name = f"token{len(made)}"
        made.append((service, name))
        return bearer(service.create(name, scopes, WEEK))

    yield make
    for service, name in made:
        service.revoke(name)


# Who reaches what: made from the router.


@pytest.mark.soak("slow")
def test_nobody_reaches_what_is_not_open_to_anyone(
    app: Api, container: Container, cookies: AccountCookies, stranger: TestClient
) -> None:
    """Neither a stranger nor an ended session, a disabled account, or who runs the machine."""
    ended = Browser(app, container, cookies, BOB)
    end_session(container.database, ended.session)
    gone = Browser(app, container, cookies, GONE)
    PeopleService(container.database).disable(GONE)
    disabled = Browser(app, container, cookies, GONE)
    secret = container.sign_in.machine_secret
    machine = TestClient(app, base_url=ADDRESS, follow_redirects=False)
    machine.cookies.set(secret.cookie_name, secret.make_session())
    by_secret = TestClient(
        app, base_url=ADDRESS, follow_redirects=False, headers=bearer(secret.value)
    )
    for client in (stranger, ended.client, gone.client, disabled.client, machine, by_secret):
        anyio.run(check_refusals, app, client)
    PeopleService(container.database).enable(GONE)


async def check_refusals(app: Api, like: TestClient) -> None:
    """Ask every route as this client does, all in one loop: a loop for each request takes most of its time."""
    transport = ASGITransport(app)
    async with AsyncClient(
        transport=transport, base_url=ADDRESS, headers=like.headers, cookies=like.cookies
    ) as client:
        for method, path, permission in list_requests(app):
            if path not in ENTRANCES:
                answer = await client.request(method, path)
                expected = permission is not Permission.ANYONE
                assert (answer.status_code == 401) is expected, (method, path)


@pytest.mark.soak("slow")
@pytest.mark.parametrize("email", [BOB, SAM])
def test_members_reach_what_is_for_readers_alone(
    app: Api, container: Container, cookies: AccountCookies, email: str
) -> None:
    client = Browser(app, container, cookies, email).client
    for method, path, permission in list_requests(app):
        if permission in (NOT_FOR_MEMBERS if email == BOB else FOR_ADMINS):
            refused = client.request(method, path)
            assert refused.status_code == 403, (method, path)
            assert "Only an admin" in refused.text
        elif permission in {Permission.SEARCH, Permission.ASK}:
            assert client.request(method, path).status_code not in {401, 403}, (method, path)


@pytest.mark.soak("slow")
def test_admins_reach_every_page(app: Api, ann: Browser) -> None:
    for method, path, _ in list_requests(app):
        if method == "GET" and path not in ENTRANCES:
            assert ann.client.get(path).status_code not in {401, 403}, path


@pytest.mark.soak("slow")
def test_a_token_never_does_more_than_its_owner_may(
    app: Api, container: Container, stranger: TestClient, make_token: Any
) -> None:
    member = make_token(people.get_by_email(container.database, BOB), *TokenScope)
    admin = make_token(people.get_by_email(container.database, ANN), *TokenScope)
    searching = make_token(people.get_by_email(container.database, ANN), TokenScope.SEARCH)
    service = make_token(None, *TokenScope)
    for method, path, permission in list_requests(app):
        if permission in NOT_FOR_MEMBERS:
            assert stranger.request(method, path, headers=member).status_code == 403, path
            assert stranger.request(method, path, headers=searching).status_code == 403, path
        if permission in OF_SESSIONS:
            for each in (member, admin, searching, service):
                assert stranger.request(method, path, headers=each).status_code == 403, path
    for each in (admin, service):
        assert stranger.get("/api/sources", headers=each).status_code == 200
    PeopleService(container.database).set_role(SAM, Role.ADMIN)
    sam = make_token(people.get_by_email(container.database, SAM), TokenScope.ADMIN)
    assert stranger.get("/api/sources", headers=sam).status_code == 200
    assert stranger.get("/api/admin/audit", headers=sam).status_code == 200
    PeopleService(container.database).set_role(SAM, Role.SOURCE_MANAGER)
    assert stranger.get("/api/sources", headers=sam).json() == []
    assert stranger.get("/api/admin/audit", headers=sam).status_code == 403


def _titles(client: TestClient, headers: dict[str, str] | None = None) -> set[str]:
    found = client.get("/api/documents", headers=headers)
    assert found.status_code == 200
    return {one["title"] for one in found.json()["documents"]}


def test_each_finds_what_is_theirs(
    stranger: TestClient, ann: Browser, bob: Browser, make_token: Any
) -> None:
    assert _titles(bob.client) == {"Parental leave"}
    assert "Parental leave" not in _titles(ann.client) != set()
    assert _titles(stranger, make_token(bob.person, TokenScope.SEARCH)) == {"Parental leave"}
    assert _titles(stranger, make_token(None, TokenScope.SEARCH)) == set()


def test_who_is_in_a_group_reads_what_names_it(
    app: Api, container: Container, cookies: AccountCookies
) -> None:
    client, service = Browser(app, container, cookies, SAM).client, GroupService(container.database)
    service.create("hr")
    assert _titles(client) == set()
    service.add_member("hr", SAM)
    assert _titles(client) == {"Salary bands"}
    service.remove_member("hr", SAM)
    assert _titles(client) == set()


def test_an_address_that_nobody_vouches_for_reads_nothing(
    app: Api, container: Container, cookies: AccountCookies
) -> None:
    email = "claimed@example.com"
    person = people.add(
        container.database,
        email=email,
        name="Mallory",
        role=Role.MEMBER,
        password_hash=None,
        verified=None,
        created_at=people.get_by_email(container.database, ANN).created_at,
    )
    assert person.verified is None
    client = Browser(app, container, cookies, email).client
    assert _titles(client) == set()


def test_what_is_withdrawn_counts_for_the_next_request(
    app: Api, container: Container, cookies: AccountCookies, stranger: TestClient, make_token: Any
) -> None:
    email = "leaver@example.com"
    service = PeopleService(container.database)
    person = add_person(container.database, email, Role.ADMIN)
    leaver = Browser(app, container, cookies, email).client
    token = make_token(None, TokenScope.SEARCH)
    own = bearer(
        ApiTokenService(container.database, owner=person).create("own", [TokenScope.SEARCH], WEEK)
    )
    assert leaver.get("/api/sources").status_code == 200
    service.set_role(email, Role.MEMBER)
    assert leaver.get("/api/sources").status_code == 403
    assert stranger.get("/api/documents", headers=own).status_code == 200
    service.disable(email)
    assert leaver.get("/api/documents").status_code == 401
    assert stranger.get("/api/documents", headers=own).status_code == 401
    assert stranger.get("/api/documents", headers=token).status_code == 200


def test_members_are_shown_no_source_that_they_may_not_read(bob: Browser) -> None:
    for path in ("/?q=zzz", "/results?q=zzz", "/", "/ask"):
        page = bob.client.get(path, headers=PAGE)
        assert page.status_code == 200
        assert 'href="/source' not in page.text


def test_a_look_as_administrator_is_in_the_audit_under_who_looked(
    ann: Browser, app: Api, container: Container, make_token: Any
) -> None:
    """By session and by token, the page and the API alike: never as the machine, nor without an address."""
    program = TestClient(app, base_url=ADDRESS, headers=make_token(ann.person, TokenScope.ADMIN))
    document = f"{SOURCE}:leave.md"
    looked = [
        ann.client.post("/api/admin/look", json={"document": document}),
        ann.client.post("/look", data={"document": document}, headers=PAGE),
        program.post("/api/admin/look", json={"document": document}),
    ]
    assert [answer.status_code for answer in looked] == [200] * 3
    entries = audit.list_entries(container.database, audit.AuditFilter(action="look"), limit=3)
    assert [one.actor for one in entries] == [
        f"token:token0 of {ANN}",
        f"user:{ANN}",
        f"user:{ANN}",
    ]
    assert {one.address for one in entries} == {"testclient"}


# Coming in and going out.


def _sign_in(client: TestClient, email: str, password: str = PASSWORD, **more: str) -> Any:
    form = {"email": email, "password": password, **more}
    return client.post("/sign-in", data=form, headers={**PAGE, "origin": ADDRESS})


def test_signing_in_and_out(
    stranger: TestClient, cookies: AccountCookies, container: Container
) -> None:
    refused = stranger.get("/document/wiki:leave.md?q=a%20b&x=1", headers=PAGE)
    assert refused.status_code == 303
    page = stranger.get(refused.headers["location"], headers=PAGE)
    following = re.search('name="next" value="([^"]+)"', page.text)
    assert following
    assert following[1] == "/document/wiki:leave.md?q=a%20b&amp;x=1"
    back = _sign_in(stranger, BOB, next="/document/wiki:leave.md?q=a%20b&x=1")
    assert (back.status_code, back.headers["location"]) == (
        303,
        "/document/wiki:leave.md?q=a%20b&x=1",
    )
    for cookie in back.headers.get_list("set-cookie"):
        assert re.search(r"; HttpOnly; Max-Age=\d+; Path=/; SameSite=lax$", cookie)
    session = stranger.cookies[cookies.session]
    home = stranger.get("/", headers=PAGE)
    assert BOB in home.text
    proof = re.search('name="csrf_token" value="([0-9a-f]{64})"', home.text)
    assert proof
    assert stranger.get("/sign-in?next=/ask").headers["location"] == "/ask"
    out = stranger.post("/sign-out", data={"csrf_token": proof[1]})
    assert (out.status_code, out.headers["location"]) == (303, "/sign-in")
    assert cookies.session not in stranger.cookies
    stranger.cookies.set(cookies.session, session)
    assert stranger.get("/api/documents").status_code == 401
    entry = audit.list_entries(container.database)[0]
    assert (entry.action, entry.actor, entry.address) == ("sign_out", f"user:{BOB}", "testclient")


def test_a_script_whose_session_has_ended_is_not_led_to_another_page(stranger: TestClient) -> None:
    headers = {**PAGE, "sec-fetch-mode": "cors", "sec-fetch-site": "same-origin"}
    refused = stranger.get("/results?q=x", headers=headers)
    assert refused.status_code == 401
    assert 'href="/sign-in"' in refused.text


def test_an_invitation_is_accepted_once(stranger: TestClient, container: Container) -> None:
    code = PeopleService(container.database).invite("new@example.com", Role.MEMBER)
    page = stranger.get("/invitation", params={"code": code}, headers=PAGE)
    assert "new@example.com" in page.text
    form = {"code": code, "name": "<b>New</b>", "password": "too little"}
    refused = stranger.post("/invitation", data=form)
    assert refused.status_code == 422
    assert "12 to 256 characters" in refused.text
    assert "&lt;b&gt;New" in refused.text
    assert "too little" not in refused.text
    accepted = stranger.post("/invitation", data={**form, "password": PASSWORD})
    assert (accepted.status_code, accepted.headers["location"]) == (303, "/")
    assert _titles(stranger) == set()
    again = stranger.post("/invitation", data={**form, "password": PASSWORD})
    assert again.status_code == 404
    assert people.get_by_email(container.database, "new@example.com").name == "<b>New</b>"


def test_the_role_of_an_invitation_cannot_be_chosen(
    stranger: TestClient, container: Container
) -> None:
    code = PeopleService(container.database).invite("climber@example.com", Role.MEMBER)
    form = {
        "code": code,
        "name": "Climber",
        "password": PASSWORD,
        "role": "admin",
        "email": ANN,
        "verified": "admin",
    }
    assert stranger.post("/invitation", data=form).status_code == 303
    assert people.get_by_email(container.database, "climber@example.com").role == Role.MEMBER
    assert stranger.get("/api/sources").status_code == 403


# Attacks.


def test_a_session_that_somebody_chose_is_none(
    stranger: TestClient, cookies: AccountCookies, bob: Browser
) -> None:
    """Fixation: neither a made-up cookie nor a real one of the attacker outlives the sign-in."""
    for planted in ("chosen", bob.session):
        stranger.cookies.clear()
        stranger.cookies.set(cookies.session, planted)
        stranger.cookies.set(cookies.device, "planted")
        answer = _sign_in(stranger, ANN)
        assert answer.status_code == 303
        given = " ".join(answer.headers.get_list("set-cookie"))
        assert planted not in given
    assert bob.client.get("/api/documents").status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {
            "sec-fetch-site": "cross-site",
            "sec-fetch-mode": "navigate",
            "sec-fetch-dest": "document",
        },
    ],
)
@pytest.mark.parametrize("path", ["/sign-in", "/sign-out", "/invitation"])
def test_no_other_site_signs_anybody_in_or_out(
    stranger: TestClient, bob: Browser, headers: dict[str, str], path: str
) -> None:
    form = {"email": ANN, "password": PASSWORD, "csrf_token": make_csrf_token(bob.session)}
    for client in (stranger, bob.client):
        refused = client.post(path, data=form, headers=headers)
        assert refused.status_code == 403
        assert "set-cookie" not in refused.headers
    assert bob.client.get("/api/documents").status_code == 200


@pytest.mark.soak("slow")
def test_without_the_proof_of_its_page_a_session_changes_nothing(
    app: Api, cookies: AccountCookies, ann: Browser, bob: Browser
) -> None:
    client = TestClient(app, base_url=ADDRESS, follow_redirects=False)
    client.cookies.set(cookies.session, bob.session)
    foreign = make_csrf_token(ann.session)
    for method, path, permission in list_requests(app):
        if method not in {"GET", "HEAD", "OPTIONS"} and permission is not Permission.ANYONE:
            for proof in ({}, {"x-csrf-token": ""}, {"x-csrf-token": foreign}):
                refused = client.request(method, path, headers=proof)
                assert refused.status_code == 403
                assert "Reload the page" in refused.text, (method, path)
    for form in ({}, {"csrf_token": ""}, {"csrf_token": foreign}):
        assert client.post("/sign-out", data=form).status_code == 403
    in_address = {"csrf_token": make_csrf_token(bob.session)}
    assert client.post("/sign-out", params=in_address).status_code == 403


def test_refused_sign_ins_differ_in_nothing(stranger: TestClient, container: Container) -> None:
    """No status, header or word says whether there is an account."""
    PeopleService(container.database).disable(GONE)
    answers = set()
    for email, password in (
        (BOB, "wrong"),
        (GONE, PASSWORD),
        ("nobody@example.com", PASSWORD),
        ("no address", PASSWORD),
        ("", ""),
    ):
        answer = _sign_in(stranger, email, password)
        headers = {
            name: value
            for name, value in answer.headers.items()
            if name not in {"x-request-id", "content-length"}
        }
        # The page shows again what was typed, and then puts the cursor into the other field.
        body = answer.text.replace(f'value="{email}"', 'value=""').replace(" autofocus", "")
        answers.add((answer.status_code, str(headers), body))
    PeopleService(container.database).enable(GONE)
    assert len(answers) == 1
    assert next(iter(answers))[0] == 401


def test_invalid_invitations_differ_in_nothing(stranger: TestClient, container: Container) -> None:
    service = PeopleService(container.database)
    used = service.invite("used@example.com", Role.MEMBER)
    service.accept_invitation(used, AccountDetails(name="Used", password=PASSWORD), CHEAP)
    long_ago = datetime.now(UTC) - timedelta(days=8)
    ended = service.invite("ended@example.com", Role.MEMBER, long_ago)
    answers = set()
    for code in ("", "x", used, ended, "y" * 43):
        shown = stranger.get("/invitation", params={"code": code}, headers=PAGE)
        sent = stranger.post("/invitation", data={"code": code, "name": "A", "password": "b"})
        answers.add((shown.status_code, shown.text, sent.status_code, sent.text))
    ((status, _, sent_status, _),) = answers
    assert (status, sent_status) == (404, 404)


def test_a_password_is_chosen_by_a_link(stranger: TestClient, container: Container) -> None:
    email = "forgetful@example.com"
    add_person(container.database, email)
    code = PasswordResetService(container.database).begin(email)
    page = stranger.get("/password-reset", params={"code": code}, headers=PAGE)
    assert (page.status_code, email in page.text) == (200, True)
    form = {"code": code, "password": "too little", "email": ANN, "role": "admin"}
    refused = stranger.post("/password-reset", data=form)
    assert refused.status_code == 422
    assert "12 to 256 characters" in refused.text
    assert _sign_in(stranger, email).status_code == 303
    assert stranger.get("/api/documents").status_code == 200
    new = "quite another long password"
    chosen = stranger.post("/password-reset", data={**form, "password": new})
    assert (chosen.status_code, chosen.headers["location"]) == (303, "/sign-in")
    assert stranger.get("/api/documents").status_code == 401
    assert _sign_in(stranger, email).status_code == 401
    assert _sign_in(stranger, email, new).status_code == 303
    person = people.get_by_email(container.database, email)
    assert (person.email, person.role) == (email, Role.MEMBER)


@pytest.mark.parametrize(("chosen", "left"), [({}, 1), ({"revoke_tokens": "yes"}, 0)])
def test_tokens_are_revoked_with_a_password_where_that_is_wanted(
    stranger: TestClient, container: Container, chosen: dict[str, str], left: int
) -> None:
    """Whoever thinks that somebody knew the password wants nothing of before to work."""
    email = f"robbed{left}@example.com"
    person = add_person(container.database, email)
    ApiTokenService(container.database, owner=person).create("ci", [TokenScope.SEARCH], WEEK)
    code = PasswordResetService(container.database).begin(email)
    refused = stranger.post("/password-reset", data={"code": code, "password": "short", **chosen})
    assert ('value="yes" checked' in refused.text) is bool(chosen)
    stranger.post("/password-reset", data={"code": code, "password": PASSWORD, **chosen})
    assert len(api_tokens.list_of_person(container.database, person.id)) == left
    entry = audit.list_entries(container.database, limit=1)[0]
    assert (entry.action, entry.detail.get("revoked_tokens")) == (
        "choose_password",
        1 if chosen else None,
    )


def test_invalid_resets_differ_in_nothing(stranger: TestClient, container: Container) -> None:
    service = PasswordResetService(container.database)
    used = service.begin(SAM)
    service.finish(used, PASSWORD, CHEAP)
    ended = service.begin(BOB, datetime.now(UTC) - timedelta(days=2))
    answers = set()
    for code in ("", "x", used, ended, "y" * 43, "z\0"):
        shown = stranger.get("/password-reset", params={"code": code}, headers=PAGE)
        sent = stranger.post("/password-reset", data={"code": code, "password": "b"})
        answers.add((shown.status_code, shown.text, sent.status_code, sent.text))
    ((status, _, sent_status, _),) = answers
    assert (status, sent_status) == (404, 404)


def test_spraying_is_answered_alike_for_every_account(
    stranger: TestClient, container: Container
) -> None:
    for email in ("sprayed@example.com", "nobody@example.org"):
        if email.endswith(".com"):
            add_person(container.database, email)
        for _ in range(MOST_BY_ACCOUNT):
            assert _sign_in(stranger, email, "Winter2026").status_code == 401
        limited = _sign_in(stranger, email)
        assert (limited.status_code, limited.headers["retry-after"]) == (429, "900")
        assert "set-cookie" not in limited.headers


def test_who_is_sprayed_comes_in_by_a_link_for_a_password(
    stranger: TestClient, container: Container, cookies: AccountCookies
) -> None:
    """From a device that Quarry does not know, such as a new one: no stranger keeps anybody out for good."""
    email, new = "besieged@example.com", "quite another long password"
    add_person(container.database, email)
    for _ in range(MOST_BY_ACCOUNT):
        assert _sign_in(stranger, email, "Winter2026").status_code == 401
    assert _sign_in(stranger, email).status_code == 429
    stranger.cookies.set(cookies.device, "planted")
    code = PasswordResetService(container.database).begin(email)
    chosen = stranger.post("/password-reset", data={"code": code, "password": new})
    (cookie,) = chosen.headers.get_list("set-cookie")
    assert re.search(r"; HttpOnly; Max-Age=\d+; Path=/; SameSite=lax$", cookie)
    assert "planted" not in cookie
    stranger.cookies.clear()
    assert _sign_in(stranger, email, new).status_code == 429
    stranger.cookies.set(cookies.device, cookie.partition("=")[2].partition(";")[0])
    assert _sign_in(stranger, email, new).status_code == 303
    assert _sign_in(stranger, ANN, "Winter2026").status_code == 401


@pytest.mark.parametrize(
    "address",
    [
        "https://evil.example/",
        "//evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "/\t/evil.example",
        "javascript:alert(1)",
        "evil.example",
        "",
        "/" + "a" * 2000,
        "/x\r\nset-cookie: a=b",
        " //evil.example",
        "/%0d%0a",
    ],
)
def test_signing_in_leads_to_no_other_site(
    stranger: TestClient, bob: Browser, address: str
) -> None:
    location = _sign_in(stranger, BOB, next=address).headers["location"]
    assert location == (address if address == "/%0d%0a" else "/")
    if len(address) <= 2000:
        shown = bob.client.get("/sign-in", params={"next": address})
        assert shown.headers["location"] == location


def test_nothing_secret_is_logged(
    stranger: TestClient, container: Container, cookies: AccountCookies, caplog: Any
) -> None:
    caplog.set_level(logging.DEBUG)
    code = PeopleService(container.database).invite("logged@example.com", Role.MEMBER)
    stranger.get("/invitation", params={"code": code})
    stranger.post("/invitation", data={"code": code, "name": "Logged", "password": PASSWORD})
    _sign_in(stranger, "logged@example.com", "wrong secret")
    token = ApiTokenService(container.database).create("logged", [TokenScope.SEARCH], WEEK)
    stranger.get("/api/documents", params={"token": token})
    stranger.get("/api/documents", headers=bearer(token))
    ApiTokenService(container.database).revoke("logged")
    lines = [
        JsonFormatter().format(record) for record in caplog.records if "httpx" not in record.name
    ]
    assert any(json.loads(line).get("route") == "/invitation" for line in lines)
    secrets = (code, PASSWORD, "wrong secret", token, stranger.cookies[cookies.session])
    for secret in secrets:
        assert not [line for line in lines if secret in line]
    kept = [entry.detail for entry in audit.list_entries(container.database, limit=1000)]
    assert not [secret for secret in secrets if secret in str(kept)]


def test_a_token_in_the_address_proves_nothing(stranger: TestClient, make_token: Any) -> None:
    token = make_token(None, *TokenScope)["authorization"].removeprefix("Bearer ")
    for name in ("token", "access_token", "code"):
        assert stranger.get("/api/documents", params={name: token}).status_code == 401
    assert stranger.get("/invitation", params={"code": token}).status_code == 404


def test_a_session_is_no_bearer_and_a_token_no_session(
    stranger: TestClient, bob: Browser, make_token: Any, cookies: AccountCookies
) -> None:
    assert stranger.get("/api/documents", headers=bearer(bob.session)).status_code == 401
    token = make_token(bob.person, *TokenScope)["authorization"].removeprefix("Bearer ")
    stranger.cookies.set(cookies.session, token)
    assert stranger.get("/api/documents").status_code == 401


def test_the_link_of_the_machine_lets_nobody_in(stranger: TestClient, container: Container) -> None:
    code = container.sign_in.machine_secret.make_link_code()
    opened = stranger.get("/link", params={"code": code}, headers=PAGE)
    assert (opened.status_code, opened.headers["location"]) == (303, "/sign-in")
    assert "set-cookie" not in opened.headers


def test_who_waits_too_long_is_asked_to_come_back(
    container: Container, cookies: AccountCookies
) -> None:
    """So that sign-ins that wait take no thread or memory from those who search."""
    queue = PasswordQueue()
    queue.waiting["192.0.2.1"] = MOST_WAITING
    client = TestClient(make_app(container, cookies, queue), base_url=ADDRESS)
    refused = _sign_in(client, BOB)
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
    queue.waiting["192.0.2.1"] = MOST_WAITING - 1
    assert _sign_in(client, BOB, "wrong").status_code == 401
    assert _sign_in(client, BOB, "wrong").status_code == 401


def test_nobody_takes_all_places_of_those_who_wait(
    container: Container, cookies: AccountCookies
) -> None:
    queue = PasswordQueue()
    # The address of the test client is no network.
    queue.waiting["testclient"] = MOST_OF_NETWORK
    client = TestClient(make_app(container, cookies, queue), base_url=ADDRESS)
    assert _sign_in(client, BOB).status_code == 503
    other = TestClient(
        make_app(container, cookies, queue), base_url=ADDRESS, client=("203.0.113.9", 5)
    )
    assert _sign_in(other, BOB, "wrong").status_code == 401


@pytest.mark.parametrize("table", ["sessions", "devices", "audit"])
def test_an_error_of_the_database_tells_nothing_secret(
    empty: Container, table: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither the log nor what the server logs of an exception: a statement with its values would hold secrets."""
    caplog.set_level(logging.DEBUG)
    person = add_person(empty.database, ANN, Role.ADMIN)
    code = PeopleService(empty.database).invite(BOB, Role.MEMBER)
    cookies = AccountCookies.of_machine(empty.sign_in.machine_secret)
    client = TestClient(make_app(empty, cookies, PasswordQueue()), base_url=ADDRESS)
    assert _sign_in(client, ANN, "wrong").status_code == 401
    with empty.database.engine.begin() as connection:
        connection.exec_driver_sql(
            f"CREATE TRIGGER broken BEFORE INSERT ON {table} BEGIN SELECT RAISE(ABORT, 'broken'); END"
        )
    told = []
    for path, form in (
        ("/sign-in", {"email": ANN, "password": PASSWORD}),
        ("/invitation", {"code": code, "name": "Bob", "password": PASSWORD}),
    ):
        try:
            client.post(path, data=form, headers={"origin": ADDRESS})
        except Exception:  # noqa: BLE001 (whatever the server would log)
            told.append(traceback.format_exc())
    assert len(told) == 2
    assert all("broken" in text and "[parameters:" not in text for text in told)
    told += [logging.Formatter().format(record) for record in caplog.records]
    for secret in (PASSWORD, code, digest(code), str(person.password_hash)):
        assert not [text for text in told if secret in text]


# Until there is an account.


@pytest.fixture
def empty(tmp_path: Any) -> Container:
    return make_container(tmp_path)


def test_without_accounts_the_machine_answers_its_owner(empty: Container) -> None:
    cookies = AccountCookies.of_machine(empty.sign_in.machine_secret)
    client = TestClient(make_app(empty, cookies, PasswordQueue()), base_url=ADDRESS)
    assert client.get("/sign-in", headers=PAGE).status_code == 401
    assert "quarry link" in client.get("/sign-in", headers=PAGE).text
    assert _sign_in(client, ANN).status_code == 401
    owner = bearer(empty.sign_in.machine_secret.value)
    assert client.post("/sign-out", headers=owner).status_code == 403
    assert client.get("/metrics", headers=owner).status_code == 200
    code = empty.sign_in.machine_secret.make_link_code()
    assert client.get("/link", params={"code": code}, follow_redirects=False).status_code == 303
    assert client.get("/metrics").status_code == 200
    # The first account is made while the server runs: from the next request on it is another one.
    add_person(empty.database, ANN, Role.ADMIN)
    assert client.get("/metrics", headers=owner).status_code == 401
    assert client.get("/metrics").status_code == 401
    assert client.get("/sign-in", headers=PAGE).status_code == 200
