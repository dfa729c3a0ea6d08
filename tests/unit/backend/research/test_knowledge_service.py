"""Kept knowledge: there for whoever may read now all that it rests on, fresh as long as that says so."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from backend.access.roles import Role
from backend.chat.readable_ids import make_memory_reference
from backend.chat.text_nearness import SentenceModel
from backend.research.knowledge.kept_knowledge import KeptItem, LearnedItem, Staleness
from backend.research.knowledge.service import (
    KnowledgeRefusedError,
    KnowledgeService,
    clean_text,
)
from backend.research.knowledge_items import KnowledgeType
from backend.store.chat import conversations, memories, projects
from backend.store.owner import ConversationOwner
from backend.store.research import knowledge
from backend.store.research.knowledge_records import LONGEST_TEXT, OWN, ItemPosition, KnowledgePlace
from connectors.document import Span
from connectors.errors import ConflictError, InvalidInputError, NotFoundError
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.embedding.language_support import EVERYTHING
from tests.support.accounts import add_person
from tests.support.conversations import OWNER, START, begin
from tests.support.knowledge import (
    KnowledgeWorld,
    find_stale,
    learn,
    list_texts,
    make_item,
    make_reference,
)
from tests.support.store import lose_texts

LEAVE = "Leave is 25 days."
PAY = "Band five earns 60."
FINANCE = "group:finance"
MODEL = SentenceModel(HashingEmbedder(), EVERYTHING)
ANN, BOB = ConversationOwner(1), ConversationOwner(2)


@pytest.fixture
def world(database_url: str, tmp_path: Path) -> Iterator[KnowledgeWorld]:
    with closing(KnowledgeWorld(database_url, tmp_path / "index")) as opened:
        yield opened


@pytest.fixture
def project(world: KnowledgeWorld) -> KnowledgePlace:
    """Ann's, with Bob in it."""
    add_person(world.database, "ann@example.com", Role.ADMIN)
    add_person(world.database, "bob@example.com")
    made = projects.add(world.database, ANN, "Depot", "", START)
    projects.add_member(world.database, made, "bob@example.com")
    return KnowledgePlace("project", made)


def see(service: KnowledgeService) -> list[list[str]]:
    """All ways in which somebody may see an item."""
    listed = [one.id for one in service.list_all(None)]
    found = [one.id for one in service.search(f"{LEAVE} {PAY}", None, MODEL, 50)]
    exported = [one.id for one in service.export_page(None, None).items]
    return [sorted(listed), sorted(found), sorted(exported)]


def test_who_may_not_read_one_of_its_documents_sees_no_trace_of_an_item(
    world: KnowledgeWorld, project: KnowledgePlace
) -> None:
    leave, pay = world.put("leave", LEAVE), world.put("pay", PAY, FINANCE)
    open_item, both = world.keep(
        learn(LEAVE, leave), learn(PAY, pay, leave), owner=ANN, place=project
    )
    ann, bob = world.serve(ANN, FINANCE), world.serve(BOB)
    assert see(ann) == [sorted([open_item, both])] * 3
    assert see(bob) == [[open_item]] * 3
    assert len(bob.list_page(None, None, 1).items) == 1
    assert bob.list_page(None, None, 1).next is None, "a next page would tell of what is hidden"
    said = set()
    for item_id in (both, "never-was"):
        for act in (bob.get, bob.delete, lambda one: bob.correct(one, "Mine?", "Mine.")):
            with pytest.raises(NotFoundError) as caught:
                act(item_id)
            said.add(str(caught.value))
    assert said == {"There is no such item."}
    assert see(world.serve(BOB, FINANCE)) == [sorted([open_item, both])] * 3
    # Its owner too, as soon as they may not read it any more.
    assert see(world.serve(ANN)) == [[open_item]] * 3


def test_rights_are_looked_up_and_not_copied(world: KnowledgeWorld) -> None:
    pay = world.put("pay", PAY, FINANCE)
    (item,) = world.keep(learn(PAY, pay))
    service = world.serve(OWNER, "user:a@example.com")
    assert see(service) == [[]] * 3
    world.admit("pay", "user:a@example.com")
    assert see(service) == [[item]] * 3
    world.admit("pay", FINANCE)
    assert see(service) == [[]] * 3


