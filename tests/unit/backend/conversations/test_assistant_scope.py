"""At random: what the turns of an assistant find is what the asker may read, within its scope; its scope tells nothing."""

import random
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from backend.access.groups import GroupService
from backend.access.own_readers import find_own_readers, make_group_token
from backend.access.roles import Role
from backend.chat.chat_state import ChatStateContainer
from backend.chat.events import AnswerDone
from backend.chat.rights_watch import list_documents
from backend.chat.turn import ChatTurn
from backend.container import Container
from backend.conversations.assistant_service import AssistantService, AssistantUser
from backend.search.events import FiltersApplied, FirstResults, FusedResults
from backend.settings import Settings
from backend.store.accounts.people import Person
from backend.store.audit import OWNER
from backend.store.chat import assistants
from backend.store.chat.assistants import AssistantValues, Visibility
from backend.store.owner import ConversationOwner
from connectors.access import Access, Readers
from connectors.errors import NotFoundError
from indexing.chunking.chunk import Chunk
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.embedding.language_support import EVERYTHING
from indexing.index.protocols import Filters
from indexing.local import open_index
from indexing.runtime.deadline import Deadline
from tests.support.accounts import add_person
from tests.support.chunks import chunk
from tests.support.conversations import START
from tests.support.search import write_local_index
from tests.support.soak import scaled

TURNS = scaled(100, 1_000, "slow")
SOURCES = tuple(f"source{number}" for number in range(5))
SETS = tuple(f"set{number}" for number in range(4))
GROUPS = ("hr", "it", "sales")
WORDS = ("leave", "travel", "scanner", "invoice", "warranty", "salary")
SECONDS = 30.0


@dataclass(frozen=True)
class World:
    container: Container
    chunks: dict[str, Chunk]
    people: tuple[Person, ...]
    groups: dict[int, frozenset[str]]
    """Of each person."""
    made: tuple[tuple[str, Person, AssistantValues], ...]
    """Assistants, each with its owner."""

    def readers(self, person: Person) -> Readers:
        return find_own_readers(self.container.database, person)

    def readable(self, person: Person) -> set[str]:
        tokens = self.readers(person).tokens
        return {
            name
            for name, one in self.chunks.items()
            if all(not clause.isdisjoint(tokens) for clause in one.access.clauses)
        }

    def in_scope(self, values: AssistantValues) -> set[str]:
        return {
            name
            for name, one in self.chunks.items()
            if (not values.sources or one.source in values.sources)
            and (not values.sets or not one.sets.isdisjoint(values.sets))
        }

    def may_use(self, person: Person, owner: Person, values: AssistantValues) -> bool:
        match values.visibility:
            case Visibility.ALL:
                return True
            case Visibility.GROUPS:
                shared = not self.groups[person.id].isdisjoint(values.groups)
                return shared or person == owner or person.role == Role.ADMIN
            case Visibility.MINE:
                return person == owner

    def service(self, person: Person) -> AssistantService:
        readers = self.readers(person)
        user = AssistantUser(
            owner=ConversationOwner(person.id),
            readers=readers,
            is_admin=person.role == Role.ADMIN,
            actor=OWNER,
        )
        index = self.container.chat.engine.index

        def find_sources() -> frozenset[str]:
            return frozenset(index.facets(Filters(), readers, Deadline.after(SECONDS)).sources)

        return AssistantService(
            database=self.container.database, user=user, find_sources=find_sources
        )


