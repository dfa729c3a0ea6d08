"""What admins do to people on their pages, which nobody else reaches."""

import re
from typing import Any

import pytest
from fastapi.testclient import TestClient

from backend.access.password_reset import PasswordResetService
from backend.access.people import PeopleService
from backend.access.random_secrets import digest
from backend.access.roles import Role
from backend.container import Container
from backend.store import audit
from backend.store.accounts import last_seen, people
from backend.store.accounts.people import Person
from tests.support.accounts import add_person
from tests.unit.backend.web.conftest import ANN, BOB

HOSTILE = "<script>alert(1)</script>\u202e\x07"


@pytest.fixture
def admin(browse: Any) -> TestClient:
    client: TestClient = browse(ANN)
    return client


def _bob(container: Container) -> Person:
    return people.get_by_email(container.database, BOB)


def _actions(container: Container, count: int) -> list[tuple[str, str]]:
    entries = audit.list_entries(container.database, limit=count)
    return [(entry.action, entry.actor) for entry in entries]


def test_people_are_listed_with_what_is_known_of_them(
    container: Container, admin: TestClient, browse: Any
) -> None:
    cleo = people.add(
        container.database,
        email="cleo@example.com",
        name=HOSTILE,
        role=Role.MEMBER,
        password_hash=None,
        verified="https://idp.example.com/<b>",
        created_at=_bob(container).created_at,
    )
    assert cleo.id not in last_seen.find_last_seen(container.database, [cleo.id])
    shown = admin.get("/people").text
    assert shown.index(ANN) < shown.index(BOB) < shown.index("cleo@example.com")
    for text in (
        "an admin",
        "https://idp.example.com/&lt;b&gt;",
        "never",
        "&lt;script&gt;alert(1)",
    ):
        assert text in shown
    assert "<script>alert" not in shown
    assert not {"\u202e", "\x07"} & set(shown)
    browse(BOB).get("/account")
    seen = last_seen.find_last_seen(container.database, [_bob(container).id, cleo.id])
    assert list(seen) == [_bob(container).id]


def test_people_are_found_and_shown_a_page_at_a_time(
    container: Container, admin: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_person(container.database, "100%_x@example.com")
    monkeypatch.setattr("backend.web.pages.people_pages.PEOPLE_PAGE", 2)
    listed = []
    path = "/people"
    while path:
        shown = admin.get(path).text
        listed += re.findall(r"<td><bdi>([^<]+@example.com)</bdi>", shown)
        following = re.search(r'href="(/people[^"]+)">More people', shown)
        path = following[1].replace("&amp;", "&") if following else ""
    assert listed == ["100%_x@example.com", ANN, BOB]
    for text, expected in (("BOB", [BOB]), ("%_", ["100%_x@example.com"]), ("\0", []), ("zzz", [])):
        shown = admin.get("/people", params={"q": text}).text
        assert re.findall(r"<td><bdi>([^<]+@example.com)</bdi>", shown) == expected


def test_an_invitation_is_shown_once(container: Container, admin: TestClient) -> None:
    form = {"email": "New@example.com", "role": "source_manager"}
    made = admin.post("/people/invite", data=form)
    (code,) = re.findall(
        r"<code>http://127.0.0.1:8321/invitation\?code=([\w-]{43})</code>", made.text
    )
    invitation = PeopleService(container.database).find_invitation(code)
    assert (invitation.email, invitation.role) == ("new@example.com", "source_manager")
    assert invitation.invited_by == f"user:{ANN}"
    listed = admin.get("/people").text
    assert "new@example.com" in listed
    assert code not in listed
    withdrawn = admin.post("/people/withdraw", data={"email": "new@example.com"})
    assert (withdrawn.status_code, withdrawn.headers["location"]) == (303, "/people")
    assert "new@example.com" not in admin.get("/people").text
    assert admin.post("/people/withdraw", data={"email": "new@example.com"}).status_code == 404
    assert _actions(container, 2) == [
        ("withdraw_invitation", f"user:{ANN}"),
        ("invite", f"user:{ANN}"),
    ]


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"email": "new@example.com"},
        {"email": "new@example.com", "role": "owner"},
        {"email": BOB, "role": "member"},
        {"email": "<b>@<i>x", "role": "member"},
        {"email": "a\0@example.com", "role": "member"},
        {"email": f"{'a' * 300}@example.com", "role": "member"},
    ],
)
def test_a_refused_invitation_says_why(
    container: Container, admin: TestClient, form: dict[str, str]
) -> None:
    refused = admin.post("/people/invite", data=form)
    if form.get("email") == "<b>@<i>x":
        assert "&lt;b&gt;@&lt;i&gt;x" in refused.text
    else:
        assert refused.status_code == 422
        assert 'role="alert"' in refused.text
        assert PeopleService(container.database).list_invitations() == []


def test_the_role_is_changed(container: Container, admin: TestClient) -> None:
    path = f"/person/{_bob(container).id}"
    assert BOB in admin.get(path).text
    changed = admin.post(f"{path}/role", data={"role": "source_manager"})
    assert (changed.status_code, changed.headers["location"]) == (303, path)
    assert _bob(container).role == Role.SOURCE_MANAGER
    entry = audit.list_entries(container.database)[0]
    assert entry.detail == {"before": "member", "after": "source_manager"}
    assert admin.post(f"{path}/role", data={"role": "root"}).status_code == 422
    assert admin.post(f"{path}/role").status_code == 422
    assert _bob(container).role == Role.SOURCE_MANAGER


