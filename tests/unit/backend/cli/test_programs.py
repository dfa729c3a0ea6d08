"""`quarry programs`: list, disconnect, delete."""

import json
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from backend.access.oauth.clients import ClientService
from backend.access.roles import Role
from backend.cli import app
from backend.container import Container
from backend.settings import Settings
from backend.store import audit
from backend.store.accounts.people import Person
from backend.store.database import Database
from tests.support.accounts import add_person
from tests.unit.backend.access.oauth.conftest import VISITOR, Flow, make_registration

ANN = "ann@example.com"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    container = Container(Settings.model_validate({"home": tmp_path}))
    with closing(container.database):
        yield container.database


@pytest.fixture
def ann(database: Database) -> Person:
    return add_person(database, ANN, Role.ADMIN)


@pytest.fixture
def flow(database: Database, ann: Person) -> Flow:
    wanted = make_registration("Editor\u202e", ["https://editor.example.com/callback"])
    return Flow(database, ClientService(database, VISITOR).register(wanted).client, ann)


def _run(home: Path, *arguments: str) -> str:
    cli = CliRunner(env={"QUARRY_HOME": str(home), "COLUMNS": "160"})
    done = cli.invoke(app, ["programs", *arguments])
    assert done.exit_code == 0, done.output
    return done.output


def test_there_are_none(tmp_path: Path, ann: Person) -> None:
    assert _run(tmp_path, "list") == "No program has registered.\n"
    assert _run(tmp_path, "list", "--person", ann.email) == "No program is connected.\n"
    assert json.loads(_run(tmp_path, "list", "--json")) == []


def test_programs_are_listed_disconnected_and_deleted(tmp_path: Path, flow: Flow) -> None:
    now = datetime.now(UTC)
    uri = {"redirect_uri": "https://editor.example.com/callback"}
    code = flow.approve(now, **uri)
    exchange = flow.exchange(code, redirect_uri=None)
    flow.service.redeem_code(exchange, now)
    (client,) = json.loads(_run(tmp_path, "list", "--json"))
    assert (client["id"], client["name"], client["grants"]) == (flow.client.id, "Editor", 1)
    table = _run(tmp_path, "list")
    for text in (flow.client.id, "Editor", "editor.example.com"):
        assert text in table
    (program,) = json.loads(_run(tmp_path, "list", "--person", ANN, "--json"))
    assert program["scopes"] == ["search", "ask"]
    assert program["last_used_at"] is None
    assert "never" in _run(tmp_path, "list", "--person", ANN)
    number = str(program["number"])
    assert _run(tmp_path, "disconnect", number, "--person", ANN) == f"{number} is disconnected.\n"
    assert json.loads(_run(tmp_path, "list", "--person", ANN, "--json")) == []
    deleted = json.loads(_run(tmp_path, "delete", flow.client.id, "--json"))
    assert deleted == {"deleted": flow.client.id}
    assert json.loads(_run(tmp_path, "list", "--json")) == []
    done = [(one.action, one.actor) for one in audit.list_entries(flow.database, limit=2)]
    assert done == [("delete_client", "owner"), ("disconnect_program", "owner")]


@pytest.mark.parametrize(
    "arguments", [["delete", "absent"], ["disconnect", "7", "--person", ANN], ["list", "--person", "x@example.com"]]
)  # fmt: skip
def test_what_is_not_there(tmp_path: Path, ann: Person, arguments: list[str]) -> None:
    del ann
    cli = CliRunner(env={"QUARRY_HOME": str(tmp_path)})
    assert cli.invoke(app, ["programs", *arguments]).exit_code == 1
