"""An administrator's look: that a document exists, never what it says, and always in the audit; on both databases."""

from collections.abc import Iterator
from dataclasses import fields

import pytest

from backend.access.document_existence import DocumentLook, look_at_document
from backend.store import audit
from backend.store.audit import Actor
from connectors.access import Access
from connectors.errors import NotFoundError
from tests.support.store import Store, document, store_at

BOB = "user:bob@example.com"
DOCUMENT = "desk:a"
ADMIN = Actor("user:ann@example.com", "192.0.2.7")


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    with store_at(database_url, "desk") as store:
        yield store


def test_it_shows_title_and_readers_and_nothing_of_the_text(store: Store) -> None:
    held = document(access=Access.to([BOB]))
    store.hold(held)
    look = look_at_document(store.database, DOCUMENT, ADMIN)
    assert (look.id, look.title, look.source) == (DOCUMENT, held.title, "desk")
    assert look.who.describe() == ["bob@example.com"]
    shown = {field.name for field in fields(DocumentLook)}
    assert shown == {"id", "title", "source", "indexed_at", "who"}
    assert look_at_document(store.database, held.link, ADMIN) == look


def test_each_look_is_in_the_audit_found_or_not(store: Store) -> None:
    store.hold(document(access=Access.to([BOB])))
    look_at_document(store.database, DOCUMENT, ADMIN)
    with pytest.raises(NotFoundError):
        look_at_document(store.database, "desk:none", ADMIN)
    missing, found = audit.list_entries(store.database, audit.AuditFilter(subject="desk"), limit=2)
    for entry, name in ((found, DOCUMENT), (missing, "desk:none")):
        assert (entry.actor, entry.address, entry.action) == (ADMIN.name, ADMIN.address, "look")
        assert entry.detail == {"document": name}
