"""Kept knowledge and its exports, shown to second persons while rights, documents and memberships change: no leak."""

import random
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from backend.access.roles import Role
from backend.chat.text_nearness import SentenceModel
from backend.research.knowledge.kept_knowledge import Staleness
from backend.research.knowledge.lookup import find_earlier
from backend.research.knowledge.service import KnowledgeService
from backend.schemas.knowledge import export_knowledge
from backend.store.chat import projects
from backend.store.owner import ConversationOwner
from backend.store.research.knowledge_records import KnowledgePlace
from connectors.errors import NotFoundError
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.embedding.language_support import EVERYTHING
from indexing.runtime.deadline import Deadline
from tests.support.accounts import add_person
from tests.support.conversations import START
from tests.support.databases import sqlite_in
from tests.support.knowledge import KnowledgeWorld, learn
from tests.support.soak import scaled

CHECKS = scaled(scaled(100, 300, "slow"), 10_000, "access")
"""Looks of one person at one item, in every way there is."""
MOST_KEPT = 25
MODEL = SentenceModel(HashingEmbedder(), EVERYTHING)
ANN, BOB, EVE = (ConversationOwner(number) for number in (1, 2, 3))
TOKENS = {ANN: "user:ann@example.com", BOB: "user:bob@example.com", EVE: "user:eve@example.com"}
DOCUMENTS = ("a", "b", "c", "d")


@dataclass
class Model:
    """What holds by itself: who may read which document, what it says, and who is in the project."""

    readers: dict[str, set[ConversationOwner]] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    members: set[ConversationOwner] = field(default_factory=lambda: {ANN})


@dataclass
class Item:
    owner: ConversationOwner
    is_of_project: bool
    secret: str
    documents: dict[str, int]
    """With the version that it quotes."""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[KnowledgeWorld]:
    with closing(KnowledgeWorld(sqlite_in(tmp_path), tmp_path / "index")) as opened:
        add_person(opened.database, "ann@example.com", Role.ADMIN)
        for name in ("bob", "eve"):
            add_person(opened.database, f"{name}@example.com")
        yield opened


def _say(name: str, version: int) -> str:
    return f"Document {name} says secret{name}{version}."


