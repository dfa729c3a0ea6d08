"""Whoever asks, in whatever way: exactly what the asker may read, while members and documents change.

The same decisions are made by a model of sets. Between the writes of a change nothing is shown that may be read neither
before nor after it. Something may be missing: who leaves a group and joins another waits for the end of the change.
"""

import random
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from starlette.requests import Request

from backend.access.explanation import Reason, explain
from backend.access.group_sync import syncing_groups
from backend.access.own_readers import find_own_readers
from backend.access.readers import resolve_readers
from backend.access.roles import Role
from backend.access.source_accounts import SourceAccountService
from backend.api.app import create_app
from backend.api.authorization import Asker
from backend.container import Container
from backend.settings import Settings
from backend.store.accounts import people
from backend.store.audit import OWNER
from backend.store.database import Database
from backend.store.documents import documents
from backend.store.sync import run_transitions, sources
from backend.sync.run_lease import this_process
from backend.web import routes
from connectors.access import (
    PUBLIC,
    Access,
    Readers,
    is_account_token,
    make_account_token,
    parse_account_token,
)
from connectors.batched import batched
from connectors.connector import ReaderGroup
from connectors.errors import ConflictError
from indexing.chunking.chunk import ChunkRange
from indexing.index.protocols import Amend, Filters, Index, IndexQuery, IndexWriter
from indexing.index.spelling import MAX_WORDS, spelling_query
from indexing.ingestion.ledger import AccessAmended
from tests.contract.connector_worlds.held import resolve
from tests.support.accounts import add_person
from tests.support.chunks import document as indexed
from tests.support.chunks import vector
from tests.support.groups import token_of
from tests.support.index_engines import Engine, LocalEngine, OpenSearchEngine, soon
from tests.support.models import MODEL_CACHE
from tests.support.opensearch_server import SERVERS, url_of
from tests.support.rights import may_read
from tests.support.soak import scaled
from tests.support.store import Store, document, gone, store_at

pytestmark = pytest.mark.deep("engines")

DOCUMENTS, PEOPLE, GROUPS, ACCOUNTS = 25, 6, 8, 5
CHECKS = scaled(scaled(400, 1_000, "slow"), 100_000, "engines")
"""Whether one asker may learn of one document in one way, or a count."""
CLUSTER_CHECKS = scaled(scaled(400, 1_000, "slow"), 20_000, "engines")
CHEAP = ("expansion", "list", "search")
"""Ways in which most are asked between writes."""
ASKED_AT_REST = 5
"""Askers between any two changes, each of whom is shown exactly what is right."""
ASKED_BETWEEN = scaled(2, PEOPLE, "engines")
"""Askers between any two writes."""
COMMON = "cleaving"
ASKER_HEADER = "x-asker"
LETTERS = "bcdfghjklmnpqrstvwxz"


def person(number: int) -> str:
    return f"user:p{number}@example.com"


ASKERS = [person(number) for number in range(PEOPLE)]


def own_word(number: int) -> str:
    """A word of one document, far from those of others."""
    return "".join(random.Random(number).choices(LETTERS, k=12))


@dataclass
class Model:
    """What is right."""

    members: dict[str, frozenset[str]]
    access: dict[str, Access]
    mapped: dict[str, str] = field(default_factory=dict)
    """To whom an admin mapped accounts of the source, by their tokens; it counts for nothing while the source shows the
    address of somebody else."""

    def readable(self, asker: str) -> frozenset[str]:
        groups = [ReaderGroup(token, members) for token, members in self.members.items()]
        groups += [
            ReaderGroup(token, frozenset({one}))
            for token, one in self.mapped.items()
            if not self.members[token].intersection(ASKERS) - {one}
        ]
        readers = resolve(groups, asker)
        return frozenset(name for name, access in self.access.items() if may_read(readers, access))


