"""Signing in through a provider as a browser does it: to it, back, into an account, and linking one."""

import re
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from fastapi.testclient import TestClient
from httpx2 import Response

from backend.access.people import BY_ADMIN, PeopleService
from backend.access.roles import Role
from backend.access.sessions import Visitor, begin_session, make_csrf_token
from backend.cli.listening import Listening
from backend.cli.server import Owner, make_app
from backend.container import Container
from backend.settings import Settings
from backend.store import audit
from backend.store.accounts import people
from backend.store.accounts.people import Person
from backend.web.pages import openid_pages
from connectors.access import Readers
from tests.support.accounts import CHEAP, PASSWORD, find_person
from tests.support.openid_provider import (
    CLIENT_ID,
    CLIENT_SECRET,
    OpenIdProvider,
    openid_provider,
)

ADDRESS = "http://127.0.0.1:8321"
CALLBACK = "/sign-in/openid/callback"
ANN = {"email": "ann@example.com", "email_verified": True, "name": "Ann", "groups": ["legal"]}


@pytest.fixture
def provider() -> Iterator[OpenIdProvider]:
    with openid_provider() as server:
        server.claims |= ANN
        yield server


@pytest.fixture
def container(tmp_path: Path, provider: OpenIdProvider) -> Iterator[Container]:
    values = {
        "home": tmp_path,
        "oidc_issuer": provider.issuer,
        "oidc_client_id": CLIENT_ID,
        "oidc_client_secret": CLIENT_SECRET,
        "oidc_domains": "example.com",
    }
    made = Container(Settings.model_validate(values))
    with closing(made.database):
        yield made


@pytest.fixture
def admin(container: Container) -> Person:
    return add_person(container, "admin@example.com", Role.ADMIN)


def add_person(container: Container, email: str, role: Role = Role.MEMBER) -> Person:
    return people.add(
        container.database,
        email=email,
        name="Somebody",
        role=role,
        password_hash=None,
        verified=BY_ADMIN,
        created_at=datetime.now(UTC),
    )


@pytest.fixture
def browser(container: Container, admin: Person) -> TestClient:
    del admin
    return open_browser(container)


def open_browser(container: Container) -> TestClient:
    app = make_app(
        container,
        Owner(container.sign_in.machine_secret, Readers.of()),
        Listening(address="127.0.0.1"),
    )
    return TestClient(app, base_url=ADDRESS, follow_redirects=False)


def go_to_provider(browser: TestClient, path: str = "/sign-in/openid") -> str:
    """The address at which the provider sends the browser back."""
    led = browser.get(path)
    assert led.status_code == 303, led.text
    return httpx.get(led.headers["location"]).headers["location"]


def sign_in(browser: TestClient, path: str = "/sign-in/openid") -> Response:
    return browser.get(go_to_provider(browser, path))


def trouble(response: Response) -> str:
    found = re.search(r'<p class="notice trouble"[^>]*>([^<]*)<', response.text)
    assert found, response.text
    return found[1]


def who(browser: TestClient, container: Container) -> str | None:
    """The address of the person who is signed in."""
    session = browser.cookies.get(container.sign_in.machine_secret.name_cookie("account"))
    person = find_person(container.database, session) if session else None
    assert (browser.get("/sign-in").status_code == 303) == (person is not None)
    return person.email if person else None


def sign_in_otherwise(browser: TestClient, container: Container, person: Person) -> None:
    session = begin_session(container.database, person, Visitor())
    browser.cookies.set(container.sign_in.machine_secret.name_cookie("account"), session)


def test_the_sign_in_page_offers_the_provider(browser: TestClient) -> None:
    text = browser.get("/sign-in?next=/ask%3Fq%3D1").text
    assert 'href="/sign-in/openid?next=/ask%3Fq%3D1"' in text
    assert "Sign in with 127.0.0.1" in text


def test_who_comes_back_is_signed_in_and_led_on(browser: TestClient, container: Container) -> None:
    answer = sign_in(browser, "/sign-in/openid?next=/sources")
    assert (answer.status_code, answer.headers["location"]) == (303, "/sources")
    person = people.get_by_email(container.database, "ann@example.com")
    assert (person.role, person.name) == (Role.MEMBER, "Ann")
    assert who(browser, container) == "ann@example.com"
    assert not [name for name in browser.cookies if "openid" in name]


def test_a_redirect_leads_to_this_server_alone(browser: TestClient) -> None:
    answer = sign_in(browser, "/sign-in/openid?next=//evil.example.com")
    assert answer.headers["location"] == "/"


