"""Documents that programs put in, over HTTP: taken one by one, found by their readers alone, replaced and deleted by their ids."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from backend.access.api_tokens import ApiTokenService, TokenScope
from backend.access.groups import GroupService
from backend.access.roles import Role
from backend.api.app import Api
from backend.container import Container
from backend.schemas.new_document import NewDocument
from backend.sources.ingestion import IngestService, RequestMark
from backend.sources.service import SourceService
from backend.store import audit
from backend.store.accounts import people
from backend.store.audit import AuditEntry
from backend.store.documents import pushes
from backend.store.sync import sources
from backend.store.sync.sources import SourcesOf
from backend.sync.foreground_run import sync
from tests.contract.connector_worlds.held import list_documents
from tests.support.accounts import add_person
from tests.unit.backend.api.conftest import ADDRESS, connected, make_container
from tests.unit.backend.api.routes.test_conversations import _serve

ANN, SAM, TOM, BOB, EVE = (f"{name}@example.com" for name in ("ann", "sam", "tom", "bob", "eve"))
ROLES = {ANN: Role.ADMIN, SAM: Role.SOURCE_MANAGER, TOM: Role.SOURCE_MANAGER, BOB: Role.MEMBER}
DOCUMENTS, PROGRESS, SOURCE = "/api/documents", "/api/ingestion", "tickets"
OF_BOB = [f"user:{BOB}"]


@pytest.fixture(params=["sqlite", "postgresql"], scope="module")
def container(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, folder: Path
) -> Iterator[Container]:
    home = tmp_path_factory.mktemp("ingest-home")
    if request.param == "sqlite":
        yield _prepare(make_container(home), folder)
        return
    with request.getfixturevalue("postgresql").new() as url:
        made = _prepare(make_container(home, database_url=url), folder)
        with closing(made.database):
            yield made


def _prepare(container: Container, folder: Path) -> Container:
    connected(container, folder)
    for email, role in ROLES.items():
        add_person(container.database, email, role)
    add_person(container.database, EVE)
    GroupService(container.database).create("support")
    GroupService(container.database).add_member("support", BOB)
    for email, name in ((SAM, SOURCE), (TOM, "toms")):
        _service_of(container, email).add("ingest", {"description": "Of the desk."}, name=name)
    return container


def _service_of(container: Container, email: str) -> SourceService:
    person = people.get_by_email(container.database, email)
    return SourceService.of(container.sources, choice=SourcesOf(person.id))


@pytest.fixture(scope="module")
def app(container: Container) -> Iterator[Api]:
    with _serve(container) as app:
        yield app


def _client(app: Api, container: Container, email: str | None, scope: TokenScope) -> TestClient:
    owner = None if email is None else people.get_by_email(container.database, email)
    name = f"token-{time.monotonic_ns()}"
    token = ApiTokenService(container.database, owner=owner).create(
        name, [scope], timedelta(days=1)
    )
    return TestClient(app, base_url=ADDRESS, headers={"Authorization": f"Bearer {token}"})


@pytest.fixture(scope="module")
def sam(app: Api, container: Container) -> TestClient:
    """A program of the person who looks after the source."""
    return _client(app, container, SAM, TokenScope.INGEST)


@pytest.fixture(scope="module")
def bob(app: Api, container: Container) -> TestClient:
    return _client(app, container, BOB, TokenScope.SEARCH)


@pytest.fixture(scope="module")
def eve(app: Api, container: Container) -> TestClient:
    return _client(app, container, EVE, TokenScope.SEARCH)


def _document(name: str, text: str = "", **more: object) -> dict[str, object]:
    said = text or f"The {name} blade was dull; a new one helped."
    return {"id": name, "title": f"Ticket {name}", "text": said, "readers": OF_BOB} | more


def _push(client: TestClient, *documents: object, source: str = SOURCE, key: str = "") -> Any:
    headers = {"Idempotency-Key": key} if key else {}
    body = {"source": source, "documents": documents}
    return client.post(DOCUMENTS, json=body, headers=headers)


def _take(client: TestClient, *documents: object) -> Any:
    """What was answered, where all are taken."""
    sent = _push(client, *documents)
    assert sent.status_code == 202, sent.text
    assert sent.json()["refused"] == 0, sent.text
    return sent.json()


def _sync(container: Container, name: str = SOURCE) -> None:
    source = sources.find(container.database, name)
    steps = sync(
        container.database,
        source,
        container.sources.connector(source),
        container.sources.pipeline(source),
    )
    assert list(steps)


def _found(client: TestClient, words: str) -> set[str]:
    answer = client.post("/api/search", json={"query": words, "limit": 50})
    assert answer.status_code == 200, answer.text
    results = answer.json()["results"]
    return {one["document_id"] for one in results if one["source"] == SOURCE}


def _state(client: TestClient, name: str) -> Any:
    return client.get(f"{PROGRESS}/{SOURCE}:{name}").json()


def _last_audit(container: Container) -> AuditEntry:
    return audit.list_entries(container.database, limit=1)[0]


def test_what_a_program_puts_in_is_found_by_its_readers_alone(
    sam: TestClient, bob: TestClient, eve: TestClient, container: Container
) -> None:
    answer = _take(sam, _document("quibber"))
    assert answer["accepted"] == 1
    assert answer["results"] == [
        {
            "index": 0,
            "id": "quibber",
            "outcome": "accepted",
            "document_id": "tickets:quibber",
            "errors": [],
        }
    ]
    waiting = sam.get(answer["progress"]).json()
    assert [one["id"] for one in waiting["documents"]] == ["quibber"]
    assert _state(sam, "quibber")["state"] == "waiting"
    assert _found(bob, "quibber blade") == set()
    _sync(container)
    assert _state(sam, "quibber")["state"] == "indexed"
    assert sam.get(answer["progress"]).json()["documents"] == []
    assert _found(bob, "quibber blade") == {"tickets:quibber"}
    assert _found(eve, "quibber blade") == set()


def test_all_that_is_said_of_a_document_is_kept(
    sam: TestClient, bob: TestClient, container: Container
) -> None:
    said = _document(
        "whole",
        link="https://tickets.example.com/1",
        updated_at="2026-03-02T09:30:00+01:00",
        created_at="2026-03-01T09:30:00Z",
        authors=[{"name": "Ann  Lee", "email": "ann@example.com"}],
        tags=["saws", "blades"],
    )
    del said["text"]
    said["sections"] = [
        {"text": "The whole story.", "headings": ["Story"], "link": "https://t.example.com/#s"},
        {"text": "Its end."},
    ]
    _take(sam, said)
    _sync(container)
    shown = bob.get(f"{DOCUMENTS}/tickets:whole").json()
    assert (shown["title"], shown["link"]) == ("Ticket whole", "https://tickets.example.com/1")
    assert shown["updated_at"] == "2026-03-02T08:30:00Z"
    assert [one["text"] for one in shown["sections"]] == ["The whole story.", "Its end."]
    document = container.sources.ledger.document("tickets:whole")
    assert document
    assert document.metadata == {"tags": ("saws", "blades")}
    assert [(one.name, one.email) for one in document.owners] == [("Ann Lee", "ann@example.com")]
    assert document.sections[0].place.heading_path == ("Story",)


def test_markdown_and_html_are_read_as_such(sam: TestClient, container: Container) -> None:
    _take(
        sam,
        _document("mark", "# Blades\n\nOf *steel*.", media_type="text/markdown"),
        _document("hyper", "<h1>Saws</h1><p>Of steel</p>", media_type="text/html"),
    )
    _sync(container)
    for name, heading in (("mark", "Blades"), ("hyper", "Saws")):
        document = container.sources.ledger.document(f"tickets:{name}")
        assert document
        assert document.sections[0].place.heading_path == (heading,)


def test_other_readers_take_the_place_of_former_ones(
    sam: TestClient, bob: TestClient, eve: TestClient, container: Container
) -> None:
    _take(sam, _document("rights", "The zimmer lever.", readers=["public"]))
    _sync(container)
    assert _found(bob, "zimmer lever") == _found(eve, "zimmer lever") == {"tickets:rights"}
    _take(sam, _document("rights", "The zimmer lever.", readers=[f"user:{EVE}"]))
    _sync(container)
    assert (_found(bob, "zimmer lever"), _found(eve, "zimmer lever")) == (set(), {"tickets:rights"})
    both = [["group:support", f"user:{EVE}"], OF_BOB]
    _take(sam, _document("rights", "The zimmer lever.", readers=both))
    _sync(container)
    assert (_found(bob, "zimmer lever"), _found(eve, "zimmer lever")) == ({"tickets:rights"}, set())


def test_a_new_version_is_never_shown_to_those_who_might_read_the_former_one_alone(
    sam: TestClient, eve: TestClient, container: Container
) -> None:
    """A permission sync between the two: it shows neither version to the readers of the other."""
    _take(sam, _document("turned", "The secret of the vorpal gear.", readers=OF_BOB))
    _sync(container)
    _take(sam, _document("turned", "The vorpal gear is public now.", readers=["public"]))
    source = sources.find(container.database, SOURCE)
    listed = {
        one.document_id: one.access for one in list_documents(container.sources.connector(source))
    }
    assert listed["tickets:turned"].to_json() == OF_BOB
    _sync(container)
    assert _found(eve, "vorpal gear") == {"tickets:turned"}
    listed = {
        one.document_id: one.access for one in list_documents(container.sources.connector(source))
    }
    assert listed["tickets:turned"].to_json() == ["public"]


def test_what_is_deleted_is_found_by_nobody(
    sam: TestClient, bob: TestClient, container: Container
) -> None:
    _take(sam, _document("gone1", "The brillig cog."), _document("gone2", "The brillig nut."))
    _sync(container)
    assert _found(bob, "brillig") == {"tickets:gone1", "tickets:gone2"}
    query = {"source": SOURCE, "id": ["gone1", "never"]}
    deleted = sam.delete(DOCUMENTS, params=query)
    assert deleted.status_code == 202
    assert deleted.json() == {"source": SOURCE, "deleted": ["gone1"], "missing": ["never"]}
    assert _state(sam, "gone1")["state"] == "deleting"
    assert sam.delete(f"{DOCUMENTS}/tickets:gone2").status_code == 204
    assert sam.delete(f"{DOCUMENTS}/tickets:gone2").status_code == 404
    _sync(container)
    assert _found(bob, "brillig") == set()
    assert _state(sam, "gone1")["status"] == 404
    _take(sam, _document("gone1", "The brillig cog."))
    _sync(container)
    assert _found(bob, "brillig") == {"tickets:gone1"}


def test_a_document_that_was_deleted_before_it_was_indexed_is_not_indexed(
    sam: TestClient, bob: TestClient, container: Container
) -> None:
    _take(sam, _document("brief", "The tulgey cog."))
    assert sam.delete(f"{DOCUMENTS}/tickets:brief").status_code == 204
    assert _state(sam, "brief")["status"] == 404
    _sync(container)
    assert _found(bob, "tulgey") == set()


def test_each_document_has_a_result_of_its_own(sam: TestClient) -> None:
    good = _document("kept")
    wrong: dict[str, dict[str, object]] = {
        "readers": {"readers": None},
        "readers.0.0": {"readers": ["ann"]},
        "title": {"title": "a\ud800"},
        "text": {"text": "x\0"},
        "id": {"id": "two\nlines"},
        "link": {"link": "javascript:alert(1)"},
        "document": {"sections": [{"text": "Twice."}]},
        "updated_at": {"updated_at": "2026-03-02T09:30:00"},
        "color": {"color": "red"},
        "authors.0.name": {"authors": [{"name": ""}]},
        "sections.0.text": {"sections": [{}], "text": None},
    }
    given = [_document(f"bad{number}") | each for number, each in enumerate(wrong.values())]
    content = json.dumps({"source": SOURCE, "documents": [*given, good, 7, None]})
    sent = sam.post(DOCUMENTS, content=content, headers={"content-type": "application/json"})
    assert sent.status_code == 202, sent.text
    results = sent.json()["results"]
    assert [one["errors"][0]["where"] for one in results[: len(wrong)]] == list(wrong)
    assert results[len(wrong)]["outcome"] == "accepted"
    assert [one["outcome"] for one in results[-2:]] == ["refused"] * 2
    assert sent.json()["refused"] == len(wrong) + 2
    assert results[0]["id"] == "bad0"
    assert results[4]["id"] is None


@pytest.mark.parametrize("readers", [[], [[]], ["public", ["public"]], ["external:1:x"], "public", [["user:x"]]])  # fmt: skip
def test_readers_are_never_guessed(sam: TestClient, readers: object) -> None:
    without = _document("unread")
    del without["readers"]
    sent = _push(sam, _document("unread2", readers=readers), without)
    first, second = sent.json()["results"]
    assert first["outcome"] == second["outcome"] == "refused"
    assert first["errors"][0]["where"].startswith("readers")
    assert second["errors"][0]["message"].startswith("Say who may read it")


def test_an_id_that_comes_twice_is_refused_twice(sam: TestClient) -> None:
    sent = _push(sam, _document("twin"), _document("other"), _document("twin", "Another text."))
    outcomes = [one["outcome"] for one in sent.json()["results"]]
    assert outcomes == ["refused", "accepted", "refused"]
    assert "same id" in sent.json()["results"][0]["errors"][0]["message"]
    assert _state(sam, "twin")["status"] == 404


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"[" * 100_000, 400),
        (b'{"source": "tickets", "documents": []}', 422),
        (b'{"documents": [{}]}', 422),
        (b'{"source": "tickets", "documents": {}}', 422),
        (b"\xff", 400),
        (json.dumps({"source": SOURCE, "documents": [{}] * 101}).encode(), 422),
        (b" " * 20_200_000, 413),
    ],
    ids=["deep", "none", "no source", "no list", "no text", "too many", "too long"],
)
def test_a_request_that_cannot_be_read_takes_nothing(
    sam: TestClient, body: bytes, status: int
) -> None:
    sent = sam.post(DOCUMENTS, content=body, headers={"content-type": "application/json"})
    assert sent.status_code == status, sent.text


def test_a_text_beyond_the_limit_is_refused_alone(sam: TestClient) -> None:
    sent = _push(sam, _document("long", "x " * 1_000_001), _document("short"))
    long, short = sent.json()["results"]
    assert (long["outcome"], long["errors"][0]["where"]) == ("refused", "text")
    assert short["outcome"] == "accepted"


def test_the_same_again_is_unchanged(sam: TestClient, container: Container) -> None:
    _take(sam, _document("same"))
    _sync(container)
    again = _take(sam, _document("same"))
    assert (again["accepted"], again["unchanged"]) == (0, 1)
    assert _state(sam, "same")["state"] == "indexed"
    changed = _take(sam, _document("same", tags=["new"]))
    assert (changed["accepted"], changed["unchanged"]) == (1, 0)


def test_a_key_makes_a_request_count_once(sam: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    first = _push(sam, _document("once"), key="a-1")
    assert sam.delete(f"{DOCUMENTS}/tickets:once").status_code == 204
    again = _push(sam, _document("once"), key="a-1")
    assert (again.status_code, again.json()) == (202, first.json())
    assert _state(sam, "once")["status"] == 404, "it was answered alike, and nothing was done"
    other = _push(sam, _document("once", "Another text."), key="a-1")
    assert other.status_code == 409
    assert "Idempotency-Key" in other.json()["detail"]
    monkeypatch.setattr(pushes, "KEY_LASTS", timedelta(0))
    later = _push(sam, _document("once", "Another text."), key="a-1")
    assert later.json()["accepted"] == 1
    assert _push(sam, _document("once"), key="two words").status_code == 422


def test_a_key_of_one_deletion_is_refused_for_another(sam: TestClient) -> None:
    _take(sam, _document("left"), _document("right"))
    key = {"Idempotency-Key": "d-1"}
    for _ in range(2):
        assert sam.delete(f"{DOCUMENTS}/tickets:left", headers=key).status_code == 204
    assert sam.delete(f"{DOCUMENTS}/tickets:right", headers=key).status_code == 409
    assert _state(sam, "right")["state"] == "waiting"


def test_a_file_is_read_by_the_sync(sam: TestClient, bob: TestClient, container: Container) -> None:
    about = {"source": SOURCE, "id": "manual", "title": "Manual", "readers": OF_BOB}
    data = b"# Manual\n\nThe frabjous wheel turns left.\n"
    sent = _push_file(sam, about, "manual.md", data, key="f-1")
    assert sent.status_code == 202, sent.text
    assert sent.json()["results"][0]["document_id"] == "tickets:manual"
    again = _push_file(sam, about, "manual.md", data, key="f-1")
    assert again.json() == sent.json(), "another boundary makes no other request"
    assert _push_file(sam, about, "manual.md", data + b"!", key="f-1").status_code == 409
    _sync(container)
    assert _found(bob, "frabjous wheel") == {"tickets:manual"}
    assert _push_file(sam, about, "manual.md", data).json()["unchanged"] == 1


BROKEN = b"%PDF-1.7 broken"


def test_a_file_that_cannot_be_read_says_why_and_may_be_sent_again(
    sam: TestClient, container: Container
) -> None:
    about = {"source": SOURCE, "id": "broken", "title": "Plan", "readers": OF_BOB}
    assert _push_file(sam, about, "a.pdf", BROKEN).status_code == 202
    _sync(container)
    state = _state(sam, "broken")
    assert state["state"] == "failed"
    assert "PDF" in state["problem"]
    assert _push_file(sam, about, "a.pdf", BROKEN).json()["accepted"] == 1
    assert _push_file(sam, about, "a.md", b"The mimsy plan.").json()["accepted"] == 1
    _sync(container)
    assert _state(sam, "broken")["state"] == "indexed"


def test_a_former_version_of_a_file_that_fails_stays_for_those_who_may_read_both(
    sam: TestClient, bob: TestClient, container: Container
) -> None:
    about = {"source": SOURCE, "id": "former", "title": "Plan", "readers": OF_BOB}
    _take(sam, _document("former", "The borogove plan."))
    _sync(container)
    assert _push_file(sam, about, "a.pdf", BROKEN).status_code == 202
    _sync(container)
    assert _found(bob, '"borogove plan"') == {"tickets:former"}
    narrowed = about | {"readers": [f"user:{EVE}"]}
    assert _push_file(sam, narrowed, "a.pdf", BROKEN).json()["accepted"] == 1
    _sync(container)
    assert _found(bob, '"borogove plan"') == set()


@pytest.mark.parametrize(
    ("about", "name", "data", "says"),
    [
        ("no JSON", "a.txt", b"x", "metadata.document"),
        ('{"source": "tickets"}', "a.txt", b"x", "metadata.id"),
        ('{"source": "tickets", "id": "a", "title": "A", "text": "x", "readers": ["public"]}', "a.txt", b"x", "metadata.text"),
        ('{"source": "tickets", "id": "a", "title": "A", "readers": ["public"]}', "a.txt", b"", "a.txt is empty"),
        ('{"source": "tickets", "id": "a", "title": "A", "readers": ["public"]}', "a.zip", b"PK\x03\x04", "application/zip"),
        ("[" * 50_000, "a.txt", b"x", "metadata.document"),
    ],
    ids=["no JSON", "no id", "a text too", "empty", "zip", "deep"],
)  # fmt: skip
def test_a_file_that_is_not_taken_says_why(
    sam: TestClient, about: str, name: str, data: bytes, says: str
) -> None:
    sent = sam.post(f"{DOCUMENTS}/file", data={"metadata": about}, files={"file": (name, data)})
    assert sent.status_code == 422
    assert says in sent.text


def _push_file(client: TestClient, about: object, name: str, data: bytes, key: str = "") -> Any:
    headers = {"Idempotency-Key": key} if key else {}
    form = {"metadata": json.dumps(about)}
    return client.post(
        f"{DOCUMENTS}/file", data=form, files={"file": (name, data)}, headers=headers
    )


def test_another_source_and_a_missing_one_are_answered_alike(
    sam: TestClient, app: Api, container: Container
) -> None:
    tom = _client(app, container, TOM, TokenScope.INGEST)
    assert _push(tom, _document("x"), source="toms").status_code == 202
    answers = [
        (_push(sam, _document("x"), source=name), sam.get(f"{PROGRESS}?source={name}"),
         sam.get(f"{PROGRESS}/{name}:x"), sam.delete(f"{DOCUMENTS}/{name}:x"),
         sam.delete(DOCUMENTS, params={"source": name, "id": "x"}))
        for name in ("toms", "nobodys")
    ]  # fmt: skip
    for of_tom, of_nobody in zip(*answers, strict=True):
        assert of_tom.status_code == of_nobody.status_code == 404
        assert of_tom.text.replace("toms", "nobodys") == of_nobody.text
    ann = _client(app, container, ANN, TokenScope.INGEST)
    assert ann.get(f"{PROGRESS}/toms:x").status_code == 200
    service = _client(app, container, None, TokenScope.INGEST)
    assert service.get(f"{PROGRESS}/toms:x").status_code == 200


def test_only_a_token_made_for_it_of_who_manages_sources_puts_documents_in(
    app: Api, container: Container
) -> None:
    for email, scope in ((SAM, TokenScope.ADMIN), (SAM, TokenScope.SEARCH), (BOB, TokenScope.INGEST)):  # fmt: skip
        client = _client(app, container, email, scope)
        assert _push(client, _document("x")).status_code == 403
    sam = _client(app, container, SAM, TokenScope.INGEST)
    assert sam.post("/api/search", json={"query": "blade"}).status_code == 403


def test_a_source_of_another_kind_takes_nothing(app: Api, container: Container) -> None:
    ann = _client(app, container, ANN, TokenScope.INGEST)
    sent = _push(ann, _document("x"), source="wiki")
    assert sent.status_code == 409
    assert "kind ingest" in sent.json()["detail"]


def test_batches_are_in_the_audit(sam: TestClient, container: Container) -> None:
    _push(sam, _document("audited"), {})
    entry = _last_audit(container)
    assert (entry.action, entry.subject) == ("put_in", SOURCE)
    assert entry.detail == {"accepted": 1, "unchanged": 0, "refused": 1}
    assert entry.actor.endswith(f" of {SAM}")
    sam.delete(DOCUMENTS, params={"source": SOURCE, "id": "audited"})
    entry = _last_audit(container)
    assert (entry.action, entry.detail) == ("delete_documents", {"deleted": 1})


def test_documents_are_listed_page_by_page(sam: TestClient) -> None:
    names = [f"page{number:02}" for number in range(25)]
    _take(sam, *map(_document, names))
    found: list[str] = []
    query: dict[str, Any] = {"source": SOURCE, "limit": 7}
    while True:
        page = sam.get(PROGRESS, params=query).json()
        found += [one["id"] for one in page["documents"]]
        if page["next"] is None:
            break
        query["after"] = page["next"]
    assert found == sorted(set(found))
    assert set(names) <= set(found)


def test_two_programs_that_put_one_id_in_at_once_leave_one_of_both(
    sam: TestClient, bob: TestClient, container: Container
) -> None:
    texts = [f"The jubjub text number {number}." for number in range(8)]
    person = people.get_by_email(container.database, SAM)
    service = IngestService(container.database, audit.OWNER, SourcesOf(person.id))

    def put_in(text: str) -> str:
        given = NewDocument.model_validate(_document("raced", text))
        (result,) = service.push(SOURCE, [given], RequestMark(digest=text)).results
        return result.outcome

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(put_in, texts)) == {"accepted"}
    _sync(container)
    (section,) = bob.get(f"{DOCUMENTS}/tickets:raced").json()["sections"]
    assert section["text"] in texts
    assert _state(sam, "raced")["state"] == "indexed"


def test_a_paused_source_takes_documents_and_says_that_they_wait(
    sam: TestClient, container: Container
) -> None:
    service = _service_of(container, SAM)
    service.pause(SOURCE)
    try:
        assert "paused" in _take(sam, _document("patient"))["notice"]
    finally:
        service.resume(SOURCE)


def test_a_source_that_is_being_removed_takes_nothing(app: Api, container: Container) -> None:
    tom = _client(app, container, TOM, TokenScope.INGEST)
    service = _service_of(container, TOM)
    service.add("ingest", {}, name="brief")
    assert _push(tom, _document("x"), source="brief").status_code == 202
    service.delete("brief")
    assert _push(tom, _document("y"), source="brief").status_code == 409
    with _removed(container, "brief"):
        assert _push(tom, _document("y"), source="brief").status_code == 404
        service.add("ingest", {}, name="brief")
        assert tom.get(f"{PROGRESS}?source=brief").json()["documents"] == []


@contextmanager
def _removed(container: Container, name: str) -> Iterator[None]:
    sources.remove(container.database, name)
    yield
