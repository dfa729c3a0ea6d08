"""At random: people join and leave, files are added and removed, assistants are shared; nobody finds more than arithmetic says."""

import random
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from backend.access.groups import GroupService
from backend.access.own_readers import find_own_readers
from backend.access.people import PeopleService
from backend.access.readers import make_file_access, make_file_token, resolve_with_own_files
from backend.access.roles import Role
from backend.access.shared_file_readers import may_read_files_of, resolve_in, resolve_to_open
from backend.files.attached_files import find_attached
from backend.files.file_keeper import FileIndex, sweep
from backend.store.accounts.people import Person
from backend.store.chat import assistants, projects, shared_files
from backend.store.chat.assistants import DEFAULT_ID, AssistantValues, Visibility
from backend.store.chat.shared_files import FileHolder, FileHolders, HolderKind
from backend.store.database import Database, open_database
from backend.store.documents.ledger import StoredLedger
from backend.store.files import user_files
from backend.store.files.file_source import FILES_SOURCE, make_document_id
from backend.store.files.user_files import NewFile
from backend.store.owner import ConversationOwner
from connectors.access import Readers
from connectors.document import Document, Section
from connectors.errors import NotFoundError
from indexing.chunking.chunk import Chunk, ChunkRange
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.index.protocols import Filters, Index, IndexQuery
from indexing.ingestion.executor import Executor, Plan
from indexing.ingestion.planner import plan_restore
from indexing.ingestion.progress import RunCounters
from indexing.local import open_index, open_writer
from indexing.runtime.deadline import Deadline
from tests.support.accounts import add_person
from tests.support.soak import scaled

STEPS = scaled(80, 2_500, "access")
"""Each compares what five ways of reading yield."""
GROUPS = ("hr", "it")
WORD = "salary"


@dataclass
class Model:
    """What is true, in plain sets."""

    owners: dict[str, int] = field(default_factory=dict)
    """Of files that are there."""
    names: dict[str, str] = field(default_factory=dict)
    projects: dict[str, int] = field(default_factory=dict)
    members: dict[str, set[int]] = field(default_factory=dict)
    disabled: set[int] = field(default_factory=set)
    """Whose account is disabled."""
    assistants: dict[str, tuple[int, Visibility, frozenset[str]]] = field(default_factory=dict)
    held: dict[FileHolder, set[str]] = field(default_factory=dict)
    shared: int = 0
    """How often somebody was given what is another's."""
    groups: dict[str, set[int]] = field(default_factory=lambda: {name: set() for name in GROUPS})

    def of_project(self, person: int, project: str) -> set[str]:
        inside = {self.projects[project], *self.members[project]}
        shown = inside - self.disabled
        files = self.held.get(FileHolder("project", project), set())
        return {one for one in files if person in inside and self.owners[one] in shown}

    def of_assistant(self, person: int, assistant: str) -> set[str]:
        owner, visibility, groups = self.assistants[assistant]
        is_in_group = any(person in self.groups[name] for name in groups)
        may_use = (
            person == owner
            or visibility is Visibility.ALL
            or (visibility is Visibility.GROUPS and is_in_group)
        )
        return self.held.get(FileHolder("assistant", assistant), set()) if may_use else set()

    def own(self, person: int) -> set[str]:
        return {file for file, owner in self.owners.items() if owner == person}

    def to_open(self, person: int) -> set[str]:
        found = self.own(person)
        for project in self.projects:
            found |= self.of_project(person, project)
        for assistant in self.assistants:
            found |= self.of_assistant(person, assistant)
        return found