def test_the_attempt_is_sealed_in_the_cookie(browser: TestClient) -> None:
    state = browser.get("/sign-in/openid").headers["location"].split("state=")[1].split("&")[0]
    (cookie,) = (value for name, value in browser.cookies.items() if "openid" in name)
    assert state not in cookie
    header = browser.get("/sign-in/openid").headers["set-cookie"]
    assert "HttpOnly" in header
    assert "SameSite=lax" in header
    assert "Max-Age=600" in header


def test_the_session_of_before_has_ended(browser: TestClient, container: Container) -> None:
    sign_in(browser)
    cookie = container.sign_in.machine_secret.name_cookie("account")
    before = browser.cookies[cookie]
    sign_in(browser)
    assert browser.cookies[cookie] != before
    other = open_browser(container)
    other.cookies.set(cookie, before)
    assert who(other, container) is None


def test_another_browser_cannot_come_back_in_place_of_the_one_that_went(
    browser: TestClient, container: Container, provider: OpenIdProvider
) -> None:
    back = go_to_provider(browser)
    answer = open_browser(container).get(back)
    assert answer.status_code == 403
    assert "did not begin the sign-in" in trouble(answer)
    assert "/token" not in provider.requests


def test_a_cookie_of_another_attempt_is_refused(
    browser: TestClient, container: Container, provider: OpenIdProvider
) -> None:
    """Under the name that the state asks for."""
    other = open_browser(container)
    back, _ = go_to_provider(browser), go_to_provider(other)
    (name,) = (name for name in browser.cookies if "openid" in name)
    (value,) = (value for name, value in other.cookies.items() if "openid" in name)
    stranger = open_browser(container)
    stranger.cookies.set(name, value)
    assert "began another sign-in" in trouble(stranger.get(back))
    assert "/token" not in provider.requests


@pytest.mark.parametrize("value", ["", "nonsense"])
def test_a_cookie_that_was_not_sealed_here_is_refused(
    browser: TestClient, container: Container, value: str
) -> None:
    back = go_to_provider(browser)
    (name,) = (name for name in browser.cookies if "openid" in name)
    stranger = open_browser(container)
    stranger.cookies.set(name, value)
    assert "began another sign-in" in trouble(stranger.get(back))


def test_an_attempt_comes_back_once_even_if_its_cookie_is_kept(
    browser: TestClient, container: Container, provider: OpenIdProvider
) -> None:
    back = go_to_provider(browser)
    cookies = dict(browser.cookies)
    assert browser.get(back).status_code == 303
    again = open_browser(container)
    again.cookies.update(cookies)
    assert "was already completed" in trouble(again.get(back))
    assert provider.requests.count("/token") == 1


def test_an_account_of_the_address_is_not_entered_but_can_be_linked(
    browser: TestClient, container: Container
) -> None:
    ann = add_person(container, "ann@example.com", Role.SOURCE_MANAGER)
    refused = sign_in(browser)
    assert refused.status_code == 403
    assert "There is an account of ann@example.com already" in trouble(refused)
    # Once she has signed in there, she is led to the provider again.
    assert 'name="next" value="/sign-in/openid/continue"' in refused.text
    assert 'content="0; url=/sign-in/openid"' in browser.get("/sign-in/openid/continue").text
    assert who(browser, container) is None

    sign_in_otherwise(browser, container, ann)
    asked = sign_in(browser)
    assert asked.status_code == 200
    assert "came back from 127.0.0.1 as" in asked.text
    fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', asked.text))
    linked = browser.post("/sign-in/openid/link", data=fields)
    assert (linked.status_code, linked.headers["location"]) == (303, "/")

    fresh = open_browser(container)
    assert sign_in(fresh).status_code == 303
    assert who(fresh, container) == "ann@example.com"
    recorded = audit.list_entries(container.database)
    assert [each.action for each in recorded[:3]] == ["sign_in", "set_groups", "link_identity"]
    assert recorded[0].detail == {"issuer": container.settings.oidc_issuer}


