"""What every ledger must do: the one in the database, and the one in memory."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from connectors.access import EVERYBODY, NOBODY, Access
from connectors.document import Document, Section
from indexing.index.protocols import IndexedDocument
from indexing.ingestion.ledger import (
    AccessAmended,
    CheckpointReset,
    ContentLost,
    Entry,
    Failed,
    Ledger,
    Removed,
    Restored,
    Stored,
    Touched,
    Unlisted,
    Unread,
    VersionSeen,
)
from tests.support.databases import Databases, sqlite_in
from tests.support.ledger import MemoryLedger
from tests.support.store import damage_texts, lose_texts, store_at


@dataclass(frozen=True)
class Fixture:
    ledger: Ledger
    """It knows the sources `desk` and `web`."""
    lose: Callable[[str], None]
    """What it keeps of a document."""
    damage: Callable[[str], None]


@contextmanager
def _on_sqlite(request: pytest.FixtureRequest, folder: Path) -> Iterator[Fixture]:
    del request
    with _stored(sqlite_in(folder)) as fixture:
        yield fixture


@contextmanager
def _on_postgresql(request: pytest.FixtureRequest, folder: Path) -> Iterator[Fixture]:
    del folder
    databases: Databases = request.getfixturevalue("postgresql")
    with databases.new() as url, _stored(url) as fixture:
        yield fixture


@contextmanager
def _in_memory(request: pytest.FixtureRequest, folder: Path) -> Iterator[Fixture]:
    del request, folder
    ledger = MemoryLedger("desk", "web")
    yield Fixture(ledger, ledger.lose_content, ledger.damage_content)


@contextmanager
def _stored(url: str) -> Iterator[Fixture]:
    with store_at(url, "desk", "web") as store:
        lose, damage = (partial(each, store.database) for each in (lose_texts, damage_texts))
        yield Fixture(store.ledger, lose, damage)


@pytest.fixture(
    params=[_on_sqlite, _on_postgresql, _in_memory], ids=["sqlite", "postgresql", "memory"]
)
def fixture(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Fixture]:
    with request.param(request, tmp_path) as made:
        yield made


@pytest.fixture
def ledger(fixture: Fixture) -> Ledger:
    return fixture.ledger


def document(
    name: str, text: str = "Leave is 25 days.", version: str = "1", access: Access = EVERYBODY
) -> Document:
    return Document(
        id=name,
        source=name.partition(":")[0],
        title=f"About {name}",
        sections=(Section(text=text),),
        link=f"https://desk.test/{name}",
        media_type="text/plain",
        access=access,
        version=version,
    )


def stored(each: Document, generation: int = 1, content_hash: str = "h1") -> Stored:
    return Stored(document=each, content_hash=content_hash, generation=generation, chunks=1)


def failed(name: str, version: str | None = None) -> Failed:
    return Failed(
        source=name.partition(":")[0],
        document_id=name,
        item="a.txt",
        reason="it is broken",
        version=version,
    )


def test_a_stored_document_is_held_as_it_was_given(ledger: Ledger) -> None:
    one = document("desk:休暇/規程 é", access=Access.to(["user:ann@example.com", "group:hr"]))
    ledger.save([stored(one)])
    assert ledger.entries([one.id, "desk:none"]) == {
        one.id: Entry(version="1", content_hash="h1", generation=1, access=one.access, kept=True)
    }
    assert ledger.document(one.id) == one
    assert ledger.versions([one.id, "desk:none"]) == {one.id: "1"}
    assert ledger.count("desk") == 1
    assert ledger.count("web") == 0


def test_what_is_not_held_has_no_document(ledger: Ledger) -> None:
    assert ledger.document("desk:none") is None
    assert ledger.entries([]) == {}
    assert ledger.versions([]) == {}


def test_a_new_version_takes_the_place_of_the_old(ledger: Ledger) -> None:
    ledger.save([stored(document("desk:a", access=Access.to(["group:hr"])))])
    new = document("desk:a", text="Leave is 30 days.", version="2", access=NOBODY)
    ledger.save([stored(new, generation=2, content_hash="h2")])
    assert ledger.document("desk:a") == new
    assert ledger.entries(["desk:a"])["desk:a"].access == NOBODY
    assert list(ledger.scan("desk", "")) == [IndexedDocument("desk:a", 2, 1, "h2", NOBODY)]
    assert ledger.count("desk") == 1


def test_changes_are_saved_in_the_order_given(ledger: Ledger) -> None:
    first = document("desk:a")
    ledger.save(
        [stored(first), Removed("desk:a"), stored(replace(first, version="2"), generation=2)]
    )
    assert ledger.versions(["desk:a"]) == {"desk:a": "2"}
    ledger.save([VersionSeen("desk:a", "3"), Removed("desk:a")])
    assert ledger.versions(["desk:a"]) == {}


def test_all_changes_are_saved_or_none(ledger: Ledger) -> None:
    with pytest.raises(ValueError, match="nowhere"):
        ledger.save([stored(document("desk:a")), CheckpointReset("nowhere")])
    assert ledger.count("desk") == 0


def test_a_note_changes_the_version_only(ledger: Ledger) -> None:
    ledger.save([stored(document("desk:a"))])
    ledger.save([VersionSeen("desk:a", "2"), VersionSeen("desk:none", "2")])
    assert ledger.document("desk:a") == document("desk:a", version="2")
    assert ledger.versions(["desk:none"]) == {}


def test_amended_access_is_all_that_is_left_of_the_old(ledger: Ledger) -> None:
    ledger.save([stored(document("desk:a"))])
    hr = Access.to(["group:hr"])
    ledger.save([AccessAmended("desk:a", hr), AccessAmended("desk:none", hr)])
    assert ledger.entries(["desk:a", "desk:none"]).keys() == {"desk:a"}
    assert ledger.document("desk:a") == document("desk:a", access=hr)


def test_every_clause_of_a_conjunction_is_kept(ledger: Ledger) -> None:
    both = Access.all_of([["group:hr", "user:ann@example.com"], ["external:7:space"]])
    narrower = Access.all_of([["group:hr"], ["external:7:space"], ["group:board"]])
    ledger.save_conjunctions([both, EVERYBODY, NOBODY])
    ledger.save_conjunctions([both, narrower])
    ledger.save([stored(document("desk:a", access=both)), stored(document("desk:b"))])
    # Not announced before.
    other = Access.all_of([["group:c"], ["group:d"]])
    ledger.save([AccessAmended("desk:b", other), stored(document("web:c", access=narrower))])
    held = {"desk:a": both, "desk:b": other, "web:c": narrower}
    assert {each: entry.access for each, entry in ledger.entries(list(held)).items()} == held
    assert {each.id: each.access for each in ledger.scan("desk", "")} == {
        "desk:a": both,
        "desk:b": other,
    }
    kept = [ledger.document(each) for each in held]
    assert [one and one.access for one in kept] == list(held.values())
    ledger.save([AccessAmended("desk:a", EVERYBODY), AccessAmended("desk:b", both)])
    assert ledger.entries(["desk:a", "desk:b"])["desk:a"].access == EVERYBODY
    assert ledger.entries(["desk:b"])["desk:b"].access == both


def test_a_removed_document_is_forgotten_with_its_failure(ledger: Ledger) -> None:
    ledger.save([stored(document("desk:a")), failed("desk:a"), failed("desk:b")])
    ledger.save([Removed("desk:a"), Removed("desk:b"), Removed("desk:none")])
    assert ledger.document("desk:a") is None
    assert list(ledger.unseen("desk", 1)) == []


def test_a_failure_leaves_the_last_version_and_asks_to_read_it_again(ledger: Ledger) -> None:
    ledger.save([stored(document("desk:a"))])
    ledger.save([failed("desk:a")])
    assert ledger.document("desk:a") == document("desk:a", version="")
    assert ledger.entries(["desk:a"])["desk:a"].content_hash == "h1"


@pytest.mark.parametrize(
    "readable", [VersionSeen("desk:a", "2"), stored(document("desk:a"), generation=2)]
)
def test_a_document_that_is_readable_again_has_no_failure(
    ledger: Ledger, readable: VersionSeen | Stored
) -> None:
    ledger.save([failed("desk:a")])
    assert list(ledger.unseen("desk", 1)) == ["desk:a"]
    ledger.save([readable, Removed("desk:a")])
    ledger.save([failed("desk:b"), readable])
    ledger.mark_seen("desk", 1, ["desk:b"])
    held = ["desk:a"] if isinstance(readable, Stored) else []
    assert list(ledger.unseen("desk", 1)) == held


def test_what_is_unreadable_for_good_counts_as_known_until_it_changes(ledger: Ledger) -> None:
    ledger.save([stored(document("desk:a")), failed("desk:a", "9"), failed("desk:b", "9")])
    assert ledger.versions(["desk:a", "desk:b"]) == {"desk:a": "9", "desk:b": "9"}
    ledger.save([Touched("desk:a", "10"), Touched("desk:b", "10")])
    assert ledger.versions(["desk:a", "desk:b"]) == {"desk:a": "10", "desk:b": "10"}
    assert ledger.document("desk:a") == document("desk:a", version="")
    ledger.save([VersionSeen("desk:a", "1"), failed("desk:b")])
    assert ledger.versions(["desk:a", "desk:b"]) == {"desk:a": "1"}


def test_a_touched_document_has_its_new_version_and_no_failure(ledger: Ledger) -> None:
    ledger.save([stored(document("desk:a")), failed("desk:b")])
    ledger.save([Touched("desk:a", "2"), Touched("desk:b", "2"), Touched("desk:none", "2")])
    assert ledger.versions(["desk:a", "desk:b", "desk:none"]) == {"desk:a": "2"}
    assert list(ledger.unseen("desk", 1)) == ["desk:a"]


def test_what_was_never_read_is_unseen_until_it_is_listed_or_read(ledger: Ledger) -> None:
    ledger.save([Unread("desk", "desk:a"), Unread("desk", "desk:b")])
    assert ledger.entries(["desk:a"]) == {}
    ledger.mark_seen("desk", 1, ["desk:b"])
    assert list(ledger.unseen("desk", 1)) == ["desk:a"]
    ledger.save([stored(document("desk:a")), Unread("desk", "desk:b"), Removed("desk:b")])
    assert list(ledger.unseen("desk", 2)) == ["desk:a"]


def test_restoring_keeps_content_and_failure(ledger: Ledger) -> None:
    ledger.save([stored(document("desk:a"))])
    ledger.save([failed("desk:a")])
    ledger.save([Restored(document_id="desk:a", content_hash="h9", generation=7, chunks=3)])
    assert list(ledger.scan("desk", "")) == [IndexedDocument("desk:a", 7, 3, "h9", EVERYBODY)]
    assert ledger.document("desk:a") == document("desk:a", version="")


def test_a_survey_reports_who_is_to_find_what(ledger: Ledger) -> None:
    hr = Access.to(["group:hr", "user:ann@example.com"])
    ledger.save([stored(document("desk:a", access=hr)), stored(document("desk:b", access=NOBODY))])
    ledger.save([replace(stored(document("desk:c")), chunks=0), stored(document("web:d"))])
    entries = {each.id: each.access for each in ledger.scan("desk", "")}
    assert entries == {"desk:a": hr, "desk:b": NOBODY, "desk:c": NOBODY}
    ledger.save([AccessAmended("desk:a", EVERYBODY), AccessAmended("desk:b", hr)])
    entries = {each.id: each.access for each in ledger.scan("desk", "")}
    assert entries == {"desk:a": EVERYBODY, "desk:b": hr, "desk:c": NOBODY}


def test_a_survey_goes_by_code_points_from_where_it_is_reported(ledger: Ledger) -> None:
    names = [f"desk:{name}" for name in ("a", "B", "é", "z", "休", "\U0001f600", "～", "a b", "a-")]
    ledger.save([stored(document(name)) for name in names])
    ledger.save([stored(document("web:a"))])
    assert [each.id for each in ledger.scan("desk", "")] == sorted(names)
    assert [each.id for each in ledger.scan("desk", "desk:z")] == sorted(names)[-4:]


def test_surveys_and_listings_are_whole_beyond_a_page(ledger: Ledger) -> None:
    names = [f"desk:{number:05}" for number in range(2_345)]
    ledger.save([stored(document(name)) for name in names])
    assert [each.id for each in ledger.scan("desk", "")] == names
    ledger.mark_seen("desk", 4, names[::2])
    assert list(ledger.unseen("desk", 4)) == names[1::2]
    assert ledger.entries(names[:500]).keys() == set(names[:500])


def test_unseen_are_documents_and_failures_that_a_listing_did_not_have(ledger: Ledger) -> None:
    ledger.save([stored(document(f"desk:{name}")) for name in "abc"])
    ledger.save([failed("desk:c"), failed("desk:d"), failed("desk:e"), stored(document("web:a"))])
    ledger.mark_seen("desk", 1, ["desk:a", "desk:d", "desk:never heard of"])
    assert list(ledger.unseen("desk", 1)) == ["desk:b", "desk:c", "desk:e"]
    ledger.mark_seen("desk", 2, ["desk:b"])
    assert list(ledger.unseen("desk", 2)) == ["desk:a", "desk:c", "desk:d", "desk:e"]


def test_a_new_version_and_a_new_failure_do_not_forget_that_they_were_seen(ledger: Ledger) -> None:
    ledger.save([stored(document("desk:a"))])
    ledger.mark_seen("desk", 1, ["desk:a"])
    ledger.save([stored(document("desk:a", version="2"), generation=2)])
    assert list(ledger.unseen("desk", 1)) == []


@pytest.mark.soak("slow")
def test_what_is_unseen_may_be_removed_meanwhile(ledger: Ledger) -> None:
    names = [f"desk:{number:05}" for number in range(1_050)]
    ledger.save([stored(document(name)) for name in names])
    gone = []
    for name in ledger.unseen("desk", 1):
        ledger.save([Removed(name)])
        gone.append(name)
    assert gone == names


def test_unsettled_documents_are_remembered_until_they_are_amended_or_stored(
    ledger: Ledger,
) -> None:
    ledger.save([stored(document(f"desk:{name}")) for name in "abcd"])
    ledger.save([stored(document("web:a"))])
    ledger.mark_access_pending(["desk:a", "desk:b", "desk:c", "desk:none", "web:a"])
    ledger.save([AccessAmended("desk:a", NOBODY), VersionSeen("desk:b", "2")])
    assert ledger.access_pending("desk") == ["desk:b", "desk:c"]
    ledger.save([stored(document("desk:b"), generation=2)])
    assert ledger.access_pending("desk") == ["desk:c"]
    assert ledger.access_pending("web") == ["web:a"]


def test_since_when_a_document_is_unlisted_is_known_until_it_is_listed_or_stored(
    ledger: Ledger,
) -> None:
    names = [f"desk:{name}" for name in "abc"]
    ledger.save([*map(stored, map(document, names)), failed("desk:a"), failed("desk:x")])
    began = datetime.now(UTC)
    ledger.save([Unlisted(one) for one in (*names, "desk:x", "desk:none")])
    first = {one: entry.unlisted_since for one, entry in ledger.entries(names).items()}
    assert first.keys() == set(names)
    assert all(since is not None and since >= began for since in first.values())
    # What cannot be read again has no failures.
    assert list(ledger.unseen("desk", 1)) == names
    ledger.save([Unlisted("desk:a")])
    assert ledger.entries(["desk:a"])["desk:a"].unlisted_since == first["desk:a"]
    ledger.mark_seen("desk", 1, ["desk:b"])
    ledger.save([stored(document("desk:c"), generation=2)])
    left = {one for one, entry in ledger.entries(names).items() if entry.unlisted_since}
    assert left == {"desk:a"}


def test_lost_contents_are_named_until_they_are_known_to_be_lost(fixture: Fixture) -> None:
    ledger = fixture.ledger
    ledger.save([stored(document("desk:a"))])
    assert list(ledger.lost_contents("desk")) == []
    fixture.lose("desk:a")
    assert list(ledger.lost_contents("desk")) == ["desk:a"]
    assert ledger.document("desk:a") is None
    assert not ledger.entries(["desk:a"])["desk:a"].kept
    ledger.save([ContentLost("desk:a")])
    assert list(ledger.lost_contents("desk")) == []
    assert ledger.entries(["desk:a"])["desk:a"] == Entry(
        version="", content_hash="h1", generation=1, access=EVERYBODY, kept=False
    )
    ledger.save([stored(document("desk:a"), generation=2)])
    assert ledger.document("desk:a") == document("desk:a")


def test_a_damaged_content_is_kept_and_is_none_until_it_is_stored_anew(fixture: Fixture) -> None:
    ledger = fixture.ledger
    ledger.save([stored(document("desk:a"))])
    fixture.damage("desk:a")
    assert ledger.document("desk:a") is None
    assert ledger.entries(["desk:a"])["desk:a"].kept
    assert list(ledger.lost_contents("desk")) == []
    ledger.save([stored(document("desk:a"), generation=2)])
    assert ledger.document("desk:a") == document("desk:a")


def test_what_is_said_to_be_lost_and_is_not_held_changes_nothing(ledger: Ledger) -> None:
    ledger.save([ContentLost("desk:a")])
    assert ledger.entries(["desk:a"]) == {}


def test_sources_are_reported_by_name(ledger: Ledger) -> None:
    assert ledger.sources() == {"desk", "web"}
