"""Knowledge in the database: each item is told of to its owner or its project, with what it rests on, and goes with its place."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from itertools import count

import pytest
from sqlalchemy import delete, func, select

from backend.access.roles import Role
from backend.store.chat import conversations, projects
from backend.store.database import Database, open_database
from backend.store.owner import ConversationOwner
from backend.store.research import knowledge
from backend.store.research.knowledge_records import (
    OWN,
    Correction,
    ItemPosition,
    ItemSource,
    KnowledgePlace,
    NewItem,
    StoredItem,
)
from backend.store.schema.knowledge_tables import knowledge_sources
from backend.store.schema.tables import people
from connectors.errors import ConflictError, NotFoundError
from tests.support.accounts import add_person
from tests.support.conversations import OWNER, START, begin
from tests.support.races import race
from tests.support.store import document, store_at

ANN, BOB = ConversationOwner(1), ConversationOwner(2)
SOURCE = ItemSource(document_id="desk:a", content_hash="1", checked_hash=None, quotes_stand=True)
NEW = NewItem(
    question="How long is leave?",
    answer="25 days.",
    type="qa",
    updated="2026-03-02T09:30:00+00:00",
    source_code="5 * 5",
    quotes=[{"exact_quote": "25 days", "span": [0, 7]}],
    pages=[{"url": "https://a.example", "text_hash": "0"}],
    sources=[SOURCE],
    made_at=START,
)


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    with closing(open_database(database_url)) as opened:
        add_person(opened, "ann@example.com", Role.ADMIN)
        add_person(opened, "bob@example.com")
        yield opened


def _add(
    database: Database, owner: ConversationOwner, *answers: str, place: KnowledgePlace = OWN
) -> list[str]:
    times = (START + timedelta(minutes=number) for number in count())
    added = [replace(NEW, answer=one, made_at=at) for one, at in zip(answers, times, strict=False)]
    return knowledge.add(database, owner, place, added, "run-1")


def _list(database: Database, owner: ConversationOwner) -> list[StoredItem]:
    return knowledge.list_page(database, owner, None, None, 1_000)


def test_what_is_kept_comes_back_with_what_it_rests_on(database: Database) -> None:
    other = replace(SOURCE, document_id="desk:b", content_hash=None)
    given = replace(NEW, sources=[SOURCE, other], unverified=True, corrected_at=START)
    (item_id,) = knowledge.add(database, ANN, OWN, [given], "run-1")
    found = knowledge.get(database, ANN, item_id)
    for name in ("question", "answer", "type", "updated", "source_code", "quotes", "pages"):
        assert getattr(found, name) == getattr(given, name)
    assert found.sources == (SOURCE, other)
    assert (found.owner, found.place, found.run_id, found.unverified) == (ANN, OWN, "run-1", True)
    assert (found.made_at, found.corrected_at) == (START, START)
    assert _list(database, ANN) == [found]
    assert knowledge.add(database, ANN, OWN, [], None) == []


def test_one_of_somebody_else_and_one_that_never_was_are_the_same(database: Database) -> None:
    (own,) = _add(database, ANN, "25 days.")
    said = set()
    for owner in (OWNER, BOB):
        for item_id in (own, "never-was", "half \ud800", "nul \0"):
            with pytest.raises(NotFoundError) as caught:
                knowledge.get(database, owner, item_id)
            said.add(str(caught.value))
        assert _list(database, owner) == []
    assert said == {"There is no such item."}


def test_the_newest_comes_first_on_pages_without_gaps(database: Database) -> None:
    added = _add(database, ANN, *(f"Fact {number}." for number in range(5)))
    found: list[str] = []
    position = None
    while page := knowledge.list_page(database, ANN, None, position, 2):
        found += [one.id for one in page]
        position = ItemPosition(page[-1].made_at, page[-1].id)
    assert found == added[::-1]


def test_a_correction_replaces_what_it_says_and_rests_on(database: Database) -> None:
    (item_id,) = _add(database, ANN, "25 days.")
    before = knowledge.get(database, ANN, item_id)
    source = replace(SOURCE, content_hash="2", checked_hash="2")
    said = Correction(question="Now?", answer="28 days.", quotes=[], sources=[source])
    knowledge.correct(database, before, said)
    after = knowledge.get(database, ANN, item_id)
    assert (after.question, after.answer, after.quotes) == ("Now?", "28 days.", [])
    assert after.sources == (source,)
    assert after.corrected_at == after.changed_at > before.changed_at
    # What was found out about it before is not noted any more.
    knowledge.record_checks(database, [replace(before, sources=[])])
    assert knowledge.get(database, ANN, item_id) == after
    moved = replace(after, quotes=[{"span": [1, 2]}], sources=[replace(source, quotes_stand=False)])
    knowledge.record_checks(database, [moved])
    assert knowledge.get(database, ANN, item_id).sources == (replace(source, quotes_stand=False),)
    assert knowledge.get(database, ANN, item_id).quotes == [{"span": [1, 2]}]


def test_nothing_is_left_of_one_that_was_deleted(database: Database) -> None:
    first, second = _add(database, ANN, "a", "b")
    knowledge.remove(database, first)
    assert [one.id for one in _list(database, ANN)] == [second]
    acts: list[Callable[[], object]] = [
        lambda: knowledge.remove(database, first),
        lambda: knowledge.correct(
            database,
            replace(_list(database, ANN)[0], id=first),
            Correction(question="a", answer="b", quotes=[], sources=[]),
        ),
    ]
    for act in acts:
        with pytest.raises(NotFoundError):
            act()
    with database.writing() as connection:
        connection.execute(delete(people).where(people.c.id == 1))
    with database.reading() as connection:
        assert connection.scalar(select(func.count()).select_from(knowledge_sources)) == 0


def test_who_is_in_a_project_is_told_what_its_members_keep_in_it(database: Database) -> None:
    place = KnowledgePlace("project", projects.add(database, ANN, "Depot", "", START))
    with pytest.raises(NotFoundError, match="There is no such project"):
        _add(database, BOB, "x", place=place)
    projects.add_member(database, place.id, "bob@example.com")
    _add(database, ANN, "Of Ann.", place=place)
    _add(database, BOB, "Of Bob.", place=place)
    _add(database, BOB, "Of Bob alone.")
    assert {one.answer for one in _list(database, ANN)} == {"Of Ann.", "Of Bob."}
    assert len(_list(database, BOB)) == 3
    in_project = knowledge.list_page(database, BOB, [place], None, 9)
    assert {one.place for one in in_project} == {place}
    assert len(in_project) == 2
    own = knowledge.list_page(database, BOB, [OWN], None, 9)
    assert [one.answer for one in own] == ["Of Bob alone."]
    assert knowledge.list_page(database, BOB, [], None, 9) == []
    odd = KnowledgePlace("project", "half \ud800")
    assert knowledge.list_page(database, BOB, [odd], None, 9) == []
    eve = ConversationOwner(add_person(database, "eve@example.com").id)
    projects.add_member(database, place.id, "eve@example.com")
    _add(database, eve, "Of Eve.", place=place)
    projects.remove_person(database, place.id, 2)
    for owner in (ANN, eve):
        assert {one.answer for one in _list(database, owner)} == {"Of Ann.", "Of Eve."}
    assert [one.answer for one in _list(database, BOB)] == ["Of Bob alone."]
    projects.remove(database, place.id)
    assert _list(database, ANN) == []


def test_what_a_conversation_keeps_goes_with_it(database: Database) -> None:
    conversation = begin(database, owner=ANN).question.conversation_id
    place = KnowledgePlace("conversation", conversation)
    for owner, named in ((BOB, place), (ANN, KnowledgePlace("conversation", "nul \0"))):
        with pytest.raises(NotFoundError):
            _add(database, owner, "x", place=named)
    (item_id,) = _add(database, ANN, "x", place=place)
    assert knowledge.get(database, ANN, item_id).place == place
    assert knowledge.list_page(database, BOB, [place], None, 9) == []
    conversations.remove(database, ANN, conversation)
    assert _list(database, ANN) == []


def test_of_many_at_once_no_more_are_kept_than_allowed(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(knowledge, "MOST_ITEMS", 3)
    refused = race(
        database,
        lambda opened: _add(opened, ANN, "x", "y"),
        lambda: _add(database, ANN, "x", "y"),
    )
    assert isinstance(refused, ConflictError)
    assert len(_list(database, ANN)) == 2
    _add(database, BOB, "x", "y")


def test_no_more_characters_are_kept_than_allowed(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(knowledge, "MOST_CHARACTERS", 1_000)
    (item_id,) = _add(database, ANN, "x" * 500)
    item = knowledge.get(database, ANN, item_id)
    longer = Correction(question="q", answer="y" * 990, quotes=item.quotes, sources=[SOURCE])
    quoted = replace(NEW, quotes=[{"exact_quote": "z" * 500}])
    for keep in (
        lambda: _add(database, ANN, "y" * 500),
        lambda: knowledge.add(database, ANN, OWN, [quoted], None),
        lambda: knowledge.correct(database, item, longer),
    ):
        with pytest.raises(ConflictError, match="1,000 characters"):
            keep()
    assert _list(database, ANN) == [item]
    _add(database, BOB, "y" * 500)


def test_the_hashes_of_documents_are_those_that_there_are(database_url: str) -> None:
    with store_at(database_url, "desk") as store:
        store.hold(document("desk:a", version="7"))
        asked = ["desk:a", "desk:none", "half \ud800"]
        assert knowledge.read_content_hashes(store.database, asked) == {"desk:a": "7"}