def test_linking_needs_the_password_where_there_is_one(
    browser: TestClient, container: Container
) -> None:
    """Who found a session open would keep a way in otherwise, whatever password its owner sets."""
    ann = add_person(container, "ann@example.com")
    people.set_password_hash(container.database, ann.id, CHEAP.hash(PASSWORD))
    sign_in_otherwise(browser, container, ann)
    asked = sign_in(browser)
    fields = dict(re.findall(r'name="(identity|csrf_token)" value="([^"]*)"', asked.text))
    refused = browser.post("/sign-in/openid/link", data={**fields, "current": "wrong"})
    assert refused.status_code == 422
    assert "The current password is not right." in refused.text
    assert fields.items() <= dict(re.findall(r'name="(\w+)" value="([^"]*)"', refused.text)).items()
    linked = browser.post("/sign-in/openid/link", data={**fields, "current": PASSWORD})
    assert (linked.status_code, linked.headers["location"]) == (303, "/")


def test_linking_needs_the_proof_of_the_session_and_its_own_person(
    browser: TestClient, container: Container, admin: Person
) -> None:
    ann = add_person(container, "ann@example.com")
    sign_in_otherwise(browser, container, ann)
    text = sign_in(browser).text
    fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', text))
    assert (
        browser.post("/sign-in/openid/link", data={"identity": fields["identity"]}).status_code
        == 403
    )
    sign_in_otherwise(browser, container, admin)
    token = make_csrf_token(
        browser.cookies[container.sign_in.machine_secret.name_cookie("account")]
    )
    other = browser.post("/sign-in/openid/link", data={**fields, "csrf_token": token})
    assert other.status_code == 409
    nonsense = {"identity": "nonsense", "csrf_token": token}
    assert browser.post("/sign-in/openid/link", data=nonsense).status_code == 422
    assert open_browser(container).post("/sign-in/openid/link", data=fields).status_code == 401
    assert sign_in(open_browser(container)).status_code == 403


def test_a_disabled_account_is_dead_at_once(browser: TestClient, container: Container) -> None:
    sign_in(browser)
    assert who(browser, container) == "ann@example.com"
    PeopleService(container.database).disable("ann@example.com")
    assert who(browser, container) is None
    assert "disabled" in trouble(sign_in(browser))


def test_an_unverified_address_gets_no_account(
    browser: TestClient, container: Container, provider: OpenIdProvider
) -> None:
    provider.claims["email_verified"] = False
    assert "no account of yours" in trouble(sign_in(browser))
    assert len(people.list_people(container.database)) == 1


def test_a_provider_that_fails_leaves_the_password(
    browser: TestClient, provider: OpenIdProvider
) -> None:
    provider.failing = {"/.well-known/openid-configuration"}
    answer = browser.get("/sign-in/openid")
    assert answer.status_code == 503
    assert "not possible now" in trouble(answer)
    assert 'name="password"' in answer.text


def test_what_the_provider_refuses_is_said(browser: TestClient, provider: OpenIdProvider) -> None:
    provider.response_parameters = {"error": "access_denied"}
    assert "cancelled" in trouble(sign_in(browser))


@pytest.mark.parametrize("path", ["/sign-in/openid", f"{CALLBACK}?state=a&code=b"])
def test_a_quarry_without_accounts_signs_nobody_in(container: Container, path: str) -> None:
    assert open_browser(container).get(path).status_code == 404


@pytest.mark.parametrize("query", ["", "?state=", "?state=%00&code=%0a", f"?state={'x' * 5000}"])
def test_nonsense_is_refused(browser: TestClient, query: str) -> None:
    assert browser.get(f"{CALLBACK}{query}").status_code in {403, 422}


def test_the_way_back_holds_no_secret_of_quarry(browser: TestClient) -> None:
    location = browser.get("/sign-in/openid").headers["location"]
    assert CLIENT_SECRET not in location
    assert urlsplit(location).query.count("code_challenge=") == 1
    assert "verifier" not in location


def test_a_crowd_at_the_provider_is_sent_away(
    browser: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openid_pages, "_MOST_WAITING", 0)
    for path in ("/sign-in/openid", f"{CALLBACK}?state=a&code=b"):
        assert browser.get(path).status_code == 503


def invite(container: Container, email: str = "ann@example.com") -> str:
    """The code of an invitation with a role that nobody gets without one."""
    return PeopleService(container.database).invite(email, Role.SOURCE_MANAGER)


def accept(browser: TestClient, code: str) -> Response:
    return sign_in(browser, f"/sign-in/openid?invitation={code}")