@dataclass
class Place:
    """An index and a database, the model of them, and the chance of a test."""

    store: Store
    writer: IndexWriter
    index: Index
    pages: TestClient
    chance: random.Random
    model: Model = field(default_factory=lambda: Model({}, {}))
    decided: Counter[str] = field(default_factory=Counter)

    @property
    def database(self) -> Database:
        return self.store.database

    def fill(self) -> None:
        number = sources.find(self.database, "desk").id
        self.model.members = {token_of(number, f"g{n}"): frozenset() for n in range(GROUPS)}
        accounts = {make_account_token(number, f"a{n}"): frozenset[str]() for n in range(ACCOUNTS)}
        self.model.members |= accounts
        for n in range(DOCUMENTS):
            self.model.access[f"desk:{n:02}"] = self.draw_access()
        self.store.ledger.save_conjunctions(self.model.access.values())
        self.writer.write(
            indexed(name, f"{COMMON} {own_word(n)}", "more of it", access=access, source="desk")
            for n, (name, access) in enumerate(self.model.access.items())
        )
        self.store.hold(
            *(document(name, access=access) for name, access in self.model.access.items())
        )

    def draw_access(self) -> Access:
        tokens = [*self.model.members, *ASKERS]
        clauses = [self.chance.sample(tokens, self.chance.choice([0, 1, 2, 3])) for _ in range(2)]
        drawn = clauses[: self.chance.choice([1, 1, 2])]
        return Access.all_of(
            [PUBLIC, *one] if self.chance.random() < 0.05 else one for one in drawn
        )

    def draw_members(self) -> dict[str, frozenset[str]]:
        """Return the members of all groups, those of some drawn again; groups may contain each other."""
        drawn = dict(self.model.members)
        for token in self.chance.sample(sorted(drawn), 3):
            others = [*sorted(drawn), *ASKERS]
            drawn[token] = frozenset(self.chance.sample(others, self.chance.randint(0, 4)))
            if self.chance.random() < 0.03:
                drawn[token] |= {PUBLIC}
        return drawn

    def change_mapping(self) -> None:
        """Give an account to somebody else, or to nobody: in force at once, whatever a sync does meanwhile."""
        service = SourceAccountService(self.database)
        token = self.chance.choice([one for one in self.model.members if is_account_token(one)])
        if self.model.mapped.pop(token, None):
            (former,) = (one for one in service.list_accounts() if one.token == token)
            service.withdraw(former.id)
        with suppress(ConflictError):  # The source shows the address of another.
            asker = self.chance.choice(ASKERS)
            service.map(asker.removeprefix("user:"), "desk", parse_account_token(token))
            self.model.mapped[token] = asker

    def change(self) -> None:
        """Let the source change members, the access of documents, or both; and ask between the writes."""
        access = dict(self.model.access)
        for name in self.chance.sample(sorted(access), self.chance.choice([1, 3, 5])):
            access[name] = self.draw_access()
        before, after = self.model, Model(self.draw_members(), access, self.model.mapped)
        self.ask_between(before, after)
        with self.syncing(after.members):
            self.ask_between(before, after)
            for name, granted in access.items():
                if granted != before.access[name]:
                    self.amend(name, granted, lambda: self.ask_between(before, after))
        self.model = after

    @contextmanager
    def syncing(self, members: Mapping[str, frozenset[str]]) -> Iterator[None]:
        number = sources.find(self.database, "desk").id
        run = run_transitions.begin(self.database, "desk", "permissions", this_process(), gone)
        listed = [ReaderGroup(token, those) for token, those in members.items()]
        with syncing_groups(self.database, run, number, lambda _: listed):
            yield
        run_transitions.close(self.database, run, "done")

    def amend(self, name: str, access: Access, ask: Callable[[], None]) -> None:
        self.store.ledger.save_conjunctions([access])
        self.writer.write([Amend(document_id=name, access=access)])
        ask()
        self.store.ledger.save([AccessAmended(name, access)])
        ask()

    def ask_between(self, before: Model, after: Model) -> None:
        for number, asker in enumerate(self.chance.sample(ASKERS, ASKED_BETWEEN)):
            allowed = before.readable(asker) | after.readable(asker)
            way = self.chance.choice(CHEAP if number else sorted(WAYS))
            assert self.ask(way, asker) <= allowed, way
            if number == 0:
                assert self.count(asker) <= len(allowed)

    def ask_exactly(self) -> None:
        asker = self.chance.choice([PUBLIC, *ASKERS])
        way = self.chance.choice(sorted(WAYS))
        readable = self.model.readable(asker)
        assert self.ask(way, asker) == readable, way
        assert self.count(asker) == len(readable)

    def count(self, asker: str) -> int:
        """Return how many documents the facets count."""
        self.decided["facets"] += 1
        return self.index.facets(Filters(), self.hold(asker), soon()).sources.get("desk", 0)

    def ask(self, way: str, asker: str) -> frozenset[str]:
        self.decided[way] += DOCUMENTS
        return frozenset(WAYS[way](self, asker))

    def hold(self, asker: str) -> Readers:
        return resolve_readers(self.database, find_own(self.database, asker))


