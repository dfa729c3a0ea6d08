"""What people do to their own account, and to nobody else's."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient

from backend.access.api_tokens import ApiTokenService, TokenScope
from backend.access.roles import Role
from backend.access.sign_in_limits import MOST_BY_DEVICE
from backend.container import Container
from backend.store import audit
from backend.store.accounts import api_tokens, identities, people, sessions
from tests.support.accounts import CHEAP, PASSWORD, find_person
from tests.unit.backend.api.conftest import ADDRESS
from tests.unit.backend.web.conftest import ANN, BOB

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
NEW = "quite another long password"


def _session(client: TestClient) -> str:
    return str(next(iter(client.cookies.values())))


def test_sessions_are_listed_and_ended(container: Container, browse: Any) -> None:
    here, there, foreign = browse(BOB), browse(BOB), browse(ANN)
    shown = here.get("/account").text
    assert shown.count("&lt;b&gt;Browser") == 2
    assert shown.count("this session") == 1
    assert _session(here) not in shown
    (number,) = re.findall(r'name="session" value="(\d+)"', shown)
    assert foreign.post("/account/session", data={"session": number}).status_code == 404
    assert here.post("/account/session", data={"session": number}).status_code == 303
    assert find_person(container.database, _session(there)) is None
    assert find_person(container.database, _session(here))
    missing = [here.post("/account/session", data={"session": each}) for each in (number, "x", "")]
    assert [each.status_code for each in missing] == [404] * 3
    assert audit.list_entries(container.database)[0].action == "end_session"


def test_a_password_is_changed_and_ends_the_other_sessions(
    container: Container, browse: Any
) -> None:
    here, there = browse(BOB), browse(BOB)
    changed = here.post("/account/password", data={"current": PASSWORD, "new": NEW})
    assert (changed.status_code, changed.headers["location"]) == (303, "/account")
    assert find_person(container.database, _session(there)) is None
    assert here.get("/account").status_code == 200
    stored = people.get_by_email(container.database, BOB).password_hash
    assert CHEAP.is_correct(stored, NEW)
    (entry, *_) = audit.list_entries(container.database)
    assert (entry.action, entry.actor) == ("change_password", f"user:{BOB}")
    assert NEW not in str(entry)


def test_tokens_are_revoked_with_the_password_where_that_is_wanted(
    container: Container, browse: Any
) -> None:
    here, person = browse(BOB), people.get_by_email(container.database, BOB)
    assert 'name="revoke_tokens"' not in here.get("/account").text
    for owner in (person, people.get_by_email(container.database, ANN)):
        ApiTokenService(container.database, owner=owner).create(
            "ci", [TokenScope.SEARCH], timedelta(days=7)
        )
    form = {"current": PASSWORD, "new": NEW, "revoke_tokens": "yes"}
    assert 'name="revoke_tokens" value="yes">' in here.get("/account").text
    refused = here.post("/account/password", data={**form, "new": "short"})
    assert 'name="revoke_tokens" value="yes" checked>' in refused.text
    kept = here.post("/account/password", data={"current": PASSWORD, "new": f"{NEW} 1"})
    assert kept.status_code == 303
    assert len(api_tokens.list_of_person(container.database, person.id)) == 1
    assert here.post("/account/password", data={**form, "current": f"{NEW} 1"}).status_code == 303
    (left,) = api_tokens.list_tokens(container.database)
    assert left.person_id != person.id
    (entry, *_) = audit.list_entries(container.database)
    assert (entry.action, entry.detail["revoked_tokens"]) == ("change_password", 1)


@pytest.mark.parametrize(
    "form", [{"current": "wrong", "new": NEW}, {"current": PASSWORD, "new": "short"}, {"new": NEW}]
)
def test_a_refused_change_changes_nothing(
    container: Container, browse: Any, form: dict[str, str]
) -> None:
    here, there = browse(BOB), browse(BOB)
    before = people.get_by_email(container.database, BOB)
    refused = here.post("/account/password", data=form)
    assert refused.status_code == 422
    assert 'role="alert"' in refused.text
    assert people.get_by_email(container.database, BOB) == before
    assert find_person(container.database, _session(there))


def test_a_session_that_was_left_open_does_not_serve_to_guess(browse: Any) -> None:
    here = browse(BOB)
    for _ in range(MOST_BY_DEVICE):
        assert here.post("/account/password", data={"current": "x", "new": NEW}).status_code == 422
    limited = here.post("/account/password", data={"current": PASSWORD, "new": NEW})
    assert "too often" in limited.text


def test_identities_are_listed_and_unlinked(container: Container, browse: Any) -> None:
    database, bob = container.database, browse(BOB)
    person = people.get_by_email(database, BOB)
    identities.add(database, "https://idp.example.com", "<b>1</b>", person.id, NOW)
    assert "Sign-ins elsewhere" not in browse(ANN).get("/account").text
    assert "&lt;b&gt;1&lt;/b&gt;" in bob.get("/account").text
    of_bob = {"issuer": "https://idp.example.com", "subject": "<b>1</b>"}
    assert browse(ANN).post("/account/identity", data=of_bob).status_code == 404
    assert bob.post("/account/identity", data=of_bob).status_code == 303
    assert identities.list_of_person(database, person.id) == []
    assert audit.list_entries(database, limit=1)[0].action == "unlink_identity"


def test_the_only_way_to_sign_in_stays(container: Container, browse: Any) -> None:
    database = container.database
    carol = people.add(
        database,
        email="carol@example.com",
        name="Carol",
        role=Role.MEMBER,
        password_hash=None,
        verified="https://idp.example.com",
        created_at=NOW,
    )
    identities.add(database, "https://idp.example.com", "1", carol.id, NOW)
    given = {"issuer": "https://idp.example.com", "subject": "1"}
    refused = browse("carol@example.com").post("/account/identity", data=given)
    assert refused.status_code == 422
    assert "the only way by which you can sign in" in refused.text
    assert len(identities.list_of_person(database, carol.id)) == 1


def test_a_token_is_shown_once_and_revoked(browse: Any) -> None:
    here, foreign = browse(BOB), browse(ANN)
    made = here.post("/account/tokens", data={"name": "ci", "search": "yes"})
    (token,) = re.findall(r"<code>(qry_[\w-]{43})</code>", made.text)
    assert made.headers["cache-control"] == "no-store"
    listed = here.get("/account").text
    assert "never used" in listed
    assert token not in listed
    bearer = {"authorization": f"Bearer {token}"}
    program = TestClient(here.app, base_url=ADDRESS, headers=bearer)
    assert program.get("/account").status_code == 403
    assert foreign.post("/account/token", data={"name": "ci"}).status_code == 404
    assert here.post("/account/tokens", data={"name": "ci", "search": "yes"}).status_code == 422
    assert here.post("/account/token", data={"name": "ci"}).status_code == 303
    assert program.get("/account").status_code == 401


def test_a_member_makes_no_token_for_admins(container: Container, browse: Any) -> None:
    everything = dict.fromkeys((str(scope) for scope in TokenScope), "yes")
    for email, scopes in ((BOB, ["ask", "search"]), (ANN, sorted(TokenScope))):
        client = browse(email)
        assert client.post("/account/tokens", data={"name": "all", **everything}).status_code == 200
        person = people.get_by_email(container.database, email)
        (token,) = api_tokens.list_of_person(container.database, person.id)
        assert list(token.scopes) == scopes
    assert browse(BOB).post("/account/tokens", data={"name": "none"}).status_code == 422


def test_nobody_raises_their_own_role(container: Container, browse: Any) -> None:
    before = people.get_by_email(container.database, BOB)
    forged = {"role": "admin", "email": ANN, "person_id": "1", "verified": "admin", "owner": ANN}
    client = browse(BOB)
    for path in ("session", "password", "tokens", "token"):
        client.post(f"/account/{path}", data={**forged, "name": "x", "search": "yes"})
    assert people.get_by_email(container.database, BOB) == before
    ann = people.get_by_email(container.database, ANN)
    assert api_tokens.list_of_person(container.database, ann.id) == []


def test_tokens_and_sessions_of_others_are_not_listed(container: Container, browse: Any) -> None:
    ann = people.get_by_email(container.database, ANN)
    ApiTokenService(container.database, owner=ann).create(
        "anns-secret-plan", [TokenScope.SEARCH], timedelta(days=7)
    )
    browse(ANN)
    assert len(sessions.list_of_person(container.database, ann.id)) == 1
    shown = browse(BOB).get("/account").text
    assert "anns-secret-plan" not in shown
    assert shown.count("&lt;b&gt;Browser") == 1


def test_what_is_of_others_is_answered_as_what_is_missing(
    container: Container, browse: Any
) -> None:
    """Status, headers and body, but for the name that was asked for."""
    ann, bob = browse(ANN), browse(BOB)
    (foreign,) = re.findall(r'name="session" value="(\d+)"', browse(ANN).get("/account").text)
    owner = people.get_by_email(container.database, ANN)
    ApiTokenService(container.database, owner=owner).create(
        "token1", [TokenScope.SEARCH], timedelta(days=1)
    )
    for path, field, name, missing in (
        ("/account/session", "session", foreign, "9"),
        ("/account/token", "name", "token1", "token2"),
    ):
        hidden, none = (
            bob.post(path, data={field: each}, headers={"x-request-id": "one"})
            for each in (name, missing)
        )
        assert hidden.status_code == none.status_code == 404
        assert hidden.text.replace("token1", "token2") == none.text
        assert hidden.headers.raw == none.headers.raw
    assert ann.get("/account").text.count("token1") > 0


def test_a_person_chooses_the_language_of_the_pages(container: Container, browse: Any) -> None:
    here, there = browse(BOB), browse(ANN)
    assert '<html lang="en"' in here.get("/account").text
    assert here.post("/account/language", data={"language": "zh"}).status_code == 303
    shown = here.get("/account", headers={"Accept-Language": "en"})
    assert '<html lang="zh-Hans"' in shown.text
    assert "您的账户" in shown.text
    assert shown.headers["content-language"] == "zh-Hans"
    assert '<option value="zh" selected>' in shown.text
    assert '<html lang="en"' in there.get("/account").text
    assert audit.list_entries(container.database)[0].detail == {
        "before": None,
        "after": "zh",
    }
    for nothing in ("", "xx", "en-US"):
        here.post("/account/language", data={"language": nothing})
        assert people.get_by_email(container.database, BOB).language is None
    changes = [one.detail for one in audit.list_entries(container.database, limit=3)]
    assert changes[-1] == {"before": "zh", "after": None}
    assert "您的账户" in here.get("/account", headers={"Accept-Language": "zh-TW"}).text