def test_what_an_answer_rests_on_counts_without_being_quoted(world: KnowledgeWorld) -> None:
    pay = world.put("pay", PAY, FINANCE)
    mine = memories.add(world.database, OWNER, "I am in band five.")
    said = make_item("What do I earn?", "60.", kind=KnowledgeType.CHAT_HISTORY)
    rests_on = frozenset({pay, make_memory_reference(mine.id)})
    (item,) = world.keep(LearnedItem(item=said, document_ids=rests_on))
    service = world.serve(OWNER, FINANCE)
    assert see(world.serve(OWNER)) == [[]] * 3
    assert find_stale(service, item) is None
    assert service.get(item).document_ids == rests_on
    world.put("pay", f"{PAY} Or so.", FINANCE)
    # Nothing says which part of it is meant.
    assert find_stale(service, item) is Staleness.SOURCE_CHANGED
    memories.remove(world.database, OWNER, mine.id)
    assert see(service) == [[]] * 3


def test_a_quote_that_has_moved_stands_at_its_new_place(world: KnowledgeWorld) -> None:
    leave = world.put("leave", LEAVE)
    (item,) = world.keep(learn(LEAVE, leave))
    service = world.serve(OWNER)
    assert find_stale(service, item) is None
    world.put("leave", f"Since May: {LEAVE}")
    (reference,) = service.get(item).item.references
    assert (reference.section, reference.span) == (0, Span(11, 11 + len(LEAVE)))
    assert find_stale(service, item) is None
    (stored,) = knowledge.list_page(world.database, OWNER, None, None, 9)
    assert stored.quotes[0]["span"] == [11, 11 + len(LEAVE)]


def test_an_item_is_stale_while_its_document_says_otherwise(world: KnowledgeWorld) -> None:
    leave = world.put("leave", LEAVE)
    (item,) = world.keep(learn(LEAVE, leave))
    service = world.serve(OWNER)
    world.put("leave", "Leave is 28 days.")
    for _ in range(2):
        assert find_stale(service, item) is Staleness.SOURCE_CHANGED
    world.put("leave", LEAVE)
    assert find_stale(service, item) is None


