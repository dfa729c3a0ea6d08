"""What programs put in, as it is stored: requests in order, keys, states, and who may read what is listed."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from backend.store.database import Database
from backend.store.documents import pushed_documents, pushes
from backend.store.documents.pushed_documents import StoredPushedDocuments
from backend.store.documents.pushes import EncodedDocument, Push
from backend.store.sync import runs, schedule, sources
from backend.store.sync.sources import Source
from connectors.access import NOBODY, Access
from connectors.document import Document, Section
from connectors.errors import ConflictError, NotFoundError, TemporarilyUnavailableError
from connectors.extraction.registry import TEXT
from connectors.sources.ingest.pushed_documents import PushedDocument
from indexing.ingestion.ledger import Failed
from tests.support.races import race
from tests.support.store import Store, store_at

NOW = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
ANN, BOB = "user:ann@example.com", "user:bob@example.com"


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    with store_at(database_url) as made:
        sources.add(made.database, "desk", "ingest", {})
        yield made


@pytest.fixture
def desk(store: Store) -> Source:
    return sources.find(store.database, "desk")


def _document(
    name: str, text: str = "It says this.", reader: str = ANN, version: str = ""
) -> Document:
    return Document(
        id=f"desk:{name}",
        source="desk",
        title=name,
        sections=(Section(text=text),),
        link="",
        media_type=TEXT,
        access=Access.to([reader]),
        version=version,
    )


def _encode(name: str, text: str = "It says this.", reader: str = ANN) -> EncodedDocument:
    return pushes.encode(PushedDocument(document=_document(name, text, reader)))


def _push(desk: Source, key: str | None = None, digest: str = "d", at: datetime = NOW) -> Push:
    return Push(source_id=desk.id, digest=digest, key=key, at=at)


def _save(store: Store, desk: Source, *changed: EncodedDocument) -> None:
    with store.database.transaction() as database:
        pushes.save(database, _push(desk), changed, {})


def _delete(store: Store, desk: Source, *names: str) -> None:
    with store.database.transaction() as database:
        pushes.save_deletion(database, _push(desk), [f"desk:{each}" for each in names], {})


def _list_changes(store: Store, desk: Source) -> list[str]:
    """All of them, page by page."""
    pushed, found, after = StoredPushedDocuments(store.database, desk), list[str](), 0
    while page := pushed.list_changes(after):
        found += [each.document_id.partition(":")[2] for each in page]
        after = page[-1].push
    return found


def _index(store: Store, desk: Source, name: str) -> None:
    """Enter the document as if a sync had indexed it."""
    found = StoredPushedDocuments(store.database, desk).find(f"desk:{name}")
    assert found
    store.hold(found.document)


def _states(store: Store, desk: Source) -> dict[str, str]:
    found = pushed_documents.list_states(store.database, desk, "", 100)
    return {each.title: each.state for each in found}


def test_changes_come_in_the_order_of_their_requests(store: Store, desk: Source) -> None:
    _save(store, desk, _encode("b"), _encode("c"))
    _save(store, desk, _encode("a"))
    _save(store, desk, _encode("b", "It says more."))
    _delete(store, desk, "c")
    assert _list_changes(store, desk) == ["a", "b", "c"]
    pushed = StoredPushedDocuments(store.database, desk)
    found = pushed.find("desk:b")
    assert found
    assert found.document.sections[0].text == "It says more."
    assert pushed.find("desk:c") is None


@pytest.mark.parametrize("page", [1, 2, 3, 5, 100])
def test_no_page_ends_within_a_request(
    store: Store, desk: Source, page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pushed_documents, "_PAGE", page)
    for number in range(4):
        _save(store, desk, *(_encode(f"{number}-{one}") for one in range(3)))
    expected = [f"{number}-{one}" for number in range(4) for one in range(3)]
    assert _list_changes(store, desk) == expected


def test_a_request_that_is_not_committed_yet_is_not_passed_over(store: Store, desk: Source) -> None:
    """Its number is taken when no other request can be committed before it."""

    def first(database: Database) -> None:
        pushes.save(database, _push(desk), [_encode("first")], {})

    def second() -> list[str]:
        _save(store, desk, _encode("second"))
        return _list_changes(store, desk)

    assert race(store.database, first, second) == ["first", "second"]


def test_a_key_counts_for_its_source_and_its_day_alone(store: Store, desk: Source) -> None:
    other = sources.add(store.database, "other", "ingest", {})
    with store.database.transaction() as database:
        pushes.save(database, _push(desk, "k"), [_encode("a")], {"accepted": 1})
    assert pushes.find_answer(store.database, _push(desk, "k")) == {"accepted": 1}
    with pytest.raises(ConflictError, match="another request"):
        pushes.find_answer(store.database, _push(desk, "k", "another"))
    assert pushes.find_answer(store.database, _push(other, "k", "another")) is None
    assert pushes.find_answer(store.database, _push(desk)) is None
    later = NOW + pushes.KEY_LASTS + timedelta(seconds=1)
    assert pushes.find_answer(store.database, _push(desk, "k", "another", later)) is None


def test_the_state_of_a_document_is_that_of_its_last_request(store: Store, desk: Source) -> None:
    _save(store, desk, *map(_encode, ("waits", "found", "failed", "gone")))
    _index(store, desk, "found")
    _index(store, desk, "gone")
    failed = Failed(source="desk", document_id="desk:failed", item="failed", reason="It is odd.")
    store.ledger.save([failed])
    _delete(store, desk, "gone")
    assert _states(store, desk) == {
        "failed": "failed",
        "found": "indexed",
        "gone": "deleting",
        "waits": "waiting",
    }
    assert pushed_documents.find_state(store.database, desk, "desk:failed").problem == "It is odd."
    (only,) = pushed_documents.list_states(store.database, desk, "", 100, "waiting")
    assert (only.title, only.problem) == ("waits", None)
    later = Push(source_id=desk.id, digest="", key=None, at=datetime.now(UTC) + timedelta(hours=1))
    with store.database.transaction() as database:
        pushes.save(database, later, [_encode("failed", "New."), _encode("found", "New.")], {})
    assert {_states(store, desk)[each] for each in ("failed", "found")} == {"waiting"}


def test_what_is_deleted_is_forgotten_once_the_index_has_it_no_more(
    store: Store, desk: Source
) -> None:
    _save(store, desk, _encode("held"), _encode("new"))
    _index(store, desk, "held")
    _delete(store, desk, "held", "new")
    assert _states(store, desk) == {"held": "deleting"}
    with pytest.raises(NotFoundError):
        pushed_documents.find_state(store.database, desk, "desk:new")
    pushes.remove_deleted(store.database, desk.id, 1)
    assert _list_changes(store, desk) == ["held", "new"], "no sync has read that they are gone"
    pushes.remove_deleted(store.database, desk.id, 2)
    assert _list_changes(store, desk) == ["held"]


def test_a_listing_admits_to_a_former_version_only_whoever_may_read_both(
    store: Store, desk: Source
) -> None:
    _save(store, desk, _encode("same"), _encode("other"), _encode("gone"), _encode("unread"))
    for name in ("same", "other", "gone"):
        _index(store, desk, name)
    _save(store, desk, _encode("other", "New.", BOB))
    _delete(store, desk, "gone")
    pushed = StoredPushedDocuments(store.database, desk)
    listed = {each.document_id: each.access for each in pushed.list_existing("")}
    assert listed == {
        "desk:gone": NOBODY,
        "desk:other": Access.all_of([[ANN], [BOB]]),
        "desk:same": Access.to([ANN]),
        "desk:unread": Access.to([ANN]),
    }


def test_what_was_read_of_a_file_that_was_replaced_since_is_not_kept(
    store: Store, desk: Source
) -> None:
    file = pushes.encode(PushedDocument(document=_document("f"), file=b"# One"))
    _save(store, desk, file)
    pushed = StoredPushedDocuments(store.database, desk)
    first = pushed.find("desk:f")
    assert first
    assert first.file == b"# One"
    _save(store, desk, pushes.encode(PushedDocument(document=_document("f"), file=b"# Two")))
    pushed.keep_read(PushedDocument(document=first.document))
    second = pushed.find("desk:f")
    assert second
    assert second.file == b"# Two"
    assert schedule.read_plans(store.database, "desk")["desk"].starts["permissions"] is None
    pushed.keep_read(PushedDocument(document=second.document, problem="it is odd"))
    assert schedule.read_plans(store.database, "desk")["desk"].starts["permissions"] is not None
    third = pushed.find("desk:f")
    assert third
    assert (third.file, third.problem) == (None, "it is odd")
    assert _states(store, desk) == {"f": "failed"}
    assert pushes.find_unchanged(store.database, desk.id, [file]) == frozenset()


def _encode_file(name: str, source: str = "desk", size: int = 6) -> EncodedDocument:
    document = replace(_document(name), id=f"{source}:{name}", source=source)
    return pushes.encode(PushedDocument(document=document, file=b"x" * size))


def test_too_many_waiting_files_are_refused(
    store: Store, desk: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pushes, "MOST_WAITING_BYTES", 40)
    _save(store, desk, _encode_file("a"))
    with pytest.raises(TemporarilyUnavailableError, match="paused, resume it"):
        _save(store, desk, _encode_file("b"))
    _save(store, desk, _encode("c"))
    _save(store, desk, _encode_file("a", size=9))
    assert _list_changes(store, desk) == ["c", "a"], "a file may take the place of one that waits"


def test_files_of_a_source_that_is_not_read_leave_room_for_others(
    store: Store, desk: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pushes, "MOST_WAITING_BYTES", 40)
    for name in ("one", "two", "three"):
        _save(store, sources.add(store.database, name, "ingest", {}), _encode_file("a", name, 12))
    _save(store, desk, _encode_file("a"))
    with pytest.raises(TemporarilyUnavailableError, match="in a while"):
        _save(store, desk, _encode_file("b", size=3))
    assert _list_changes(store, desk) == ["a"]


def test_a_damaged_text_is_named_and_ends_nothing(store: Store, desk: Source) -> None:
    broken = replace(_encode("a"), content=b"no text")
    _save(store, desk, broken)
    found = StoredPushedDocuments(store.database, desk).find("desk:a")
    assert found
    assert found.problem == "what was stored of it is damaged: put it in again"


def test_a_source_takes_its_documents_with_it(store: Store, desk: Source) -> None:
    _save(store, desk, _encode("a"))
    assert not runs.history(store.database, "desk", 1)
    sources.remove(store.database, "desk")
    again = sources.add(store.database, "desk", "ingest", {})
    assert _list_changes(store, again) == []