@dataclass(frozen=True)
class World:
    database: Database
    files: FileIndex
    index: Index
    people: tuple[Person, ...]
    draw: random.Random
    model: Model

    def act(self) -> None:
        """Change something, where there is something to change."""
        self.draw.choice(
            [
                self._upload,
                self._delete_file,
                *[self._hold] * 4,
                self._let_go,
                *[self._join] * 3,
                *[self._leave] * 2,
                self._make,
                self._delete_holder,
                *[self._share] * 2,
                self._regroup,
                self._disable_or_enable,
                *[self._sweep] * 2,
            ]
        )()

    def _sweep(self) -> None:
        sweep(self.files)

    def _person(self) -> Person:
        return self.draw.choice(self.people)

    def _upload(self) -> None:
        person, number = self._person(), len(self.model.names)
        owner, file = ConversationOwner(person.id), f"file{number}"
        document = make_document_id(file)
        name = f"{file}.md"
        new = NewFile(
            id=file,
            name=name,
            media_type="text/markdown",
            size=10,
            sha256=file,
            document_id=document,
            data=b"",
        )
        user_files.add(self.database, owner, new, most=10_000)
        self.files.store(
            Document(
                id=document,
                source=FILES_SOURCE,
                title=name,
                sections=(Section(text=f"The {WORD} of number {number}."),),
                link="",
                media_type="text/markdown",
                access=make_file_access(owner, file),
                version="1",
            )
        )
        assert user_files.finish(self.database, file, 10, None)
        self.model.owners[file], self.model.names[file] = person.id, name

    def _delete_file(self) -> None:
        if len(self.model.owners) < 8:
            return
        file = self.draw.choice(sorted(self.model.owners))
        owner = ConversationOwner(self.model.owners.pop(file))
        user_files.mark_for_removal(self.database, owner, file)
        # Until it is swept, its uploader may still find it.
        sweep(self.files)
        for held in self.model.held.values():
            held.discard(file)

    def _make(self) -> None:
        person = self._person()
        owner, now = ConversationOwner(person.id), datetime.now(UTC)
        if self.draw.random() < 0.5 and len(self.model.projects) < 5:
            made = projects.add(self.database, owner, "Depot", "", now)
            self.model.projects[made], self.model.members[made] = person.id, set()
        elif len(self.model.assistants) < 5:
            made = assistants.add(self.database, owner, AssistantValues(name="Desk"), now)
            self.model.assistants[made] = (person.id, Visibility.MINE, frozenset())

    def _delete_holder(self) -> None:
        holder = self._holder()
        if holder is None or self.draw.random() < 0.7:
            return
        if holder.kind == "project":
            projects.remove(self.database, holder.id)
            del self.model.projects[holder.id], self.model.members[holder.id]
        else:
            assistants.remove(self.database, holder.id)
            del self.model.assistants[holder.id]
        self.model.held.pop(holder, None)

    def _holder(self) -> FileHolder | None:
        made = [FileHolder("project", one) for one in self.model.projects]
        made += [FileHolder("assistant", one) for one in self.model.assistants]
        return self.draw.choice(made) if made else None

    def _hold(self) -> None:
        holder = self._holder()
        if holder is None or not self.model.owners:
            return
        file = self.draw.choice(sorted(self.model.owners))
        person = self.model.owners[file]
        if holder.kind == "project":
            may = person == self.model.projects[holder.id]
            may |= person in self.model.members[holder.id]
        else:
            may = person == self.model.assistants[holder.id][0]
        owner = ConversationOwner(person)
        if not may:
            with pytest.raises(NotFoundError):
                shared_files.add(self.database, owner, holder, file, 10_000)
            return
        shared_files.add(self.database, owner, holder, file, 10_000)
        self.model.held.setdefault(holder, set()).add(file)

    def _let_go(self) -> None:
        # In an order that is always the same: ids are random.
        of_each = self.model.held.items()
        held = [(holder, file) for holder, files in of_each for file in sorted(files)]
        if held:
            holder, file = self.draw.choice(held)
            shared_files.remove(self.database, holder, file)
            self.model.held[holder].discard(file)

    def _join(self) -> None:
        if self.model.projects:
            project, person = self.draw.choice(list(self.model.projects)), self._person()
            if person.id != self.model.projects[project]:
                projects.add_member(self.database, project, person.email)
                self.model.members[project].add(person.id)

    def _leave(self) -> None:
        of_each = self.model.members.items()
        inside = [(one, person) for one, people in of_each for person in sorted(people)]
        if inside:
            project, person = self.draw.choice(inside)
            projects.remove_person(self.database, project, person)
            self.model.members[project].discard(person)
            held = self.model.held.get(FileHolder("project", project), set())
            held -= self.model.own(person)

    def _share(self) -> None:
        if self.model.assistants:
            assistant = self.draw.choice(list(self.model.assistants))
            owner, _, _ = self.model.assistants[assistant]
            visibility = self.draw.choice(list(Visibility))
            groups = frozenset(self.draw.sample(GROUPS, 1))
            named = groups if visibility is Visibility.GROUPS else frozenset[str]()
            values = AssistantValues(name="Desk", visibility=visibility, groups=tuple(named))
            assistants.change(self.database, assistant, values, datetime.now(UTC))
            self.model.assistants[assistant] = (owner, visibility, named)

    def _regroup(self) -> None:
        service, name, person = (
            GroupService(self.database),
            self.draw.choice(GROUPS),
            self._person(),
        )
        if person.id in self.model.groups[name]:
            service.remove_member(name, person.email)
            self.model.groups[name].discard(person.id)
        else:
            service.add_member(name, person.email)
            self.model.groups[name].add(person.id)

    def _disable_or_enable(self) -> None:
        service = PeopleService(self.database)
        for person in self.people:
            if person.id in self.model.disabled:
                service.enable(person.email)
                self.model.disabled.discard(person.id)
                return
        person = self.draw.choice(self.people[1:])
        service.disable(person.email)
        self.model.disabled.add(person.id)

    def check(self) -> None:
        person, model = self._person(), self.model
        owner, own = ConversationOwner(person.id), find_own_readers(self.database, person)
        project = self.draw.choice([None, *model.projects])
        assistant = self.draw.choice([None, *model.assistants])
        of_project = model.of_project(person.id, project) if project else set()
        of_assistant = model.of_assistant(person.id, assistant) if assistant else set()

        # What is searched outside of all of them is one's own.
        assert self._find(resolve_with_own_files(self.database, own, owner)) == model.own(person.id)
        to_open = resolve_to_open(self.database, own, owner)
        assert self._open(to_open) == model.to_open(person.id)

        holders = FileHolders(project_id=project, assistant_id=assistant)
        readers = resolve_in(self.database, own, owner, holders)
        everything = model.own(person.id) | of_project | of_assistant
        assert self._find(readers) == everything
        attached = find_attached(self.database, owner, (), holders, readers)
        given = {one.id for one in attached.texts} if attached else set()
        assert given == of_project | of_assistant
        model.shared += bool(given - model.own(person.id))

        if self.draw.random() < 0.3:
            sweep(self.files)
            self._check_labels(readers, project, assistant)
        if project:
            listed = shared_files.list_of(self.database, FileHolder("project", project), owner)
            names = {one.file.name for one in listed}
            assert names == {model.names[one] for one in of_project}
        if assistant and not may_read_files_of(self.database, own, owner, assistant):
            assert not of_assistant

    def _check_labels(self, readers: Readers, project: str | None, assistant: str | None) -> None:
        """What the index finds by a project or an assistant is what that holds, and may be read."""
        found = self._find(readers)
        if project:
            held = self.model.held.get(FileHolder("project", project), set())
            only = Filters(project_id_filter=frozenset({project}))
            assert self._find(readers, only) == held & found
        if assistant:
            held = self.model.held.get(FileHolder("assistant", assistant), set())
            only = Filters(persona_id_filter=frozenset({assistant}))
            assert self._find(readers, only) == held & found

    def _find(self, readers: Readers, filters: Filters | None = None) -> set[str]:
        """Return the files that a search finds, after a look at titles and counts."""
        chosen, deadline = filters or Filters(), Deadline.after(30)
        query = IndexQuery(text=WORD, vector=None, alpha=0.0, size=500, filters=chosen)
        (ranking,) = self.index.find([query], readers, deadline).rankings
        found = {hit.chunk.document_id.partition(":")[2] for hit in ranking}
        assert {hit.chunk.title for hit in ranking} == {self.model.names[one] for one in found}
        counts = self.index.facets(chosen, readers, deadline).sources
        assert counts.get(FILES_SOURCE, 0) == len(found)
        return found

    def _open(self, readers: Readers) -> set[str]:
        files = sorted(self.model.names)
        ranges = [ChunkRange(make_document_id(one), 0, 1) for one in files]
        found = self.index.chunks(ranges, readers, Deadline.after(30))
        return {one for one, chunks in zip(files, found, strict=True) if chunks}


