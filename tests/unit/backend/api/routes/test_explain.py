"""`POST /api/admin/explain`, `/api/admin/look` and their pages: for administrators only, and in the audit."""

from collections.abc import Iterator
from datetime import timedelta
from urllib.parse import urlencode

import pytest
from fastapi.testclient import TestClient

from backend.access.api_tokens import ApiTokenService, TokenScope
from backend.container import Container
from backend.store import audit
from backend.web import routes as pages
from tests.unit.backend.api.conftest import SOURCE, api, ready

PAY, LEAVE = f"{SOURCE}:finance/pay.md", f"{SOURCE}:leave.md"
ANN = "user:ann@example.com"


@pytest.fixture(scope="module")
def browser(container: Container) -> Iterator[TestClient]:
    app = api(container)
    pages.mount(app)
    with ready(app) as client:
        yield client


def test_what_a_document_requires_and_who_holds_it(client: TestClient) -> None:
    lacks = client.post("/api/admin/explain", json={"document": PAY, "readers": [ANN]}).json()
    assert (lacks["reason"], lacks["title"], lacks["source"]) == (
        "lacks_token",
        "Salary bands",
        SOURCE,
    )
    (clause,) = lacks["clauses"]
    (needed,) = clause["needed"]
    assert (clause["held"], clause["is_met"]) == ([], False)
    assert lacks["names"][needed] == "access.yaml: finance/**"
    holds = {"document": PAY, "readers": [ANN, "group:finance"]}
    readable = client.post("/api/admin/explain", json=holds).json()
    assert readable["reason"] == "readable"
    assert readable["clauses"][0]["held"][0]["path"] == ["group:finance", needed]
    unknown = {"document": f"{SOURCE}:none.md", "readers": [ANN]}
    assert client.post("/api/admin/explain", json=unknown).json()["reason"] == "unknown"


def test_nobody_but_an_administrator_learns_whether_a_document_exists(
    client: TestClient, container: Container
) -> None:
    service = ApiTokenService(container.database)
    given = service.create("seeker", [TokenScope.SEARCH], timedelta(days=1))
    authorization = {"Authorization": f"Bearer {given}"}
    before = len(audit.list_entries(container.database))
    refused = [
        client.post(path, json={"document": name, **more}, headers=authorization)
        for path, more in (("/api/admin/explain", {"readers": [ANN]}), ("/api/admin/look", {}))
        for name in (PAY, f"{SOURCE}:none.md")
    ]
    service.revoke("seeker")
    assert [answer.status_code for answer in refused] == [403] * 4
    assert refused[0].json() == refused[1].json()
    assert refused[2].json() == refused[3].json()
    assert len(audit.list_entries(container.database)) == before + 1  # that it was revoked


def test_a_look_shows_that_a_document_exists_and_not_what_it_says(
    client: TestClient, container: Container
) -> None:
    look = client.post("/api/admin/look", json={"document": PAY}).json()
    assert (look["id"], look["title"]) == (PAY, "Salary bands")
    assert look["admitted"] == [
        {
            "reader": "group:finance",
            "member_of": ["access.yaml: finance/**"],
            "source_account": None,
        }
    ]
    assert set(look) == {
        "id",
        "title",
        "source",
        "readers",
        "admitted",
        "admitted_count",
        "indexed_at",
    }
    (entry,) = audit.list_entries(container.database, limit=1)
    assert (entry.action, entry.subject, entry.detail) == ("look", SOURCE, {"document": PAY})
    assert (entry.actor, entry.address) == ("owner", None)
    assert client.get(f"/api/documents/{PAY}").status_code == 404
    missing = client.post("/api/admin/look", json={"document": f"{SOURCE}:none.md"})
    assert missing.status_code == 404


def test_only_a_form_on_the_page_looks(browser: TestClient, container: Container) -> None:
    before = len(audit.list_entries(container.database))
    shown = [browser.get(f"/document/{name}") for name in (PAY, f"{SOURCE}:finance/put.md")]
    assert [one.status_code for one in shown] == [404, 404]
    assert shown[0].text.replace(PAY, "") == shown[1].text.replace(f"{SOURCE}:finance/put.md", "")
    assert 'action="/look"' in shown[0].text
    assert len(audit.list_entries(container.database)) == before
    look = browser.post("/look", data={"document": PAY})
    assert "Salary bands" in look.text
    assert "group:finance" in look.text
    assert "band five" not in look.text
    assert f"/explain?{urlencode({'document': PAY})}" in look.text
    missing = browser.post("/look", data={"document": f"{SOURCE}:none.md"})
    assert (missing.status_code, "does not exist" in missing.text) == (404, True)
    assert browser.post("/look").status_code == 422
    assert len(audit.list_entries(container.database)) == before + 2


def test_the_page_of_a_document_leads_administrators_to_the_explanation(
    browser: TestClient,
) -> None:
    assert f"/explain?{urlencode({'document': LEAVE})}" in browser.get(f"/document/{LEAVE}").text


def test_the_page_explains_and_is_in_the_audit(browser: TestClient, container: Container) -> None:
    shown = browser.get("/explain", params={"document": PAY, "as": "ann@example.com"})
    assert shown.status_code == 200
    assert "Salary bands" in shown.text
    assert "group:finance" in shown.text
    assert "not met" in shown.text
    (entry,) = audit.list_entries(container.database, limit=1)
    assert (entry.action, entry.subject) == ("explain", SOURCE)
    assert entry.detail["document"] == PAY


def test_words_offer_the_documents_that_the_administrator_may_read(
    browser: TestClient, container: Container
) -> None:
    before = len(audit.list_entries(container.database))
    words = {"document": "annual leave", "as": "ann@example.com"}
    shown = browser.get("/explain", params=words).text
    chosen = urlencode({"document": LEAVE, "as": "ann@example.com"})
    assert f'href="/explain?{chosen.replace("&", "&amp;")}"' in shown
    hidden = browser.get("/explain", params={"document": "salary bands"}).text
    assert "Which document?" in hidden
    assert PAY not in hidden
    assert len(audit.list_entries(container.database)) == before
    unknown = browser.get("/explain", params={**words, "document": f"{SOURCE}:leave"}).text
    assert "No document of this id is indexed" in unknown
    assert LEAVE in unknown


def test_the_page_asks_for_what_it_needs(browser: TestClient, container: Container) -> None:
    before = len(audit.list_entries(container.database))
    person = browser.get("/explain?as=bob%2Bnews%40example.com").text
    assert 'name="as" value="bob+news@example.com"' in person
    assert "Which document?" not in person
    assert "Salary" not in browser.get("/explain", params={"document": PAY}).text
    wrong = browser.get("/explain", params={"document": PAY, "as": "nonsense"})
    assert "not a reader" in wrong.text
    assert len(audit.list_entries(container.database)) == before
    assert "/explain?document=wiki%3A" in browser.get(f"/source/{SOURCE}").text