def test_an_invitation_is_accepted_by_the_provider(
    browser: TestClient, container: Container
) -> None:
    code = invite(container)
    shown = browser.get(f"/invitation?code={code}").text
    assert f'href="/sign-in/openid?invitation={code}"' in shown
    assert "Continue with 127.0.0.1" in shown
    answer = accept(browser, code)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    person = people.get_by_email(container.database, "ann@example.com")
    assert (person.role, person.name) == (Role.SOURCE_MANAGER, "Ann")
    assert person.verified == container.settings.oidc_issuer
    assert who(browser, container) == "ann@example.com"
    recorded = audit.list_entries(container.database)[:4]
    assert [each.action for each in recorded] == ["sign_in", "set_groups", "link_identity", "join"]
    assert recorded[3].detail["invited_by"] == "owner"
    assert browser.get(f"/invitation?code={code}").status_code == 404
    assert browser.get(f"/sign-in/openid?invitation={code}").status_code == 404


def test_it_is_accepted_for_who_was_invited_whoever_is_signed_in(
    browser: TestClient, container: Container, admin: Person
) -> None:
    sign_in_otherwise(browser, container, admin)
    answer = accept(browser, invite(container))
    session = answer.cookies[container.sign_in.machine_secret.name_cookie("account")]
    person = find_person(container.database, session)
    assert person
    assert person.email == "ann@example.com"


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"email": "eve@example.com"}, "knows you as eve@example.com"),
        ({"email_verified": False}, "does not confirm that it is yours"),
        ({"email": "ann@elsewhere.example"}, "does not confirm that it is yours"),
        ({"email": ""}, "does not confirm that it is yours"),
    ],
)
def test_an_invitation_is_for_the_verified_address_alone(
    browser: TestClient,
    container: Container,
    provider: OpenIdProvider,
    claims: dict[str, object],
    reason: str,
) -> None:
    code = invite(container)
    provider.claims |= claims
    refused = accept(browser, code)
    assert refused.status_code == 403
    assert reason in trouble(refused)
    # The person can choose a password where they are.
    assert f'name="code" value="{code}"' in refused.text
    assert [one.email for one in people.list_people(container.database)] == ["admin@example.com"]
    assert PeopleService(container.database).find_invitation(code).email == "ann@example.com"
    assert who(browser, container) is None
    (entry,) = audit.list_entries(container.database, limit=1)
    assert (entry.action, entry.outcome) == ("sign_in", "refused")


def test_an_address_that_the_provider_does_not_vouch_for_is_invited_by_password_alone(
    browser: TestClient, container: Container, provider: OpenIdProvider
) -> None:
    code = invite(container, "ann@elsewhere.example")
    provider.claims["email"] = "ann@elsewhere.example"
    assert "Continue with" not in browser.get(f"/invitation?code={code}").text
    assert "does not confirm" in trouble(accept(browser, code))


def test_an_invitation_that_ended_meanwhile_makes_no_account(
    browser: TestClient, container: Container
) -> None:
    code = invite(container)
    back = go_to_provider(browser, f"/sign-in/openid?invitation={code}")
    PeopleService(container.database).withdraw_invitation("ann@example.com")
    ended = browser.get(back)
    assert ended.status_code == 404
    assert "invalid or no longer valid" in ended.text
    assert len(people.list_people(container.database)) == 1
    assert who(browser, container) is None


def test_an_identity_with_an_account_accepts_no_invitation(
    browser: TestClient, container: Container, provider: OpenIdProvider
) -> None:
    sign_in(open_browser(container))
    code = invite(container, "lee@example.com")
    provider.claims["email"] = "lee@example.com"
    refused = accept(browser, code)
    assert "You have an account already, of ann@example.com" in trouble(refused)
    assert PeopleService(container.database).find_invitation(code).email == "lee@example.com"


@pytest.mark.parametrize("error", ["access_denied", "server_error"])
def test_who_is_not_signed_in_at_the_provider_can_choose_a_password(
    browser: TestClient, container: Container, provider: OpenIdProvider, error: str
) -> None:
    code = invite(container)
    provider.response_parameters = {"error": error}
    refused = accept(browser, code)
    assert refused.status_code == 403
    assert f'name="code" value="{code}"' in refused.text
    provider.failing = {"/token"}
    provider.response_parameters = {}
    assert f'name="code" value="{code}"' in accept(browser, code).text


def test_an_invitation_offers_no_provider_where_none_is_set(tmp_path: Path) -> None:
    other = Container(Settings(home=tmp_path / "other"))
    with closing(other.database):
        add_person(other, "admin@example.com", Role.ADMIN)
        shown = open_browser(other).get(f"/invitation?code={invite(other)}")
        assert shown.status_code == 200
        assert "Continue with" not in shown.text