@pytest.fixture
def world(database_url: str, tmp_path: Path) -> Iterator[World]:
    embedder, folder = HashingEmbedder(), tmp_path / "index"
    with (
        closing(open_database(database_url)) as database,
        closing(open_index(folder, embedder.identity)) as index,
    ):
        files = FileIndex(
            database=database,
            embedder=embedder,
            writer=open_writer(folder, embedder.identity),
            ledger=StoredLedger(database),
        )
        people = tuple(
            add_person(database, f"p{number}@example.com", Role.MEMBER if number else Role.ADMIN)
            for number in range(5)
        )
        for name in GROUPS:
            GroupService(database).create(name)
        yield World(database, files, index, people, random.Random(15), Model())


def test_the_owner_of_a_machine_has_projects_and_assistants_with_files(database_url: str) -> None:
    owner, readers, now = ConversationOwner(None), Readers.of(), datetime.now(UTC)
    with closing(open_database(database_url)) as database:
        project = projects.add(database, owner, "Depot", "", now)
        desk = assistants.add(database, owner, AssistantValues(name="Desk"), now)
        for file, holder in (
            ("a", FileHolder("project", project)),
            ("b", FileHolder("assistant", desk)),
        ):
            document = make_document_id(file)
            new = NewFile(
                id=file,
                name=file,
                media_type="x",
                size=1,
                sha256=file,
                document_id=document,
                data=b"",
            )
            user_files.add(database, owner, new, most=10)
            shared_files.add(database, owner, holder, file, 10)
        tokens = resolve_to_open(database, readers, owner).tokens
        assert tokens > {make_file_token("a"), make_file_token("b")}
        of_project = resolve_in(database, readers, owner, FileHolders(project_id=project)).tokens
        assert make_file_token("a") in of_project
        assert make_file_token("b") not in of_project
        with pytest.raises(NotFoundError):
            shared_files.add(database, owner, FileHolder("assistant", DEFAULT_ID), "a", 10)