def test_an_account_is_disabled_at_once_and_enabled_again(
    container: Container, admin: TestClient, browse: Any
) -> None:
    bob, path = browse(BOB), f"/person/{_bob(container).id}"
    assert admin.post(f"{path}/disable").status_code == 303
    assert bob.get("/account").status_code == 401
    assert "Disabled since" in admin.get(path).text
    assert "disabled" in admin.get("/people").text
    assert admin.post(f"{path}/password").status_code == 422
    assert admin.post(f"{path}/enable").status_code == 303
    assert _bob(container).disabled_at is None


def test_the_pages_lead_to_why_somebody_does_not_find_a_document(
    container: Container, admin: TestClient
) -> None:
    plus = add_person(container.database, "bob+news@example.com")
    for path in ("/people", f"/person/{plus.id}"):
        assert 'href="/explain?as=bob%2Bnews%40example.com"' in admin.get(path).text


def test_the_last_active_admin_stays(container: Container, admin: TestClient) -> None:
    ann = people.get_by_email(container.database, ANN)
    for action, form in (("disable", {}), ("role", {"role": "member"})):
        refused = admin.post(f"/person/{ann.id}/{action}", data=form)
        assert refused.status_code == 422
        assert "the only active admin" in refused.text
    assert people.get_by_email(container.database, ANN) == ann


def test_the_sessions_of_somebody_end(container: Container, admin: TestClient, browse: Any) -> None:
    bob, path = browse(BOB), f"/person/{_bob(container).id}"
    browse(BOB)
    assert "2 sessions" in admin.get(path).text
    assert admin.post(f"{path}/sessions").status_code == 303
    assert bob.get("/account").status_code == 401
    assert "Signed in nowhere" in admin.get(path).text


def test_the_link_of_a_reset_is_shown_once(container: Container, admin: TestClient) -> None:
    before, path = _bob(container), f"/person/{_bob(container).id}"
    made = admin.post(f"{path}/password")
    (code,) = re.findall(
        r"<code>http://127.0.0.1:8321/password-reset\?code=([\w-]{43})</code>", made.text
    )
    assert made.headers["cache-control"] == "no-store"
    assert PasswordResetService(container.database).find_person(code) == before
    assert code not in admin.get(path).text
    assert digest(code) not in made.text
    assert _actions(container, 1) == [("reset_password", f"user:{ANN}")]


def test_another_address_is_to_be_verified(container: Container, admin: TestClient) -> None:
    bob = _bob(container)
    path, new = f"/person/{bob.id}", "robert@example.com"
    assert "Mark as verified" not in admin.get(path).text
    assert admin.post(f"{path}/email", data={"email": new}).status_code == 303
    assert "is not verified, so they cannot read" in admin.get(path).text
    changed = people.find(container.database, bob.id)
    assert changed
    assert (changed.email, changed.verified) == (new, None)
    assert admin.post(f"{path}/verify").status_code == 303
    assert "Mark as verified" not in admin.get(path).text
    for email in (ANN, "no address", ""):
        refused = admin.post(f"{path}/email", data={"email": email})
        assert refused.status_code == 422
        assert "all the same" not in refused.text


def test_giving_somebodys_former_address_to_another_asks(
    container: Container, admin: TestClient
) -> None:
    bob = _bob(container)
    former, new = BOB, "robert@example.com"
    cleo = add_person(container.database, "cleo@example.com")
    admin.post(f"/person/{bob.id}/email", data={"email": new})
    for path, form in (
        ("/people/invite", {"email": former, "role": "member"}),
        (f"/person/{cleo.id}/email", {"email": former}),
    ):
        asked = admin.post(path, data=form)
        assert asked.status_code == 422
        assert " anyway<" in asked.text
        assert f'name="released" value="{former}"' in asked.text
    given = admin.post(f"/person/{cleo.id}/email", data={"email": former, "released": former})
    assert given.status_code == 303
    assert _bob(container).id == cleo.id
    assert [action for action, _ in _actions(container, 2)] == ["change_email", "release_email"]


@pytest.mark.parametrize("path", ["/person/999", "/person/0", "/person/x", "/person/99999999999"])
def test_who_does_not_exist_is_not_shown(admin: TestClient, path: str) -> None:
    for method in ("GET", "POST"):
        shown = admin.request(method, path if method == "GET" else f"{path}/enable")
        assert shown.status_code in {404, 422}
    assert admin.post("/person/1/delete").status_code == 422


def test_members_reach_none_of_it(container: Container, browse: Any) -> None:
    bob, before = browse(BOB), people.list_people(container.database)
    assert 'href="/people"' not in bob.get("/").text
    for method, path in (
        ("GET", "/people"),
        ("GET", "/person/1"),
        ("POST", "/people/invite"),
        ("POST", "/people/withdraw"),
        ("POST", f"/person/{_bob(container).id}/role"),
        ("POST", "/person/1/password"),
    ):
        assert bob.request(method, path, data={"role": "admin", "email": BOB}).status_code == 403
    assert people.list_people(container.database) == before
