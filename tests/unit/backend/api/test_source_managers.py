"""Source managers: they see and change their own sources, and reach nothing of the server that no admin allows."""

import getpass
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import iter_route_contexts
from fastapi.testclient import TestClient

from backend.access.passwords import PasswordQueue
from backend.access.people import PeopleService
from backend.access.roles import Role
from backend.api.account_authentication import AccountCookies
from backend.api.app import Api
from backend.api.authorization import Permission, get_permission
from backend.container import Container
from backend.sources.service import SourceService
from backend.store.accounts import people
from backend.store.documents.ledger import StoredLedger
from backend.store.sync import sources
from connectors.errors import ConflictError, InvalidInputError
from indexing.ingestion.ledger import Failed
from tests.support.access_routes import ROUTES
from tests.support.accounts import add_person
from tests.support.document_sets import define, source
from tests.support.statements import noted_statements
from tests.unit.backend.api.conftest import ADDRESS, make_container
from tests.unit.backend.api.test_accounts import PAGE, Browser, make_app

ANN, SAM, TOM = (f"{name}@example.com" for name in ("ann", "sam", "tom"))
LIST = "/api/admin/sources"
SITE: dict[str, Any] = {"url": "https://example.com/", "readers": ["public"]}
BODIES: dict[tuple[str, str], Any] = {
    ("PATCH", f"{LIST}/{{name}}"): {"settings": SITE},
    ("PUT", "/api/admin/document-sets/{name}"): {"name": "new", "sources": ["own"]},
}
ACTIONS = ("pause", "resume", "cancel", "refresh", "prune", "permissions", "keep")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that source managers may read, beside one that they may not."""
    place = tmp_path_factory.mktemp("server")
    for name in ("shared/docs", "secret"):
        folder = place / name
        folder.mkdir(parents=True)
        (folder / "a.md").write_text("A file.\n")
        (folder / "mail.mbox").write_text("From a Thu Jan  1 00:00:00 1970\n\nx\n")
    (place / "shared/link").symlink_to(place / "secret")
    return place / "shared"


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory, shared: Path) -> Container:
    home = tmp_path_factory.mktemp("home")
    made = make_container(
        home,
        source_roots=f"{shared}, {home}",
        source_addresses="10.1.0.0/16, 192.168.7.7, wiki.internal",
    )
    add_person(made.database, ANN, Role.ADMIN)
    for email in (SAM, TOM):
        add_person(made.database, email, Role.SOURCE_MANAGER)
    for name, owner in (("own", SAM), ("toms", TOM), ("house", None)):
        person_id = owner and people.get_by_email(made.database, owner).id
        sources.add(made.database, name, "web", SITE, owner_id=person_id or None)
        failed = Failed(source=name, document_id=f"{name}:x", item="x", reason="It is empty.")
        StoredLedger(made.database).save([failed])
        # A set of the same name, so that the routes of sets are asked for another's too.
        define(made.database, name, source(name))
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


@pytest.fixture
def sam(app: Api, container: Container, cookies: AccountCookies) -> TestClient:
    return Browser(app, container, cookies, SAM).client


@pytest.fixture
def ann(app: Api, container: Container, cookies: AccountCookies) -> TestClient:
    return Browser(app, container, cookies, ANN).client


def _list_routes(app: Api) -> list[tuple[str, str]]:
    """Return every method and path of the router that is about one source."""
    found = [
        (method, path.replace("{action}", action))
        for context in iter_route_contexts(app.routes)
        for route in [context.original_route]
        if get_permission(getattr(route, "endpoint", None)) is Permission.SOURCES
        for path in [getattr(route, "path", "")]
        for method in getattr(route, "methods", ())
        for action in (ACTIONS if "{action}" in path else ("",))
    ]
    return [(method, path) for method, path in found if "{name}" in path]


def _ask(client: TestClient, method: str, path: str, name: str) -> tuple[int, str]:
    """Return the status and the body, in which the name of the source is left out."""
    stated = ROUTES.get(f"{method} {path}")
    body = BODIES.get((method, path)) or (stated.json if stated else None)
    answer = client.request(method, path.format(name=name), json=body, headers=PAGE)
    return answer.status_code, answer.text.replace(name, "NAME")


# Whose sources they are.


def test_another_source_is_answered_as_one_that_does_not_exist(
    app: Api, sam: TestClient, container: Container
) -> None:
    routes = _list_routes(app)
    assert len(routes) > 20
    before = [sources.find(container.database, name) for name in ("toms", "house")]
    for method, path in routes:
        missing = _ask(sam, method, path, "missing")
        assert missing[0] == 404, (method, path)
        for name in ("toms", "house"):
            assert _ask(sam, method, path, name) == missing, (method, path)
    assert [sources.find(container.database, name) for name in ("toms", "house")] == before


@pytest.mark.parametrize("path", ["/source/{name}", "/source/{name}/state"])
def test_another_source_takes_the_same_work_as_one_that_does_not_exist(
    sam: TestClient, container: Container, path: str
) -> None:
    """So that no time tells of it; `tests/benchmarks/hidden_objects.py` measures that."""
    sam.get("/")  # The first request of a server looks whether there are accounts.
    asked = []
    for name in ("toms", "house", "missing"):
        with noted_statements(container.database.engine) as statements:
            answer = sam.get(path.format(name=name), headers=PAGE)
        asked.append((answer.status_code, answer.text.replace(name, "NAME"), *statements))
    assert asked[0] == asked[1] == asked[2]
    assert asked[0][0] == 404
    assert len(asked[0]) > 3


def test_the_answer_names_only_own_sources(sam: TestClient) -> None:
    refused = sam.get(f"{LIST}/toms").json()
    assert "There are: own." in refused["detail"]


def test_own_sources_are_shown_and_changed(sam: TestClient) -> None:
    statuses = {
        (method, path): _ask(sam, method, path, "own")[0]
        for method, path in [
            ("GET", f"{LIST}/{{name}}"),
            ("PATCH", f"{LIST}/{{name}}"),
            ("PUT", f"{LIST}/{{name}}/schedule"),
            ("POST", f"{LIST}/{{name}}/retry"),
            ("POST", f"{LIST}/{{name}}/refresh"),
            ("POST", f"{LIST}/{{name}}/prune"),
            ("POST", f"{LIST}/{{name}}/pause"),
            ("POST", f"{LIST}/{{name}}/resume"),
            ("GET", f"{LIST}/{{name}}/runs"),
            ("GET", f"{LIST}/{{name}}/failures"),
            ("GET", "/source/{name}"),
            ("GET", "/source/{name}/state"),
        ]
    }
    assert {code for code in statuses.values() if code not in {200, 202}} == set(), statuses
    # Nothing is to be decided.
    for method, path in (("POST", "accept"), ("POST", "keep")):
        assert _ask(sam, method, f"{LIST}/{{name}}/{path}", "own")[0] == 409


@pytest.mark.parametrize(
    "path", ["/api/sources", LIST, "/api/failures", "/sources", "/sources/table"]
)
def test_lists_show_own_sources_alone(sam: TestClient, ann: TestClient, path: str) -> None:
    by_manager, by_admin = (each.get(path, headers=PAGE).text for each in (sam, ann))
    assert '"own"' in by_manager
    for name in ('"toms"', '"house"'):
        assert name in by_admin
        assert name not in by_manager


def test_failures_of_another_source_are_as_those_of_none(sam: TestClient) -> None:
    others = [sam.get("/api/failures", params={"source": name}) for name in ("toms", "missing")]
    assert [(one.status_code, one.json()) for one in others] == [(200, []), (200, [])]
    own = sam.get("/api/failures", params={"source": "own"}).json()
    assert [one["document_id"] for one in own] == ["own:x"]


def test_what_is_for_admins_is_not_on_the_pages_of_managers(
    sam: TestClient, ann: TestClient
) -> None:
    for client, links in ((sam, 0), (ann, 1)):
        page = client.get("/source/own", headers=PAGE).text
        assert page.count('id="owner"') == page.count('href="/explain') == links
        assert client.get("/sources", headers=PAGE).text.count('href="/audit"') == links
        assert 'href="/sources"' in client.get("/", headers=PAGE).text


def test_a_manager_does_not_change_who_owns_a_source(sam: TestClient, ann: TestClient) -> None:
    for name in ("own", "toms", "missing"):
        assert sam.put(f"{LIST}/{name}/owner", json={"email": SAM}).status_code == 403
    for body in ({"owner": TOM}, {"settings": SITE, "owner_id": 1}, {"settings": {"owner": TOM}}):
        assert sam.patch(f"{LIST}/own", json=body).status_code == 422
    added = {"kind": "web", "name": "more", "settings": SITE}
    assert sam.post(LIST, json={**added, "owner": TOM}).status_code == 422
    assert sam.post(LIST, json=added).json()["owner"] == SAM
    assert "more" in {one["name"] for one in sam.get(LIST).json()}
    assert ann.put(f"{LIST}/more/owner", json={"email": TOM}).json()["owner"] == TOM
    assert sam.get(f"{LIST}/more").status_code == 404
    assert ann.put(f"{LIST}/more/owner", json={"email": None}).json()["owner"] is None
    assert ann.delete(f"{LIST}/more").status_code == 202


def test_an_admin_adds_for_all_admins(ann: TestClient) -> None:
    added = ann.post(LIST, json={"kind": "web", "name": "ours", "settings": SITE})
    assert added.json()["owner"] is None


# What of the server they reach.


def _list_attacks(shared: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield settings of every kind by which the server or its network is reached."""
    secret = shared.parent / "secret"
    places = [secret, shared / "../secret", shared / "link", shared / "link/..", "/etc", "/nowhere"]
    for place in map(str, places):
        yield "folder", {"path": place}
        yield "mbox", {"path": f"{place}/mail.mbox", "readers": ["public"]}
        yield "git", {"url": place, "readers": ["public"]}
        yield "git", {"url": f"file://{place}", "readers": ["public"]}
        yield "git", {"url": "https://example.com/x", "readers": [], "mirror": place}
        yield "github", {"repositories": ["o/n"], "mirror": place}
        export = {"kind": "export", "path": place, "workspace_url": "https://a.slack.com"}
        yield "slack", {"read": export}
        yield "imap", {"host": "imap.example.com", "user": TOM, "authority": place}
    inside = ("127.0.0.1", "localhost", "10.0.0.0/8", "10.2.0.1", "0.0.0.0/0", "::1", "a.internal")
    for host in inside:
        yield "web", {**SITE, "private_hosts": [host]}
        yield "git", {"url": "https://e.com/x", "readers": [], "private_hosts": [host]}
        yield "imap", {"host": "e.com", "user": TOM, "private_hosts": [host]}