def test_an_index_that_is_built_anew_has_the_labels_at_once(world: World, tmp_path: Path) -> None:
    for _ in range(40):
        world.act()
    embedder, ledger, folder = HashingEmbedder(), StoredLedger(world.database), tmp_path / "new"
    executor = Executor(embedder, open_writer(folder, embedder.identity), ledger)
    for file in world.model.owners:
        document = ledger.document(make_document_id(file))
        assert document
        executor.run(Plan((plan_restore(document, 7, embedder),)), RunCounters())
    labelled = {
        (FileHolder(kind, one), each.document_id.partition(":")[2])
        for each in open_writer(folder, embedder.identity).export()
        for chunk in each.chunks
        for kind, labels in _labels_of(chunk)
        for one in labels
    }
    held = world.model.held.items()
    assert labelled == {(holder, file) for holder, files in held for file in files} != set()


def _labels_of(chunk: Chunk) -> Iterator[tuple[HolderKind, frozenset[str]]]:
    yield "project", chunk.projects
    yield "assistant", chunk.personas


@pytest.mark.deep("access")
def test_nobody_finds_a_file_that_arithmetic_keeps_from_them(world: World) -> None:
    for _ in range(4):
        world._upload()
        world._make()
    for _ in range(STEPS):
        world.act()
        world.check()
    assert world.model.shared > STEPS // 20
