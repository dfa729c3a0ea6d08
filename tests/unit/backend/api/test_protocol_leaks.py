"""Random requests of members over every protocol, while rights change: nobody is told of what they may not read.

Each report has a word that stands nowhere else. The language model says again all that it is sent, so that what reaches it
reaches the asker. Who may read what is computed here a second time, from the groups and the readers of each report.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import Any, TypeAlias

import pytest
from fastapi.testclient import TestClient

from backend.access.api_tokens import ApiTokenService, TokenScope
from backend.access.groups import GroupService
from backend.access.roles import Role
from backend.cli.listening import Listening
from backend.cli.server import Owner, make_app
from backend.container import Container
from backend.programs.langchain import open_home
from backend.sources.service import SourceService
from backend.store.accounts import people
from backend.store.sync import sources
from backend.sync.foreground_run import sync
from connectors.access import Readers
from tests.support.accounts import add_person
from tests.support.scripted_model import Reply, Request, Say, ScriptedModel
from tests.support.soak import scaled
from tests.unit.backend.api.conftest import ADDRESS, make_container

CHECKS = scaled(scaled((20,), (50,), "slow"), (1_250,) * 8, "access")
"""How many, one part after the other: each goes on where the one before it ended."""
REPORTS = 40
GROUPS = ("sales", "works", "board")
NAMES = ("ann", "bob", "eve", "tom", "kim")
ADMIN = "sam"
SOURCE = "reports"
CHANGE_SHARE, REWRITE_SHARE = 0.05, 0.01

pytestmark = pytest.mark.deep("access")


def email_of(name: str) -> str:
    return f"{name}@example.com"


def say_all(request: Request) -> Reply:
    """Say again all that was sent, and cite it."""
    numbers = " ".join(f"[{one['number']}]" for one in request.sources)
    return Say(f"{request.text} {numbers}" if request.sources else request.text)


@dataclass(frozen=True)
class Report:
    number: int
    word: str
    """Stands in this version of the report alone."""
    clauses: tuple[frozenset[str], ...]

    @property
    def id(self) -> str:
        return f"{SOURCE}:r-{self.number}"

    @property
    def question(self) -> str:
        return f"What is the word of report R-{self.number}?"

    def to_json(self) -> dict[str, Any]:
        text = f"The word of report R-{self.number} is {self.word}. Keep the word to yourself."
        readers = [sorted(clause) for clause in self.clauses]
        return {"id": f"r-{self.number}", "title": f"Report R-{self.number}", "text": text, "readers": readers}  # fmt: skip


@dataclass
class World:
    """A Quarry, its reports as they are now, and who is in which group."""

    container: Container
    random: Random
    clients: Mapping[str, TestClient]
    program: TestClient
    retrieve: Mapping[str, Callable[[str], str]]
    members: dict[str, set[str]] = field(default_factory=lambda: {group: set() for group in GROUPS})
    reports: dict[int, Report] = field(default_factory=dict)
    words: int = 0

    def may_read(self, name: str, report: Report) -> bool:
        groups = {f"group:{group}" for group, members in self.members.items() if name in members}
        held = {"public", f"user:{email_of(name)}", *groups}
        return bool(report.clauses) and all(clause & held for clause in report.clauses)

    def make_report(self, number: int) -> Report:
        self.words += 1
        tokens = [f"user:{email_of(name)}" for name in NAMES] + [f"group:{one}" for one in GROUPS]
        choose = self.random.choice
        clauses = tuple(
            frozenset(self.random.sample(tokens, self.random.randint(1, 3)))
            for _ in range(choose((1, 1, 2)))
        )
        public = (frozenset({"public"}),)
        return Report(number, f"quil{self.words:05d}x", choose((clauses, clauses, clauses, public)))

    def write(self, *numbers: int) -> None:
        """Put new versions of reports in, with other words and readers."""
        written = [self.make_report(number) for number in numbers]
        body = {"source": SOURCE, "documents": [report.to_json() for report in written]}
        answer = self.program.post("/api/documents", json=body)
        assert answer.json()["accepted"] == len(numbers), answer.text
        source = sources.find(self.container.database, SOURCE)
        pipeline = self.container.sources.pipeline(source)
        assert list(
            sync(
                self.container.database, source, self.container.sources.connector(source), pipeline
            )
        )
        self.reports |= {report.number: report for report in written}

    def change_member(self) -> None:
        group, name = self.random.choice(GROUPS), self.random.choice(NAMES)
        service = GroupService(self.container.database)
        if name in self.members[group]:
            service.remove_member(group, email_of(name))
            self.members[group].remove(name)
        else:
            service.add_member(group, email_of(name))
            self.members[group].add(name)


Ask: TypeAlias = Callable[[World, str, Report], str]
"""Returns all that a person is told when they ask for a report."""


def search(world: World, name: str, report: Report) -> str:
    answer = world.clients[name].post("/api/search", json={"query": report.question, "limit": 50})
    assert answer.status_code == 200, answer.text
    return answer.text


def list_documents(world: World, name: str, report: Report) -> str:
    del report
    answer = world.clients[name].get("/api/documents", params={"limit": 200})
    assert answer.status_code == 200, answer.text
    return answer.text


def open_document(world: World, name: str, report: Report) -> str:
    answer = world.clients[name].get(f"/api/documents/{report.id}")
    assert answer.status_code == (200 if world.may_read(name, report) else 404), answer.text
    return answer.text


def ask(world: World, name: str, report: Report) -> str:
    answer = world.clients[name].post("/api/ask", json={"question": report.question})
    assert answer.status_code == 200, answer.text
    return answer.text


def begin_conversation(world: World, name: str, report: Report) -> str:
    client = world.clients[name]
    begun = client.post("/api/conversations", json={"question": report.question})
    assert begun.status_code in {200, 201, 202}, begun.text
    path = f"/api/conversations/{begun.json()['conversation']['id']}"
    events = client.get(f"{path}/messages/{begun.json()['answer']['id']}/events").text
    return events + client.get(path).text


def complete(world: World, name: str, report: Report) -> str:
    body = {"model": "default", "messages": [{"role": "user", "content": report.question}]}
    answer = world.clients[name].post("/v1/chat/completions", json=body)
    assert answer.status_code == 200, answer.text
    return answer.text


def stream_completion(world: World, name: str, report: Report) -> str:
    messages = [{"role": "user", "content": report.question}]
    body = {"model": "default", "messages": messages, "stream": True}
    answer = world.clients[name].post("/v1/chat/completions", json=body)
    assert answer.status_code == 200, answer.text
    chunks = [
        json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")
    ]
    pieces = (one["delta"].get("content") or "" for chunk in chunks for one in chunk["choices"])
    return answer.text + "".join(pieces)


def respond(world: World, name: str, report: Report) -> str:
    answer = world.clients[name].post(
        "/v1/responses", json={"model": "default", "input": report.question}
    )
    assert answer.status_code == 200, answer.text
    return answer.text


def build_references(world: World, name: str, report: Report) -> str:
    body = {
        "text": f"The word of report R-{report.number} is one that everybody should keep to themselves, as the report says.",
        "sources": [{"document_id": report.id}],
    }
    answer = world.clients[name].post("/api/references", json=body)
    assert answer.status_code == (200 if world.may_read(name, report) else 404), answer.text
    return answer.text


def retrieve(world: World, name: str, report: Report) -> str:
    return world.retrieve[name](report.question)


BY_A_MODEL: tuple[Ask, ...] = (ask, begin_conversation, complete, stream_completion, respond)
BY_A_SEARCH: tuple[Ask, ...] = (search, list_documents, open_document, build_references, retrieve)
SHOWING: frozenset[Ask] = frozenset({search, open_document, retrieve})
"""What shows the word of a report to whoever may read it."""
MODEL_SHARE = 0.1
"""An answer takes much longer than a search."""


def choose_protocols(random: Random, number: int) -> Iterator[Ask]:
    """Yield as many protocols, each of them at least once."""
    yield from (*BY_A_MODEL, *BY_A_SEARCH)
    for _ in range(number - len(BY_A_MODEL) - len(BY_A_SEARCH)):
        yield random.choice(BY_A_MODEL if random.random() < MODEL_SHARE else BY_A_SEARCH)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with ScriptedModel(say_all) as model, ExitStack() as stack:
        home = tmp_path_factory.mktemp("leaks")
        container = make_container(home, llm_url=model.base_url, llm_model="scripted")
        stack.enter_context(closing(container))
        add_person(container.database, email_of(ADMIN), Role.ADMIN)
        for name in NAMES:
            add_person(container.database, email_of(name))
        for group in GROUPS:
            GroupService(container.database).create(group)
        SourceService.of(container.sources).add("ingest", {}, name=SOURCE)
        owner = Owner(container.sign_in.machine_secret, Readers.of())
        app = make_app(container, owner, Listening(address="127.0.0.1"))
        stack.enter_context(TestClient(app, base_url=ADDRESS))
        assert app.state.app_state.warmup.ready.wait(60)

        def open_client(name: str, *scopes: TokenScope) -> TestClient:
            person = people.get_by_email(container.database, email_of(name))
            service = ApiTokenService(container.database, owner=person)
            token = service.create("leaks", scopes, timedelta(days=7))
            return TestClient(app, base_url=ADDRESS, headers={"Authorization": f"Bearer {token}"})

        made = World(
            container,
            Random(19),
            {name: open_client(name, TokenScope.SEARCH, TokenScope.ASK) for name in NAMES},
            open_client(ADMIN, TokenScope.INGEST),
            {name: open_retriever(stack, container, name) for name in NAMES},
        )
        made.write(*range(REPORTS))
        yield made


def open_retriever(stack: ExitStack, container: Container, name: str) -> Callable[[str], str]:
    home = stack.enter_context(open_home(f"user:{email_of(name)}", settings=container.settings))
    retriever = home.make_retriever(50)
    return lambda question: "\n".join(map(repr, retriever.invoke(question)))


def name_hidden(world: World, name: str) -> set[str]:
    """Return what tells of a report that the person may not read: its word, and its id as a whole."""
    hidden = [report for report in world.reports.values() if not world.may_read(name, report)]
    return {text for one in hidden for text in (one.word, f'{one.id}"', f"{one.id})")}


@pytest.mark.deep("slow")
@pytest.mark.parametrize("checks", CHECKS)
def test_nobody_is_told_of_what_they_may_not_read(world: World, checks: int) -> None:
    random, shown = world.random, set[str]()
    for protocol in choose_protocols(random, checks):
        if random.random() < CHANGE_SHARE:
            world.change_member()
        if random.random() < REWRITE_SHARE:
            world.write(random.randrange(REPORTS))
        name, report = random.choice(NAMES), world.reports[random.randrange(REPORTS)]
        told = protocol(world, name, report)
        leaked = [one for one in name_hidden(world, name) if one in told]
        assert leaked == [], (protocol, name)
        if protocol in SHOWING and world.may_read(name, report):
            assert report.word in told, (protocol, name, report)
            shown.add(protocol.__name__)
    assert shown == {one.__name__ for one in SHOWING}