CREDENTIALS: dict[str, Any] = {
    "github": {"token": "t"},
    "slack": {},
    "imap": {"sign_in": {"kind": "password", "password": "p"}},
}


def test_a_manager_connects_nothing_of_the_server(sam: TestClient, shared: Path) -> None:
    for kind, settings in _list_attacks(shared):
        body = {"kind": kind, "name": "attack", "settings": settings}
        refused = sam.post(LIST, json={**body, "credential": CREDENTIALS.get(kind, {})})
        assert refused.status_code == 422, settings
        assert "QUARRY_SOURCE_" in refused.text, (settings, refused.text)
    assert sam.get(f"{LIST}/attack").status_code == 404


def test_nor_by_editing_what_is_allowed(sam: TestClient, shared: Path) -> None:
    body = {"kind": "folder", "name": "docs", "settings": {"path": str(shared / "docs")}}
    assert sam.post(LIST, json=body).status_code == 201
    for place in (shared.parent / "secret", shared / "link", Path("/etc")):
        refused = sam.patch(f"{LIST}/docs", json={"settings": {"path": str(place)}})
        assert (refused.status_code, "QUARRY_SOURCE_ROOTS" in refused.text) == (422, True)
    for host in ("127.0.0.1", "10.0.0.0/8"):
        settings = {**SITE, "private_hosts": [host]}
        refused = sam.patch(f"{LIST}/own", json={"settings": settings})
        assert (refused.status_code, "QUARRY_SOURCE_ADDRESSES" in refused.text) == (422, True)
    assert sam.get(f"{LIST}/docs").json()["settings"] == body["settings"]