def _some(draw: random.Random, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(draw.sample(names, draw.randint(1, 2))) if draw.random() < 0.7 else ()


def _make_chunk(draw: random.Random, number: int) -> Chunk:
    readers = draw.choice(
        ["public", *map(make_group_token, GROUPS), *(f"user:p{n}@example.com" for n in range(6))]
    )
    text = " ".join(draw.choices(WORDS, k=4))
    return chunk(
        f"d{number}",
        0,
        f"The {text} of number {number}.",
        source=draw.choice(SOURCES),
        sets=frozenset(_some(draw, SETS)),
        access=Access.to([readers]),
    )


def _make_values(draw: random.Random, number: int) -> AssistantValues:
    visibility = draw.choice(list(Visibility))
    return AssistantValues(
        name=f"assistant {number}",
        sources=_some(draw, SOURCES),
        sets=_some(draw, SETS),
        visibility=visibility,
        groups=tuple(draw.sample(GROUPS, 1)) if visibility is Visibility.GROUPS else (),
    )


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    draw, home = random.Random(7), tmp_path_factory.mktemp("scopes")
    container = Container(Settings.model_validate({"home": home}))
    database = container.database
    people = tuple(
        add_person(database, f"p{number}@example.com", Role.MEMBER if number else Role.ADMIN)
        for number in range(6)
    )
    service, groups = GroupService(database), {one.id: frozenset[str]() for one in people}
    for name in GROUPS:
        service.create(name)
        for person in draw.sample(people, 3):
            service.add_member(name, person.email)
            groups[person.id] |= {name}
    chunks = {one.document_id: one for one in (_make_chunk(draw, n) for n in range(80))}
    made = [(draw.choice(people), _make_values(draw, number)) for number in range(60)]
    stored = tuple(
        (assistants.add(database, ConversationOwner(owner.id), values, START), owner, values)
        for owner, values in made
    )
    folder = Path(home / "index")
    write_local_index(folder, chunks.values())
    with closing(database), closing(open_index(folder, HashingEmbedder().identity)) as index:
        _use_index(container, index)
        yield World(container, chunks, people, groups, stored)


def _use_index(container: Container, index: object) -> None:
    """Let the container search an index that a hashing embedder made."""
    engine = container.chat.engine
    vars(engine)["index"] = index
    vars(engine.embedding).update(embedder=HashingEmbedder(), language_support=EVERYTHING)


@pytest.mark.deep("slow")
def test_no_turn_finds_more_than_the_asker_may_read_in_the_scope(world: World) -> None:
    draw = random.Random(11)
    found_something = refused = 0
    for _ in range(TURNS):
        person = draw.choice(world.people)
        assistant_id, owner, values = draw.choice(world.made)
        service = world.service(person)
        if not world.may_use(person, owner, values):
            refused += 1
            with pytest.raises(NotFoundError):
                service.find_settings(assistant_id)
            continue
        own = Filters(sources=frozenset(_some(draw, SOURCES)) or None)
        turn = ChatTurn(
            message=f"What of the {draw.choice(WORDS)} {draw.choice(WORDS)}?",
            readers=world.readers(person),
            deadline=Deadline.after(SECONDS),
            person_id=person.id,
            filters=own,
            assistant=service.find_settings(assistant_id),
        )
        found = _run(world, turn)
        allowed = world.readable(person) & world.in_scope(values)
        if own.sources:
            allowed = {name for name in allowed if world.chunks[name].source in own.sources}
        assert found <= allowed, (person.email, values, own)
        found_something += bool(found)
        assert bool(found) == bool(allowed)
        _check_told(world, person, service, assistant_id)
    assert found_something > TURNS // 10
    assert refused > TURNS // 10


def _run(world: World, turn: ChatTurn) -> set[str]:
    """Return all documents that any event of a turn has anything of."""
    found: set[str] = set()
    for event in world.container.chat.answer(turn, (), ChatStateContainer()):
        match event:
            case FirstResults(sections=sections) | FusedResults(sections=sections):
                found |= {one.document_id for one in sections}
            case FiltersApplied(filters=filters):
                assert filters == turn.filters, "the scope is told"
            case AnswerDone(documents=documents):
                found |= {one.document_id for one in documents}
            case _:
                found |= {*list_documents(event)}
    return found


def _check_told(world: World, person: Person, service: AssistantService, assistant_id: str) -> None:
    visible = {world.chunks[name].source for name in world.readable(person)}
    assert visible.issuperset(service.get(assistant_id).values.sources)