def test_a_document_of_the_same_content_is_not_read_again(
    world: KnowledgeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave = world.put("leave", LEAVE)
    (item,) = world.keep(learn(LEAVE, leave))
    service = world.serve(OWNER)
    assert find_stale(service, item) is None

    def read(*_: Any) -> None:
        raise AssertionError("it was read")

    with monkeypatch.context() as patched:
        patched.setattr("backend.store.documents.documents.find", read)
        assert find_stale(service, item) is None


def test_a_lost_text_is_looked_at_again(world: KnowledgeWorld) -> None:
    leave = world.put("leave", LEAVE)
    (item,) = world.keep(learn(LEAVE, leave))
    lose_texts(world.database, leave)
    service = world.serve(OWNER)
    assert find_stale(service, item) is Staleness.SOURCE_CHANGED
    world.put("leave", LEAVE)
    assert find_stale(service, item) is None


def test_of_a_deleted_document_only_the_owner_is_told_and_nothing_of_what_it_said(
    world: KnowledgeWorld, project: KnowledgePlace
) -> None:
    leave = world.put("leave", LEAVE)
    (item,) = world.keep(learn(LEAVE, leave), owner=ANN, place=project)
    ann, bob = world.serve(ANN), world.serve(BOB)
    world.drop("leave")
    assert see(bob) == [[]] * 3
    assert see(ann) == [[item], [], []]
    kept = ann.get(item)
    assert kept.stale is Staleness.SOURCE_GONE
    assert (kept.item.question, kept.item.answer, kept.item.references) == ("", "", ())
    assert kept.document_ids == frozenset()
    with pytest.raises(ConflictError, match="can only be deleted too"):
        ann.correct(item, None, "28 days.")
    ann.delete(item)
    assert see(ann) == [[]] * 3


def test_one_that_rests_on_a_deleted_and_on_a_forbidden_document_is_not_there(
    world: KnowledgeWorld,
) -> None:
    leave, pay = world.put("leave", LEAVE), world.put("pay", PAY, FINANCE)
    world.keep(learn(PAY, pay, leave))
    world.drop("leave")
    assert see(world.serve(OWNER)) == [[]] * 3


def test_somebody_elses_place_does_not_exist(
    world: KnowledgeWorld, project: KnowledgePlace
) -> None:
    conversation = begin(world.database, owner=ANN).question.conversation_id
    for place in (
        KnowledgePlace("conversation", conversation),
        KnowledgePlace("conversation", "never-was"),
        KnowledgePlace("conversation", "half \ud800"),
    ):
        with pytest.raises(NotFoundError):
            world.keep(learn(LEAVE), owner=BOB, place=place)
    eve = add_person(world.database, "eve@example.com")
    with pytest.raises(NotFoundError, match="There is no such project"):
        world.keep(learn(LEAVE), owner=ConversationOwner(eve.id), place=project)
    of_ann = KnowledgePlace("conversation", conversation)
    world.keep(learn(LEAVE), owner=ANN, place=of_ann)
    assert world.serve(BOB).list_all([of_ann]) == []
    assert list_texts(world.serve(ANN)) == [LEAVE]


def test_each_place_is_listed_by_itself(world: KnowledgeWorld, project: KnowledgePlace) -> None:
    conversation = KnowledgePlace(
        "conversation", begin(world.database, owner=ANN).question.conversation_id
    )
    for number, place in enumerate((OWN, conversation, project)):
        world.keep(learn(f"Fact {number}."), owner=ANN, place=place)
    ann = world.serve(ANN)
    listed = [
        [one.item.answer for one in ann.list_all([place])] for place in (OWN, conversation, project)
    ]
    assert listed == [["Fact 0."], ["Fact 1."], ["Fact 2."]]
    assert len(ann.list_all(None)) == 3
    assert list_texts(world.serve(BOB)) == ["Fact 2."]


def test_what_a_project_or_a_conversation_keeps_goes_with_it(
    world: KnowledgeWorld, project: KnowledgePlace
) -> None:
    conversation = begin(world.database, owner=ANN).question.conversation_id
    world.keep(learn("One."), owner=ANN, place=KnowledgePlace("conversation", conversation))
    world.keep(learn("Two."), owner=BOB, place=project)
    conversations.remove(world.database, ANN, conversation)
    assert list_texts(world.serve(ANN)) == ["Two."]
    projects.remove(world.database, project.id)
    assert list_texts(world.serve(ANN)) == list_texts(world.serve(BOB)) == []


def test_who_leaves_a_project_takes_along_what_they_found(
    world: KnowledgeWorld, project: KnowledgePlace
) -> None:
    world.keep(learn("Of Ann."), owner=ANN, place=project)
    world.keep(learn("Of Bob."), owner=BOB, place=project)
    assert sorted(list_texts(world.serve(BOB))) == ["Of Ann.", "Of Bob."]
    projects.remove_person(world.database, project.id, 2)
    assert list_texts(world.serve(ANN)) == ["Of Ann."]
    assert list_texts(world.serve(BOB)) == []


def test_its_owner_and_that_of_the_project_change_an_item(
    world: KnowledgeWorld, project: KnowledgePlace
) -> None:
    (of_ann,) = world.keep(learn("Of Ann."), owner=ANN, place=project)
    (of_bob,) = world.keep(learn("Of Bob."), owner=BOB, place=project)
    ann, bob = world.serve(ANN), world.serve(BOB)
    for act in (bob.delete, lambda one: bob.correct(one, None, "Mine.")):
        with pytest.raises(KnowledgeRefusedError, match="Only the person whose finding"):
            act(of_ann)
    assert [bob.may_change(one) for one in (bob.get(of_ann), bob.get(of_bob))] == [False, True]
    assert ann.correct(of_bob, None, "Of Bob, said by Ann.").item.answer == "Of Bob, said by Ann."
    ann.delete(of_bob)
    bob_sees = list_texts(bob)
    assert bob_sees == ["Of Ann."]


def test_a_correction_keeps_the_references_that_still_bear_it_out(world: KnowledgeWorld) -> None:
    leave = world.put("leave", f"{LEAVE} Five may be kept.")
    answer = f"{LEAVE} Five may be kept."
    learned = make_item(
        "How long is leave?",
        answer,
        make_reference(LEAVE, answer, leave),
        make_reference("Five may be kept.", answer, leave, span=Span(18, 35)),
    )
    (item,) = world.keep(LearnedItem(item=learned))
    service = world.serve(OWNER)
    corrected = service.correct(item, None, "  In short: Five may be kept.\r\n ")
    assert corrected.item.answer == "In short: Five may be kept."
    assert corrected.item.question == "How long is leave?"
    (reference,) = corrected.item.references
    assert reference.answer_chunk_position == Span(10, 27)
    assert corrected.corrected_at is not None
    assert corrected.document_ids == {leave}, "what it says may still come from there"
    world.put("leave", LEAVE)
    assert find_stale(service, item) is Staleness.SOURCE_CHANGED
    again = service.correct(item, "And now?", None)
    assert (again.item.references, again.stale) == ((), None)
    assert again.item.question == "And now?"
    assert find_stale(world.serve(OWNER), item) is None


@pytest.mark.parametrize(
    ("refused", "said"),
    [
        ("", "need visible characters"),
        (" \u200b\n", "need visible characters"),
        ("x" * (LONGEST_TEXT + 1), "at most 400,000 characters each, these are 400,001"),
        ("half \ud800", "an invalid character"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_the_reason(refused: str, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        clean_text(refused)


def test_a_search_puts_the_nearest_first_and_leaves_out_the_rest(world: KnowledgeWorld) -> None:
    world.keep(
        learn("The pool opens in May.", question="When does the pool open?"),
        learn("Leave is 25 days.", question="How long is parental leave?"),
        learn("Leave may be kept.", question="May leave be kept?"),
    )
    service = world.serve(OWNER)
    found = service.search("How long is parental leave?", None, MODEL, 9)
    assert [one.item.answer for one in found] == ["Leave is 25 days.", "Leave may be kept."]
    assert service.search("How long is parental leave?", None, MODEL, 1) == found[:1]
    assert service.search("QX-4031", None, MODEL, 9) == []


def test_the_list_has_pages_without_gaps_around_what_is_hidden(
    world: KnowledgeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backend.research.knowledge.service._BATCH", 3)
    pay = world.put("pay", PAY, FINANCE)
    for number in range(10):
        rests_on = [pay] if number % 3 == 0 else []
        world.keep(learn(f"Fact {number}.", *rests_on))
    service = world.serve(OWNER)
    found: list[KeptItem] = []
    position: ItemPosition | None = None
    while True:
        page = service.list_page(None, position, 2)
        found += page.items
        if (position := page.next) is None:
            break
    assert [one.item.answer for one in found] == [f"Fact {n}." for n in (8, 7, 5, 4, 2, 1)]


def test_one_place_keeps_so_many(world: KnowledgeWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knowledge, "MOST_ITEMS", 2)
    world.keep(learn("One."), learn("Two."))
    with pytest.raises(ConflictError, match="At most 2 findings"):
        world.keep(learn("Three."))
    conversation = begin(world.database).question.conversation_id
    world.keep(learn("Three."), place=KnowledgePlace("conversation", conversation))
    assert len(list_texts(world.serve(OWNER))) == 3


@pytest.mark.parametrize(
    "learned",
    [
        learn("It rains.", url="https://sky.example/lyon"),
        LearnedItem(item=make_item(kind=KnowledgeType.SIDE_INFO)),
        LearnedItem(item=make_item("Q?", "A.", make_reference("A.", "A.", None))),
    ],
)
def test_what_comes_from_the_web_is_marked(world: KnowledgeWorld, learned: LearnedItem) -> None:
    (item,) = world.keep(learned)
    assert world.serve(OWNER).get(item).is_of_web


@pytest.mark.parametrize(
    "learned", [learn(LEAVE, "desk:leave"), LearnedItem(item=make_item(kind=KnowledgeType.CODING))]
)
def test_what_does_not_come_from_there_is_not(world: KnowledgeWorld, learned: LearnedItem) -> None:
    world.put("leave", LEAVE)
    (item,) = world.keep(learned)
    assert not world.serve(OWNER).get(item).is_of_web