def test_a_refusal_does_not_tell_what_exists(sam: TestClient, shared: Path) -> None:
    def refuse(name: str) -> str:
        body = {"kind": "folder", "settings": {"path": str(shared.parent / name)}}
        return sam.post(LIST, json=body).text.replace(name, "NAME")

    assert refuse("secret") == refuse("missing")


def test_a_refusal_tells_nothing_of_the_servers_users_or_places(sam: TestClient) -> None:
    """Neither which users there are, nor their home folders, nor where Quarry itself runs."""

    def refuse(path: str) -> str:
        body = {"kind": "folder", "name": "attack", "settings": {"path": path}}
        refused = sam.post(LIST, json=body)
        assert refused.status_code == 422
        return refused.text

    user = getpass.getuser()
    assert refuse(f"~{user}/x").replace(user, "NAME") == refuse("~nobody-of-this-name/x").replace(
        "nobody-of-this-name", "NAME"
    )
    for path in ("~/x", "~", "x", "."):
        told = refuse(path)
        assert str(Path.home()) not in told
        assert str(Path.cwd()) not in told


def test_what_an_admin_allows_is_connected(sam: TestClient, shared: Path) -> None:
    for number, place in enumerate([shared, shared / "docs/../docs"]):
        body = {"kind": "folder", "name": f"allowed{number}", "settings": {"path": str(place)}}
        assert sam.post(LIST, json=body).status_code == 201
    allowed = ["10.1.2.3", "10.1.0.0/24", "192.168.7.7", "WIKI.internal"]
    settings = {**SITE, "private_hosts": allowed}
    assert sam.patch(f"{LIST}/own", json={"settings": settings}).status_code == 200


