"""Showing documents: to those who may read them, and to the owner."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from backend.store.documents import documents
from connectors.access import EVERYBODY, NOBODY, Access, Readers
from connectors.errors import ActionRequiredError
from indexing.ingestion.ledger import AccessAmended, ContentLost, Removed
from tests.support.store import Store, damage_texts, document, kept_texts, lose_texts

ANN = Readers.of("user:ann@example.com")
HR = Readers.of("group:hr")
STRANGER = Readers.of()
BOTH = Access.all_of([["group:hr"], ["user:ann@example.com"]])


@pytest.mark.parametrize(
    ("access", "readers"),
    [
        (EVERYBODY, STRANGER),
        (Access.to(["group:hr"]), HR),
        (Access.to(["group:hr", "user:ann@example.com"]), ANN),
        (BOTH, Readers(BOTH.readers)),
    ],
)
def test_a_document_is_shown_to_its_readers(store: Store, access: Access, readers: Readers) -> None:
    store.hold(document(access=access))
    found = documents.find(store.database, "desk:a", readers)
    assert found is not None
    assert found.document == document(access=access)
    assert found.chunks == 2
    assert abs(datetime.now(UTC) - found.indexed_at).total_seconds() < 60


@pytest.mark.parametrize(
    ("access", "readers"),
    [
        (EVERYBODY, Readers(frozenset())),  # holds not even `public`
        (BOTH, ANN),
        (BOTH, HR),
        (BOTH, Readers.of("user:ann@example.com", "group:hr")),  # no token is derived from these
        (BOTH, Readers(Access.all_of([["group:hr"], ["group:ann"]]).readers)),
        (NOBODY, STRANGER),
        (NOBODY, ANN),
        (Access.to(["group:hr"]), ANN),
        (Access.to(["group:h"]), HR),  # no token is a prefix of another
        (Access.to(["external:desk:hr"]), HR),
    ],
)
def test_a_document_is_hidden_from_all_others(
    store: Store, access: Access, readers: Readers
) -> None:
    store.hold(document(access=access))
    assert documents.find(store.database, "desk:a", readers) is None


def test_a_missing_document_looks_like_a_forbidden_one(store: Store) -> None:
    store.hold(document(access=NOBODY))
    for name in ("desk:a", "desk:b", ""):
        assert documents.find(store.database, name, ANN) is None


def test_amended_access_counts_at_once(store: Store) -> None:
    store.hold(document())
    store.ledger.save([AccessAmended("desk:a", Access.to(["group:hr"]))])
    assert documents.find(store.database, "desk:a", STRANGER) is None
    found = documents.find(store.database, "desk:a", HR)
    assert found is not None
    assert found.document.access == Access.to(["group:hr"])


def test_an_asker_may_hold_thousands_of_groups(store: Store) -> None:
    store.hold(document(access=Access.to(["group:4999"])))
    many = Readers.of(*(f"group:{number}" for number in range(5_000)))
    assert documents.find(store.database, "desk:a", many) is not None


def test_a_lost_text_is_shown_to_those_who_may_read_it(store: Store) -> None:
    store.hold(document(access=Access.to(["group:hr"])))
    lose_texts(store.database)
    with pytest.raises(ActionRequiredError, match="Sync 'desk'"):
        documents.find(store.database, "desk:a", HR)
    assert documents.find(store.database, "desk:a", ANN) is None


def test_a_damaged_text_is_reported_and_then_known_to_be_gone(store: Store) -> None:
    store.hold(document(access=Access.to(["group:hr"])))
    damage_texts(store.database, "desk:a")
    assert documents.find(store.database, "desk:a", ANN) is None
    assert list(store.ledger.lost_contents("desk")) == []
    with pytest.raises(ActionRequiredError, match="Sync 'desk'"):
        documents.find(store.database, "desk:a", HR)
    assert list(store.ledger.lost_contents("desk")) == ["desk:a"]
    store.ledger.save([ContentLost("desk:a")])
    with pytest.raises(ActionRequiredError, match="Sync 'desk'"):
        documents.find(store.database, "desk:a", HR)
    assert list(store.ledger.lost_contents("desk")) == []


def test_the_owner_sees_all_documents_by_id(store: Store) -> None:
    names = [f"desk:{number:04}" for number in range(1_201)]
    hr = Access.to(["group:hr", "group:board"])
    store.hold(*(document(name, access=hr) for name in names), document("web:é", access=NOBODY))
    held = list(documents.list_documents(store.database))
    assert [each.id for each in held] == [*names, "web:é"]
    assert held[0].readers == ("group:board", "group:hr")
    assert held[-1].readers == ()
    assert (held[-1].source, held[-1].title, held[-1].chunks) == ("web", "About web:é", 2)
    assert documents.count_by_source(store.database) == {"desk": 1_201, "web": 1}


def test_texts_go_with_their_documents(store: Store) -> None:
    twins = [
        replace(document(name), title="Leave", link="https://desk.test/leave")
        for name in ("desk:a", "web:a")
    ]
    store.hold(*twins)
    assert kept_texts(store.database) == 2
    store.ledger.save([Removed("desk:a")])
    assert kept_texts(store.database) == 1
    assert store.ledger.document("web:a") == twins[1]
    store.hold(document("web:a", text="Leave is 30 days.", version="2"), generation=2)
    assert kept_texts(store.database) == 1
    store.ledger.save([Removed("web:a")])
    assert kept_texts(store.database) == 0


@pytest.mark.parametrize(
    "name", ["Leave policy", "leave POLICY", "https://desk.example/a.md#page=2", "a.md", "HR/a.md"]
)
def test_a_document_is_found_by_its_link_title_or_file_name(store: Store, name: str) -> None:
    one = replace(
        document("desk:HR/a.md", access=Access.to(["group:hr"])),
        title="Leave policy",
        link="https://desk.example/a.md",
    )
    store.hold(one, document("desk:HR/ba.md"))
    (found,) = documents.find_by_name(store.database, name, HR, 10)
    assert found.id == "desk:HR/a.md"
    assert documents.find_by_name(store.database, name, STRANGER, 10) == []


def test_names_are_no_patterns(store: Store) -> None:
    store.hold(document("desk:a.md"))
    for name in ("%", "_.md", "", ".md"):
        assert documents.find_by_name(store.database, name, ANN, 10) == []