def find_own(database: Database, asker: str) -> Readers:
    """Return what somebody holds by themselves: by their account, where they have one."""
    person = people.find_by_email(database, asker.removeprefix("user:"))
    return find_own_readers(database, person) if person else Readers.of(asker)


NAMES = [f"desk:{n:02}" for n in range(DOCUMENTS)]


def search(place: Place, asker: str) -> set[str]:
    queries = [
        IndexQuery(text=COMMON, vector=vector(COMMON), alpha=0.3, size=100),
        *(IndexQuery(text=own_word(n), vector=None, alpha=0.0) for n in (0, DOCUMENTS - 1)),
    ]
    whole, *single = place.index.find(queries, place.hold(asker), soon()).rankings
    found = {hit.chunk.document_id for hit in whole if hit.evidence.bm25}
    every = {hit.chunk.document_id for ranking in (whole, *single) for hit in ranking}
    assert every == found, "one leg shows what another does not"
    return found


def look_up_exactly(place: Place, asker: str) -> set[str]:
    """The documents that are found by a term alone that is looked up as it is written."""
    queries = [
        IndexQuery(text="", vector=None, alpha=0.0, exact=(term,), size=100)
        for term in (COMMON, *map(own_word, range(DOCUMENTS)))
    ]
    common, *single = place.index.find(queries, place.hold(asker), soon()).rankings
    found = {hit.chunk.document_id for hit in common if hit.evidence.exact}
    assert found == {hit.chunk.document_id for ranking in single for hit in ranking}
    return found


def open_each(place: Place, asker: str) -> set[str]:
    readers = place.hold(asker)
    return {name for name in NAMES if documents.find(place.database, name, readers) is not None}


def name_each(place: Place, asker: str) -> set[str]:
    """The documents that are found by their titles and links."""
    readers, found = place.hold(asker), set()
    for name in NAMES:
        for given in (f"About {name}", f"https://desk.test/{name}"):
            found |= {one.id for one in documents.find_by_name(place.database, given, readers, 9)}
    return found


def list_all(place: Place, asker: str) -> set[str]:
    return {one.id for one in documents.list_readable(place.database, place.hold(asker), "", 100)}


def expand(place: Place, asker: str) -> set[str]:
    ranges = [ChunkRange(name, 0, 9) for name in NAMES]
    found = place.index.chunks(ranges, place.hold(asker), soon())
    assert all(len(chunks) in (0, 2) for chunks in found)
    return {chunks[0].document_id for chunks in found if chunks}


