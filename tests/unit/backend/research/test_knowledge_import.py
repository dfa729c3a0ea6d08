"""Knowledge that is exported and imported: the same comes back, and nobody learns by it which documents there are."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.research.knowledge.kept_knowledge import (
    DocumentVersion,
    ImportedItem,
    LearnedItem,
    PageVersion,
    Staleness,
)
from backend.research.knowledge.service import KnowledgeService
from backend.research.knowledge_items import KnowledgeType
from backend.schemas.knowledge import export_knowledge, import_knowledge
from backend.store.chat import projects
from backend.store.research import knowledge
from backend.store.research.knowledge_records import OWN, KnowledgePlace
from connectors.document import Span
from connectors.errors import ConflictError, InvalidInputError, NotFoundError
from tests.support.conversations import OWNER, START, begin
from tests.support.databases import sqlite_in
from tests.support.knowledge import KnowledgeWorld, learn, make_item, make_reference
from tests.support.soak import scaled

LEAVE, PAY, FINANCE = "Leave is 25 days.", "Band five earns 60.", "group:finance"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[KnowledgeWorld]:
    with closing(KnowledgeWorld(sqlite_in(tmp_path), tmp_path / "index")) as opened:
        yield opened


def _clear(service: KnowledgeService) -> None:
    for one in service.list_all(None):
        service.delete(one.id)


def _export(service: KnowledgeService) -> str:
    return export_knowledge(service.export_page(None, None).items)


def test_what_was_exported_comes_back_as_it_was(world: KnowledgeWorld) -> None:
    leave, pay = world.put("leave", LEAVE), world.put("pay", PAY, FINANCE)
    rests = LearnedItem(
        item=make_item("What do I earn?", "60.", kind=KnowledgeType.CHAT_HISTORY),
        document_ids=frozenset({pay}),
    )
    world.keep(learn(LEAVE, leave), rests, learn("It rains.", url="https://sky.example/lyon"))
    service = world.serve(OWNER, FINANCE)
    service.correct(service.list_all(None)[0].id, "Does it rain?", None)
    exported = _export(service)
    _clear(service)
    report = service.import_items(OWN, import_knowledge(exported))
    assert (len(report.ids), report.dropped_references, report.unverified) == (3, 0, 0)
    assert _export(service) == exported
    assert [one.stale for one in service.list_all(None)] == [None] * 3
    # What it rests on guards it as before.
    assert len(world.serve(OWNER).list_all(None)) == 2


def test_what_names_no_document_is_unverified_where_others_read_it(world: KnowledgeWorld) -> None:
    leave = world.put("leave", LEAVE)
    project = KnowledgePlace("project", projects.add(world.database, OWNER, "Depot", "", START))
    world.keep(learn("It rains.", url="https://sky.example/lyon"), learn(LEAVE, leave))
    service = world.serve(OWNER)
    exported = _export(service)
    assert service.import_items(OWN, import_knowledge(exported)).unverified == 0
    assert service.import_items(project, import_knowledge(exported)).unverified == 1
    stale = {one.item.answer: one.stale for one in service.list_all([project])}
    assert stale == {"It rains.": Staleness.UNVERIFIED, LEAVE: None}


def test_unknown_forbidden_and_misquoted_documents_are_dropped_alike(
    world: KnowledgeWorld,
) -> None:
    world.put("pay", PAY, FINANCE)
    leave = world.put("leave", LEAVE)
    answers = set()
    for document, quote in (
        ("desk:never-was", PAY),
        ("desk:pay", PAY),
        ("desk:pay", "Band six earns 70."),
        (leave, "Leave is 80 days."),
        ("memory/not-mine", PAY),
    ):
        item = make_item("Q?", "A.", make_reference(quote, quote, document))
        versions = (DocumentVersion(document, "0" * 40),) if document != leave else ()
        service = world.serve(OWNER)
        report = service.import_items(OWN, [ImportedItem(item=item, documents=versions)])
        (kept,) = (service.get(one) for one in report.ids)
        assert kept.item.references == ()
        answers.add((report.dropped_references, report.unverified, kept.stale, kept.document_ids))
        service.delete(kept.id)
    assert answers == {(1, 1, Staleness.UNVERIFIED, frozenset())}


def test_what_lost_a_source_stays_unverified_until_a_person_corrects_it(
    world: KnowledgeWorld,
) -> None:
    item = make_item("Q?", LEAVE, make_reference(LEAVE, LEAVE, "desk:never-was"))
    service = world.serve(OWNER)
    service.import_items(OWN, [ImportedItem(item=item)])
    exported = _export(service)
    _clear(service)
    report = service.import_items(OWN, import_knowledge(exported))
    assert (report.dropped_references, report.unverified) == (0, 1)
    (item_id,) = report.ids
    assert service.get(item_id).stale is Staleness.UNVERIFIED
    assert service.correct(item_id, None, "Leave is 28 days.").stale is None


def test_stale_knowledge_does_not_become_fresh_by_export_and_import(world: KnowledgeWorld) -> None:
    leave = world.put("leave", LEAVE)
    rests = LearnedItem(item=make_item("Q?", "A."), document_ids=frozenset({leave}))
    world.keep(learn(LEAVE, leave), rests)
    world.put("leave", "Leave is 28 days.")
    service = world.serve(OWNER)
    assert [one.stale for one in service.list_all(None)] == [Staleness.SOURCE_CHANGED] * 2
    exported = _export(service)
    _clear(service)
    service.import_items(OWN, import_knowledge(exported))
    assert {one.stale for one in service.list_all(None)} == {
        Staleness.SOURCE_CHANGED,
        Staleness.UNVERIFIED,
    }


def test_a_quote_that_moved_meanwhile_is_kept_where_it_stands(world: KnowledgeWorld) -> None:
    leave = world.put("leave", f"Since May: {LEAVE}")
    item = make_item("Q?", LEAVE, make_reference(LEAVE, LEAVE, leave, section=7))
    service = world.serve(OWNER)
    report = service.import_items(OWN, [ImportedItem(item=item)])
    (reference,) = service.get(report.ids[0]).item.references
    assert (reference.section, reference.span) == (0, Span(11, 11 + len(LEAVE)))
    assert report.unverified == 0


def test_nothing_is_from_the_future_and_what_no_database_keeps_is_refused(
    world: KnowledgeWorld,
) -> None:
    service, later = world.serve(OWNER), START + timedelta(days=400_000)
    report = service.import_items(OWN, [ImportedItem(item=make_item(), made_at=later)])
    assert service.get(report.ids[0]).made_at < later
    for item in (make_item("half \ud800"), make_item(answer=" ")):
        with pytest.raises(InvalidInputError):
            service.import_items(OWN, [ImportedItem(item=make_item()), ImportedItem(item=item)])
    assert len(service.list_all(None)) == 1, "all of a file is kept, or nothing"


def test_places_and_limits_hold_for_imports(
    world: KnowledgeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, given_item = world.serve(OWNER), ImportedItem(item=make_item())
    with pytest.raises(NotFoundError, match="There is no such conversation"):
        service.import_items(KnowledgePlace("conversation", "never-was"), [given_item])
    place = KnowledgePlace("conversation", begin(world.database).question.conversation_id)
    service.import_items(place, [given_item])
    assert [one.place for one in service.list_all(None)] == [place]
    monkeypatch.setattr(knowledge, "MOST_ITEMS", 1)
    with pytest.raises(ConflictError):
        service.import_items(place, [given_item])


_TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20).filter(
    lambda text: any(sign.isalnum() for sign in text)
)


@st.composite
def imported(draw: st.DrawFn) -> ImportedItem:
    answer = draw(_TEXT) + LEAVE
    references = [make_reference(LEAVE, answer, "desk:leave")] if draw(st.booleans()) else []
    pages = [PageVersion(url, "0" * 40) for url in draw(st.lists(_TEXT, max_size=2))]
    item = make_item(draw(_TEXT), answer, *references, kind=draw(st.sampled_from(KnowledgeType)))
    time = draw(st.none() | st.just(START))
    is_guess = time is not None and draw(st.booleans())
    return ImportedItem(
        item=replace(item, updated=time, updated_is_guess=is_guess),
        documents=tuple(DocumentVersion("desk:leave", None) for _ in references),
        pages=tuple(pages),
        unverified=draw(st.booleans()),
        made_at=START - timedelta(minutes=draw(st.integers(0, 10**6))),
        corrected_at=draw(st.none() | st.just(START)),
    )


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeWorld]:
    folder = tmp_path_factory.mktemp("round-trip")
    with closing(KnowledgeWorld(sqlite_in(folder), folder / "index")) as opened:
        opened.put("leave", LEAVE)
        yield opened


@pytest.mark.deep("slow")
@settings(max_examples=scaled(10, 200, "slow"))
@given(items=st.lists(imported(), max_size=4, unique_by=lambda one: one.made_at))
def test_whatever_is_kept_comes_back_as_it_was(
    lasting: KnowledgeWorld, items: list[ImportedItem]
) -> None:
    service = lasting.serve(OWNER)
    service.import_items(OWN, items)
    exported = _export(service)
    _clear(service)
    assert sorted(import_knowledge(exported), key=repr) == sorted(items, key=repr)
    service.import_items(OWN, import_knowledge(exported))
    assert _export(service) == exported
    _clear(service)