def test_no_root_opens_the_home_of_quarry(sam: TestClient, container: Container) -> None:
    """Its secrets are there: a root that holds it is a mistake of an admin."""
    for place in (container.home, container.home.parent, container.home / "index"):
        body = {"kind": "folder", "name": "home", "settings": {"path": str(place)}}
        assert sam.post(LIST, json=body).status_code == 422


def test_admins_connect_what_quarry_can_read(ann: TestClient, shared: Path) -> None:
    body = {"kind": "folder", "name": "any", "settings": {"path": str(shared.parent / "secret")}}
    assert ann.post(LIST, json=body).status_code == 201
    refused = ann.put(f"{LIST}/any/owner", json={"email": SAM})
    assert refused.status_code == 409
    assert "QUARRY_SOURCE_ROOTS" in refused.text


def test_a_path_that_leads_elsewhere_later_is_not_read(
    sam: TestClient, container: Container, shared: Path
) -> None:
    place = shared / "moving"
    place.mkdir()
    body = {"kind": "folder", "name": "moving", "settings": {"path": str(place)}}
    assert sam.post(LIST, json=body).status_code == 201
    source = sources.find(container.database, "moving")
    assert container.sources.connector(source).source == "moving"
    place.rmdir()
    place.symlink_to(shared.parent / "secret")
    with pytest.raises(InvalidInputError, match="leads out of it"):
        container.sources.connector(source)
    (content, *_) = sam.post(f"{LIST}/moving/test").json()
    assert (content["works"], "QUARRY_SOURCE_ROOTS" in content["fault"]) == (False, True)


def test_who_is_no_admin_any_more_reads_the_server_no_more(
    container: Container, shared: Path
) -> None:
    person = add_person(container.database, "former@example.com", Role.ADMIN)
    secret = {"path": str(shared.parent / "secret")}
    source = sources.add(container.database, "former", "folder", secret, owner_id=person.id)
    assert container.sources.connector(source).source == "former"
    for role in (Role.SOURCE_MANAGER, Role.MEMBER):
        PeopleService(container.database).set_role(person.email, role)
        with pytest.raises(InvalidInputError, match="QUARRY_SOURCE_ROOTS"):
            container.sources.connector(source)


# The credentials of others.


def test_nobody_sends_the_credential_of_another_elsewhere(sam: TestClient, ann: TestClient) -> None:
    secret = {"sign_in": {"kind": "header", "value": "Bearer of-the-admin"}}
    body = {"kind": "web", "name": "signed", "settings": SITE, "credential": secret}
    assert ann.post(LIST, json=body).status_code == 201
    assert ann.put(f"{LIST}/signed/owner", json={"email": SAM}).status_code == 200
    elsewhere = {**SITE, "url": "https://attacker.example/"}
    refused = sam.patch(f"{LIST}/signed", json={"settings": elsewhere})
    assert refused.status_code == 422
    assert "somebody else entered the stored one" in refused.text
    assert sam.patch(f"{LIST}/signed", json={"settings": SITE}).status_code == 200
    own = {"sign_in": {"kind": "header", "value": "Bearer own"}}
    both = {"settings": elsewhere, "credential": own}
    assert sam.patch(f"{LIST}/signed", json=both).status_code == 200
    assert sam.patch(f"{LIST}/signed", json={"settings": SITE}).status_code == 200
    for path in (f"{LIST}/signed", LIST, "/source/signed"):
        shown = sam.get(path, headers=PAGE).text
        assert "Bearer own" not in shown
        assert "of-the-admin" not in shown
    assert ann.patch(f"{LIST}/signed", json={"credential": secret}).status_code == 200
    assert sam.patch(f"{LIST}/signed", json={"settings": elsewhere}).status_code == 422


def test_a_source_may_not_be_given_to_who_may_not_reach_it(
    container: Container, shared: Path
) -> None:
    service = SourceService.of(container.sources)
    service.add("folder", {"path": str(shared.parent / "secret")}, name="given")
    with pytest.raises(ConflictError, match="QUARRY_SOURCE_ROOTS"):
        service.set_owner("given", SAM)
    assert service.set_owner("given", ANN).owner == ANN