def correct_words(place: Place, asker: str) -> set[str]:
    """The documents whose own word is suggested for one that is mistyped."""
    mistyped = {f"{own_word(n)[:5]}{own_word(n)[6:]}": n for n in range(DOCUMENTS)}
    found, readers = set(), place.hold(asker)
    for words in batched(mistyped, MAX_WORDS):
        asked = spelling_query(f"{' '.join(words)} ?")
        for word, near in place.index.suggest_corrections(asked, readers, soon()).items():
            assert near == (own_word(mistyped[word]),)
            found.add(f"desk:{mistyped[word]:02}")
    return found


def explain_each(place: Place, asker: str) -> set[str]:
    """The documents of which an administrator is told that the asker may read them."""
    own = Readers.of(asker)
    return {
        name
        for name in NAMES
        if explain(place.database, name, own, OWNER).reason is Reason.READABLE
    }


def request_each(place: Place, asker: str) -> set[str]:
    return request(place, asker, "/api/documents/{}")


def browse_each(place: Place, asker: str) -> set[str]:
    return request(place, asker, "/document/{}")


def request(place: Place, asker: str, path: str) -> set[str]:
    """Return the documents of which there is something at a path; of the others there is one and the same answer."""
    headers, refused = {ASKER_HEADER: asker, "x-request-id": "one"}, set()
    found = set()
    for name in NAMES:
        answer = place.pages.get(path.format(name), headers=headers)
        if answer.status_code == 200:
            found.add(name)
        else:
            assert answer.status_code == 404
            refused.add(answer.text.replace(name, "NAME"))
    assert len(refused) <= 1
    return found


WAYS: Mapping[str, Callable[[Place, str], set[str]]] = {
    "search": search,
    "exact terms": look_up_exactly,
    "document": open_each,
    "names": name_each,
    "list": list_all,
    "expansion": expand,
    "suggestions": correct_words,
    "explanation": explain_each,
    "API": request_each,
    "page": browse_each,
}


@dataclass(frozen=True)
class AskerByHeader:
    """Takes every request for one of whom it names. Implements `backend.api.authentication.Authenticator`."""

    database: Database

    async def authenticate(self, request: Request) -> Asker:
        readers = find_own(self.database, request.headers[ASKER_HEADER])
        return Asker(kind="local", readers=readers, role=Role.MEMBER)


@pytest.fixture(params=["embedded", *SERVERS])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    if request.param == "embedded":
        yield LocalEngine(tmp_path / "index")
    else:
        cluster = OpenSearchEngine(url_of(request.param), f"t-{secrets.token_hex(6)}")
        yield cluster
        cluster.remove()


@pytest.fixture
def pages(database_url: str, tmp_path: Path) -> Iterator[TestClient]:
    settings = {"home": tmp_path / "home", "database_url": database_url, "models": MODEL_CACHE}
    container = Container(Settings.model_validate(settings))
    app = create_app(container, AskerByHeader(container.database))
    routes.mount(app)
    with (
        closing(container.database),
        TestClient(app, base_url="http://127.0.0.1:8321") as client,
    ):
        assert app.state.app_state.warmup.ready.wait(120)
        yield client


@pytest.fixture
def place(engine: Engine, database_url: str, pages: TestClient) -> Iterator[Place]:
    with store_at(database_url, "desk") as store:
        for number, asker in enumerate(ASKERS):
            role = Role.MEMBER if number else Role.ADMIN
            add_person(store.database, asker.removeprefix("user:"), role)
        made = Place(store, engine.writer(), engine.index(), pages, random.Random(2026))
        made.fill()
        yield made


@pytest.mark.deep("slow")
def test_every_way_of_asking_shows_exactly_what_may_be_read(place: Place, engine: Engine) -> None:
    checks = CHECKS if isinstance(engine, LocalEngine) else CLUSTER_CHECKS
    while place.decided.total() < checks or place.decided.keys() < WAYS.keys():
        place.change()
        place.change_mapping()
        for _ in range(ASKED_AT_REST):
            place.ask_exactly()
    print(dict(place.decided))  # Shown with -s.
