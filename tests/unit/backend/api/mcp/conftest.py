"""A Quarry with accounts and a scripted language model, on two servers of one home."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from mcp_types import CallToolResult

from backend.access.api_tokens import ApiTokenService, TokenScope
from backend.access.groups import GroupService
from backend.access.roles import Role
from backend.api.app import Api
from backend.cli.listening import Listening
from backend.cli.server import Owner, make_app
from backend.container import Container
from backend.store.accounts import people
from connectors.access import Readers
from tests.support.accounts import add_person
from tests.support.mcp_clients import Found, Mode, Work, call, use
from tests.support.running_app import run_app
from tests.support.scripted_model import Reply, Request, Say, ScriptedModel
from tests.unit.backend.api.conftest import SOURCE, connected, make_container

ANN, BOB = "ann@example.com", "bob@example.com"
QUESTION = "How long is parental leave?"
LEAVE, PAY = f"{SOURCE}:leave.md", f"{SOURCE}:finance/pay.md"
A_WEEK = timedelta(days=7)


@dataclass(frozen=True)
class Office:
    """Ann is an admin and reads what Finance may; Bob is a member and does not."""

    urls: tuple[str, str]
    apps: tuple[Api, Api]
    container: Container
    model: ScriptedModel
    tokens: dict[str, str]

    @property
    def url(self) -> str:
        return self.urls[0]

    def make_token(self, email: str, *scopes: TokenScope) -> str:
        person = people.get_by_email(self.container.database, email)
        service = ApiTokenService(self.container.database, owner=person)
        return service.create(f"token-{len(service.list_tokens())}", scopes, A_WEEK)

    def use(self, email: str, mode: Mode, work: Work[Found]) -> Found:
        return use(self.url, self.tokens[email], mode, work)

    def call(self, email: str, mode: Mode, name: str, **arguments: object) -> CallToolResult:
        return call(self.url, self.tokens[email], mode, name, **arguments)


def answer_well(request: Request) -> Reply:
    del request
    return Say("Parents have 26 weeks [1].")


def cite_all(request: Request) -> Reply:
    """Cite whatever is shown, and where nothing is, the number that there would be."""
    numbers = [one["number"] for one in request.sources] or [1]
    return Say(" ".join(f"So it is [{number}]." for number in numbers))


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Iterator[Office]:
    with ScriptedModel(answer_well) as model, ExitStack() as running:
        home = tmp_path_factory.mktemp("office")
        container, other = (
            make_container(home, llm_url=model.base_url, llm_model="scripted") for _ in range(2)
        )
        connected(container, folder)
        database = container.database
        add_person(database, ANN, Role.ADMIN)
        add_person(database, BOB)
        GroupService(database).create("finance")
        GroupService(database).add_member("finance", ANN)
        apps = make_server(container), make_server(other)
        urls = running.enter_context(run_app(apps[0])), running.enter_context(run_app(apps[1]))
        running.enter_context(closing(database))
        running.enter_context(closing(other.database))
        made = Office(urls, apps, container, model, {})
        for email in (ANN, BOB):
            made.tokens[email] = made.make_token(email, TokenScope.SEARCH, TokenScope.ASK)
        yield made


def make_server(container: Container) -> Api:
    owner = Owner(container.sign_in.machine_secret, Readers.of())
    return make_app(container, owner, Listening(address="127.0.0.1"))


@pytest.fixture
def model(office: Office) -> ScriptedModel:
    """Which answers well, until a test says otherwise."""
    office.model.play(answer_well)
    office.model.requests.clear()
    return office.model


@pytest.fixture(params=["legacy", "auto"])
def mode(request: pytest.FixtureRequest) -> Mode:
    found: Mode = request.param
    return found


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