@dataclass
class Story:
    world: KnowledgeWorld
    draw: random.Random
    model: Model = field(default_factory=Model)
    items: dict[str, Item] = field(default_factory=dict)
    seen: dict[bool, int] = field(default_factory=lambda: {True: 0, False: 0})

    def begin(self) -> None:
        self.project = projects.add(self.world.database, ANN, "Depot", "", START)
        for name in DOCUMENTS:
            self._write(name)

    def step(self) -> None:
        name = self.draw.choice(DOCUMENTS)
        match self.draw.randrange(8):
            case 0 | 1 | 2 if name in self.model.versions:
                self._draw_readers(name)
                self.world.admit(name, *(TOKENS[one] for one in self.model.readers[name]))
            case 3:
                self._write(name)
            case 4 if name in self.model.versions:
                self.world.drop(name)
                del self.model.versions[name]
            case 5:
                self._change_member(self.draw.choice((BOB, EVE)))
            case _ if len(self.items) < MOST_KEPT:
                self._keep()

    def _draw_readers(self, name: str) -> None:
        chosen = {one for one in TOKENS if self.draw.random() < 0.6}
        self.model.readers[name] = chosen or {ANN}

    def _write(self, name: str) -> None:
        self._draw_readers(name)
        self.model.versions[name] = self.draw.randrange(3)
        readers = (TOKENS[one] for one in self.model.readers[name])
        self.world.put(name, _say(name, self.model.versions[name]), *readers)

    def _change_member(self, person: ConversationOwner) -> None:
        database = self.world.database
        if person in self.model.members:
            projects.remove_person(database, self.project, person.person_id or 0)
            self.model.members.remove(person)
        else:
            email = TOKENS[person].removeprefix("user:")
            projects.add_member(database, self.project, email)
            self.model.members.add(person)

    def _keep(self) -> None:
        """Somebody keeps what they may read."""
        owner = self.draw.choice(sorted(self.model.members, key=lambda one: one.person_id or 0))
        readable = [one for one in self.model.versions if owner in self.model.readers[one]]
        if not readable:
            return
        name = self.draw.choice(readable)
        secret = _say(name, self.model.versions[name])
        is_of_project = self.draw.random() < 0.7
        place = KnowledgePlace("project", self.project) if is_of_project else KnowledgePlace("own")
        learned = learn(secret, f"desk:{name}", question=f"What says document {name}?")
        (item_id,) = self.world.keep(learned, owner=owner, place=place)
        self.items[item_id] = Item(owner, is_of_project, secret, {name: self.model.versions[name]})

    def check(self, person: ConversationOwner) -> int:
        """Look at every item in every way; return how many looks it were."""
        service = self.world.serve(person, TOKENS[person])
        exported = export_knowledge(service.export_page(None, None).items)
        found = {one.id for one in service.search("What says document a b c d", None, MODEL, 100)}
        listed = {one.id: one for one in service.list_all(None)}
        earlier = self._find_earlier(service)
        for item_id, item in self.items.items():
            may_read, is_gone = self._may_read(item, person), self._is_gone(item, person)
            assert (item_id in listed) == (may_read or is_gone)
            assert (item_id in found) == may_read
            assert (item_id in earlier) == (may_read and self._is_fresh(item))
            self._check_single(service, item_id, person)
            if not any(self._may_read(one, person) for one in self._of_same_text(item)):
                assert item.secret not in exported
            elif may_read:
                assert item.secret in exported
            self.seen[may_read] += 1
        return len(self.items)

    def _check_single(
        self, service: KnowledgeService, item_id: str, person: ConversationOwner
    ) -> None:
        item = self.items[item_id]
        if not self._may_read(item, person) and not self._is_gone(item, person):
            with pytest.raises(NotFoundError):
                service.get(item_id)
            return
        kept = service.get(item_id)
        if self._is_gone(item, person):
            assert (kept.stale, kept.item.answer) == (Staleness.SOURCE_GONE, "")
        else:
            assert kept.item.answer == item.secret
            assert (kept.stale is None) == self._is_fresh(item)

    def _find_earlier(self, service: KnowledgeService) -> set[str]:
        places = [KnowledgePlace("own"), KnowledgePlace("project", self.project)]
        limit = Deadline.after(60)
        found = set[str]()
        for name in DOCUMENTS:
            question = f"What says document {name}?"
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr("backend.research.knowledge.lookup.MOST_USED", 100)
                found |= {
                    one.id for one in find_earlier(service.gate, places, question, MODEL, limit)
                }
        return found

    def _of_same_text(self, item: Item) -> list[Item]:
        return [one for one in self.items.values() if one.secret == item.secret]

    def _is_told(self, item: Item, person: ConversationOwner) -> bool:
        if not item.is_of_project:
            return item.owner == person
        return {person, item.owner} <= self.model.members

    def _may_read(self, item: Item, person: ConversationOwner) -> bool:
        return self._is_told(item, person) and all(
            one in self.model.versions and person in self.model.readers[one]
            for one in item.documents
        )

    def _is_gone(self, item: Item, person: ConversationOwner) -> bool:
        is_own = item.owner == person and self._is_told(item, person)
        return is_own and not any(one in self.model.versions for one in item.documents)

    def _is_fresh(self, item: Item) -> bool:
        return all(self.model.versions[name] == was for name, was in item.documents.items())


@pytest.mark.deep("slow")
@pytest.mark.deep("access")
def test_nothing_leaks_while_rights_documents_and_memberships_change(
    world: KnowledgeWorld,
) -> None:
    story, checks = Story(world, random.Random(11)), 0
    story.begin()
    while checks < CHECKS:
        story.step()
        checks += story.check(story.draw.choice((ANN, BOB, EVE)))
        if len(story.items) >= MOST_KEPT:
            gone = story.draw.choice(list(story.items))
            owner = story.items[gone].owner
            # By whoever owns it, where they see it.
            service = world.serve(owner, TOKENS[owner])
            if any(one.id == gone for one in service.list_all(None)):
                service.delete(gone)
                del story.items[gone]
    assert min(story.seen.values()) > CHECKS // 10, story.seen
