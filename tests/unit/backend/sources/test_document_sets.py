"""Who looks after document sets, and what the audit says of it."""

from pathlib import Path

import pytest

from backend.access.roles import Role
from backend.cli.sets import describe_progress
from backend.sources.document_sets import DocumentSetService, SetDraft
from backend.store import audit
from backend.store.documents import document_sets
from backend.store.documents.source_removal import remove_source
from backend.store.sync import sources
from backend.store.sync.sources import SourcesOf
from connectors.errors import InvalidInputError, NotFoundError
from indexing.index.protocols import Selection
from tests.support.accounts import add_person
from tests.support.store import Store, store_with


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return store_with(tmp_path, "desk", "web")


@pytest.fixture
def managers(store: Store) -> DocumentSetService:
    """The service of a source manager who looks after one of the two sources."""
    add_person(store.database, "boss@example.com", Role.ADMIN)
    ann = add_person(store.database, "ann@example.com", Role.SOURCE_MANAGER)
    sources.set_owner(store.database, "desk", ann.id)
    return DocumentSetService(store.database, len, choice=SourcesOf(ann.id))


def test_a_source_manager_makes_sets_of_their_own_sources_alone(
    store: Store, managers: DocumentSetService
) -> None:
    managers.add(
        SetDraft(
            name=" Our  desk ",
            folders=("desk:a/b",),
            tags=("desk:k=v",),
            documents=("desk:x:y",),
        )
    )
    (found,) = managers.list_sets()
    assert (found.name, found.folders, found.tags) == ("Our desk", ("desk:a/b",), ("desk:k=v",))
    for draft in (
        SetDraft(name="a", sources=("web",)),
        SetDraft(name="a", folders=("web:a/",)),
        SetDraft(name="a", documents=("web:1",)),
        SetDraft(name="a", sources=("desk",), folders=("web:a/",)),
    ):
        messages = []
        for name in ("web", "none"):
            changed = SetDraft(
                name="a",
                sources=tuple(each.replace("web", name) for each in draft.sources),
                folders=tuple(each.replace("web", name) for each in draft.folders),
                documents=tuple(each.replace("web", name) for each in draft.documents),
            )
            with pytest.raises(NotFoundError) as refused:
                managers.add(changed)
            with pytest.raises(NotFoundError):
                managers.count_matching(changed)
            messages.append(str(refused.value).replace(name, "?"))
        assert len(set(messages)) == 1
    for tag in ("k=v", "web:k=v"):
        with pytest.raises(InvalidInputError, match="Name the source of each tag"):
            managers.add(SetDraft(name="a", tags=(tag,)))
    assert [each.name for each in document_sets.list_sets(store.database)] == ["Our desk"]


def test_sets_of_others_are_as_those_that_do_not_exist(
    store: Store, managers: DocumentSetService
) -> None:
    admins = DocumentSetService(store.database, len)
    admins.add(SetDraft(name="mixed", sources=("desk", "web")))
    admins.add(SetDraft(name="own", sources=("desk",)))
    assert [each.name for each in managers.list_sets()] == ["own"]
    draft = SetDraft(name="mine", sources=("desk",))
    for name in ("mixed", "none"):
        with pytest.raises(NotFoundError, match="There is no document set named"):
            managers.get(name)
        with pytest.raises(NotFoundError, match="There is no document set named"):
            managers.change(name, draft)
        with pytest.raises(NotFoundError, match="There is no document set named"):
            managers.remove(name)
    assert managers.change("own", draft).name == "mine"


def test_a_set_whose_source_was_deleted_is_described_further_by_its_maker(
    store: Store, managers: DocumentSetService
) -> None:
    managers.add(SetDraft(name="ours", sources=("desk",)))
    with pytest.raises(InvalidInputError, match="Say what belongs to the set"):
        managers.change("ours", SetDraft(name="ours"))
    (found,) = managers.list_sets()
    counted = found.model_copy(update={"is_applied": True, "count": 1})
    assert describe_progress(counted) == "1 document"
    remove_source(store.database, "desk")
    (found,) = managers.list_sets()
    assert not found.has_rules
    assert describe_progress(found) == "nothing belongs to it: its sources were deleted"
    assert managers.change("ours", SetDraft(name="former")).name == "former"
    managers.remove("former")
    assert managers.list_sets() == []


def test_every_action_is_in_the_audit(store: Store) -> None:
    service = DocumentSetService(store.database, len)
    service.add(SetDraft(name="a", sources=("desk",)))
    service.change("a", SetDraft(name="b", tags=("k=v",), readers=("group:x",)))
    service.remove("b")
    removed, changed, added = list(audit.list_entries(store.database))
    assert [each.action for each in (added, changed, removed)] == [
        "add_set",
        "change_set",
        "remove_set",
    ]
    assert {each.subject for each in (added, changed)} == {"set:a"}
    assert changed.detail["before"] == {
        "name": "a",
        "description": "",
        "readers": ["public"],
        "sources": ["desk"],
    }
    assert removed.detail["tags"] == ["k=v"]


def test_rules_that_no_document_matches_are_named_of_a_set_of_moderate_size(store: Store) -> None:
    found = Selection(prefix="desk:")
    service = DocumentSetService(store.database, lambda asked: 4 if found in asked else 0)
    draft = SetDraft(name="a", sources=("desk",), tags=("k=v",), documents=("desk:none.md",))
    assert service.count_matching(draft).unmatched == ("k=v", "desk:none.md")
    service.add(draft)
    assert service.list_unmatched("a") == ("k=v", "desk:none.md")
    many = SetDraft(name="a", documents=tuple(f"desk:{n}" for n in range(201)))
    assert service.count_matching(many).unmatched == ()


def test_a_set_has_no_more_rules_than_can_be_worked_with(store: Store) -> None:
    service = DocumentSetService(store.database, len)
    many = tuple(f"desk:{n}" for n in range(2_001))
    with pytest.raises(InvalidInputError, match="at most 2,000 rules"):
        service.add(SetDraft(name="a", documents=many))
    service.add(SetDraft(name="a", documents=(*many[:2_000], many[0])))
