"""A Quarry with accounts and a scripted language model on a socket, and OpenAI's own client for each who asks."""

import base64
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import openai
import pytest

from backend.access.api_tokens import ApiTokenService, TokenScope
from backend.access.groups import GroupService
from backend.access.roles import Role
from backend.cli.listening import Listening
from backend.cli.server import Owner, make_app
from backend.container import Container
from backend.store.accounts import people
from connectors.access import Readers
from tests.support.accounts import add_person
from tests.support.running_app import run_app
from tests.support.scripted_model import Reply, Request, Say, ScriptedModel
from tests.unit.backend.api.conftest import connected, make_container

ANN, BOB = "ann@example.com", "bob@example.com"
QUESTION = "How long is parental leave?"
BAND = "In which salary band is a senior engineer?"
PICTURE = "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(24)).decode()
A_WEEK = timedelta(days=7)


@dataclass(frozen=True)
class Office:
    """Ann is an admin and reads what Finance may; Bob is a member and does not."""

    url: str
    container: Container
    model: ScriptedModel

    def make_token(self, email: str, *scopes: TokenScope) -> str:
        person = people.get_by_email(self.container.database, email)
        service = ApiTokenService(self.container.database, owner=person)
        name = f"token-{len(service.list_tokens())}"
        return service.create(name, scopes or [TokenScope.ASK, TokenScope.SEARCH], A_WEEK)

    def open_client(self, email: str, *scopes: TokenScope) -> openai.OpenAI:
        return self.open_with(self.make_token(email, *scopes))

    def add_assistant(self, **values: object) -> str:
        """Make an assistant of Ann's, and return its id."""
        with self.open_client(ANN) as client:
            body = {"name": "Desk", **values}
            made = client.post(f"{self.url}/api/assistants", body=body, cast_to=object)
        assert isinstance(made, dict)
        return str(made["id"])

    def open_with(self, key: str) -> openai.OpenAI:
        return openai.OpenAI(base_url=f"{self.url}/v1", api_key=key, max_retries=0, timeout=60)


def answer_well(request: Request) -> Reply:
    del request
    return Say("Parents have 26 weeks [1].", reasoning="It stands there.")


def cite_all(request: Request) -> Reply:
    """Cite whatever is shown, and where nothing is, the number that there would be."""
    numbers = [one["number"] for one in request.sources] or [1]
    return Say(" ".join(f"So it is [{number}]." for number in numbers))


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Iterator[Office]:
    with ScriptedModel(answer_well) as model:
        home = tmp_path_factory.mktemp("office")
        container = make_container(home, llm_url=model.base_url, llm_model="scripted")
        connected(container, folder)
        database = container.database
        add_person(database, ANN, Role.ADMIN)
        add_person(database, BOB)
        GroupService(database).create("finance")
        GroupService(database).add_member("finance", ANN)
        owner = Owner(container.sign_in.machine_secret, Readers.of())
        app = make_app(container, owner, Listening(address="127.0.0.1"))
        with run_app(app) as url, closing(container.database):
            yield Office(url, container, model)


@pytest.fixture
def model(office: Office) -> ScriptedModel:
    """Which answers well, until a test says otherwise."""
    office.model.play(answer_well)
    office.model.requests.clear()
    return office.model


@pytest.fixture
def ann(office: Office, model: ScriptedModel) -> Iterator[openai.OpenAI]:
    del model
    with office.open_client(ANN) as client:
        yield client


@pytest.fixture
def bob(office: Office, model: ScriptedModel) -> Iterator[openai.OpenAI]:
    del model
    with office.open_client(BOB) as client:
        yield client
