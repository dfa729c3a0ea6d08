"""At random: people join and leave groups while they search, read and ask over open connections. What each is shown is
compared with what plain sets say."""

import random
import re
from collections.abc import Iterator
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
from mcp import Client

from backend.access.api_tokens import ApiTokenService, TokenScope
from backend.access.groups import GroupService
from backend.access.roles import Role
from backend.store.database import Database
from tests.support.accounts import add_person
from tests.support.mcp_clients import Mode, connect, find_refusal, read_failure, read_text
from tests.support.running_app import run_app
from tests.support.scripted_model import Reply, Request, Say, ScriptedModel
from tests.support.soak import scaled
from tests.unit.backend.api.conftest import SOURCE, connected, make_container
from tests.unit.backend.api.mcp.conftest import make_server
from tests.unit.backend.api.mcp.test_tools import HIDDEN

STEPS = scaled(scaled(40, 80, "slow"), 4_000, "access")
SEED = 20261126
PEOPLE = tuple(f"{name}@example.com" for name in ("ann", "bob", "eve", "tom"))
GROUPS = ("hr", "it", "legal")
DOCUMENTS = 30
CODE = re.compile(r"ZK-\d{4}")


def code_of(number: int) -> str:
    return f"ZK-{1000 + number}"


def id_of(number: int) -> str:
    return f"{SOURCE}:d{number}.md"


@dataclass
class Truth:
    readers: list[set[str]]
    """Of each document."""
    groups: dict[str, set[str]] = field(default_factory=lambda: {name: set() for name in GROUPS})
    """Who is in each."""

    def may_read(self, email: str, number: int) -> bool:
        held = {"public", f"user:{email}"}
        held |= {f"group:{name}" for name, members in self.groups.items() if email in members}
        return bool(held & self.readers[number])

    def readable(self, email: str) -> set[int]:
        return {number for number in range(DOCUMENTS) if self.may_read(email, number)}


@dataclass
class Walk:
    """The steps of one run, and how often something was shown and hidden."""

    dice: random.Random
    truth: Truth
    groups: GroupService
    clients: dict[str, Client]
    shown: int = 0
    hidden: int = 0

    async def step(self) -> None:
        email, number = self.dice.choice(PEOPLE), self.dice.randrange(DOCUMENTS)
        action = self.dice.choice(
            [self.move, self.search, self.search_all, self.fetch, self.fetch, self.read, self.list, self.ask]
        )  # fmt: skip
        await action(email, number)

    def note(self, email: str, number: int) -> bool:
        may = self.truth.may_read(email, number)
        self.shown, self.hidden = self.shown + may, self.hidden + (not may)
        return may

    async def move(self, email: str, number: int) -> None:
        name = GROUPS[number % len(GROUPS)]
        members = self.truth.groups[name]
        change = self.groups.remove_member if email in members else self.groups.add_member
        change(name, email)
        members ^= {email}

    async def search(self, email: str, number: int) -> None:
        found = await self.clients[email].call_tool("search", {"query": code_of(number)})
        ids = [one["id"] for one in found.structured_content["results"]]
        assert (id_of(number) in ids) is self.note(email, number)
        assert set(ids) <= set(map(id_of, self.truth.readable(email)))

    async def search_all(self, email: str, number: int) -> None:
        del number
        asked = {"query": "quarterly report", "limit": 50}
        found = await self.clients[email].call_tool("search", asked)
        ids = {one["id"] for one in found.structured_content["results"]}
        assert ids == set(map(id_of, self.truth.readable(email)))

    async def fetch(self, email: str, number: int) -> None:
        found = await self.clients[email].call_tool("fetch", {"id": id_of(number)})
        if self.note(email, number):
            assert code_of(number) in found.structured_content["text"]
        else:
            assert read_failure(found) == HIDDEN

    async def read(self, email: str, number: int) -> None:
        asked = self.clients[email].read_resource(f"quarry://documents/{id_of(number)}")
        if self.note(email, number):
            assert code_of(number) in str((await asked).contents)
        else:
            assert (await find_refusal(asked)).message == HIDDEN

    async def list(self, email: str, number: int) -> None:
        del number
        listed = (await self.clients[email].list_resources()).resources
        assert {one.name for one in listed} == set(map(id_of, self.truth.readable(email)))

    async def ask(self, email: str, number: int) -> None:
        question = {"question": f"What does the quarterly report {code_of(number)} say?"}
        answer = read_text(await self.clients[email].call_tool("ask", question))
        named = set(CODE.findall(answer)) - {code_of(number)}
        assert named <= set(map(code_of, self.truth.readable(email)))
        assert (id_of(number) in answer) <= self.note(email, number)


def repeat_all(request: Request) -> Reply:
    """Say every code that the model was shown, each with the sources that there are."""
    numbers = "".join(f"[{one['number']}]" for one in request.sources)
    return Say(f"It says {', '.join(sorted(set(CODE.findall(request.text))))} {numbers}.")


def write_documents(folder: Path, dice: random.Random) -> Truth:
    everybody = [f"user:{email}" for email in PEOPLE] + [f"group:{name}" for name in GROUPS]
    truth = Truth([set(dice.sample(everybody, dice.randint(0, 3))) for _ in range(DOCUMENTS)])
    truth.readers[0] = {"public"}
    rules = "rules:\n"
    folder.mkdir()
    for number, readers in enumerate(truth.readers):
        text = (
            f"# Report {number}\n\nThe quarterly report {code_of(number)} names {number} sites.\n"
        )
        (folder / f"d{number}.md").write_text(text)
        rules += f"  - match: d{number}.md\n    readers: {sorted(readers)}\n"
    (folder / "access.yaml").write_text(rules)
    return truth


@dataclass(frozen=True)
class Company:
    url: str
    database: Database
    truth: Truth
    tokens: dict[str, str]


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    home = tmp_path_factory.mktemp("company")
    with ScriptedModel(repeat_all) as model:
        container = make_container(home, llm_url=model.base_url, llm_model="scripted")
        database = container.database
        truth = write_documents(home / "reports", random.Random(SEED))
        connected(container, home / "reports")
        tokens: dict[str, str] = {}
        for email in PEOPLE:
            # The first is an admin, who reads no more than others.
            role = Role.MEMBER if tokens else Role.ADMIN
            service = ApiTokenService(database, owner=add_person(database, email, role))
            scopes = [TokenScope.SEARCH, TokenScope.ASK]
            tokens[email] = service.create(email, scopes, timedelta(days=1))
        for name in GROUPS:
            GroupService(database).create(name)
        with run_app(make_server(container)) as url, closing(database):
            yield Company(url, database, truth, tokens)


@pytest.mark.deep("slow")
@pytest.mark.deep("access")
@pytest.mark.anyio
async def test_nobody_is_shown_more_or_less_than_they_may_read(company: Company) -> None:
    modes: tuple[Mode, Mode] = ("legacy", "auto")
    async with AsyncExitStack() as stack:
        clients = {
            email: await stack.enter_async_context(connect(company.url, token, modes[index % 2]))
            for index, (email, token) in enumerate(company.tokens.items())
        }
        groups = GroupService(company.database)
        walk = Walk(random.Random(SEED + 1), company.truth, groups, clients)
        for _ in range(STEPS):
            await walk.step()
    assert min(walk.shown, walk.hidden) > STEPS / 8
