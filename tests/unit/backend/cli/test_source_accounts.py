"""`quarry users accounts`: find, map, list, approve and withdraw; and what `--as` finds by it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from backend.access.roles import Role
from backend.access.source_accounts import OwnSourceAccounts
from backend.cli import app
from backend.store import audit
from connectors.access import Access
from tests.support.accounts import add_person
from tests.support.groups import save_groups, token_of
from tests.support.store import Store, document, store_with

ANN, BOB = "ann@example.com", "bob@example.com"


@pytest.fixture
def cli(tmp_path: Path) -> CliRunner:
    return CliRunner(env={"QUARRY_HOME": str(tmp_path), "COLUMNS": "200"})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = store_with(tmp_path, "hub")
    add_person(store.database, ANN, Role.ADMIN)
    add_person(store.database, BOB)
    groups = {"team": ["account/octocat"], "account/octocat": []}
    save_groups(store.database, "hub", groups, {"account/octocat": "Octo Cat"})
    return store


def _run(cli: CliRunner, *arguments: str, code: int = 0) -> str:
    done = cli.invoke(app, ["users", "accounts", *arguments])
    assert done.exit_code == code, done.output
    return done.output


def test_an_account_is_found_mapped_listed_and_withdrawn(cli: CliRunner, store: Store) -> None:
    assert "No account of a source" in _run(cli, "list")
    assert "Octo Cat" in _run(cli, "find", "hub", "oct")
    assert json.loads(_run(cli, "find", "hub", "--json")) == [
        {"account": "octocat", "name": "Octo Cat"}
    ]
    assert "No such account" in _run(cli, "find", "hub", "x")
    assert _run(cli, "map", ANN, "hub", "Octocat") == (
        f"The account octocat of hub is mapped to {ANN}.\n"
    )
    assert "No such account" in _run(cli, "find", "hub")
    (listed,) = json.loads(_run(cli, "list", "--json"))
    assert (listed["email"], listed["state"], listed["mapped_by"]) == (ANN, "mapped", "owner")
    assert listed["id"] in _run(cli, "list")
    assert f"is mapped to {ANN}" in _run(cli, "map", BOB, "hub", "octocat", code=1)
    assert _run(cli, "withdraw", listed["id"]) == f"{listed['id']} is withdrawn.\n"
    assert "no such source account" in _run(cli, "withdraw", listed["id"], code=1).lower()
    assert json.loads(_run(cli, "list", "--json")) == []
    actions = [one.action for one in audit.list_entries(store.database, limit=2)]
    assert actions == ["withdraw_source_account", "map_source_account"]


def test_what_a_person_asks_for_is_approved(cli: CliRunner, store: Store) -> None:
    person = add_person(store.database, "cid@example.com")
    asked = OwnSourceAccounts(store.database, person, audit.OWNER).ask("hub", "octocat")
    assert asked.id in _run(cli, "list")
    approved = json.loads(_run(cli, "approve", asked.id, "--json"))
    assert (approved["id"], approved["state"]) == (asked.id, "mapped")
    done = json.loads(_run(cli, "withdraw", asked.id, "--json"))
    assert done == {"id": asked.id, "done": "is withdrawn"}


def test_as_a_person_one_reads_by_their_accounts(cli: CliRunner, store: Store) -> None:
    team = token_of(1, "team")
    store.hold(document("hub:a", access=Access.to([team])))
    assert cli.invoke(app, ["show", "hub:a", "--as", f"user:{ANN}"]).exit_code == 1
    _run(cli, "map", ANN, "hub", "octocat")
    shown = cli.invoke(app, ["show", "hub:a", "--as", f"user:{ANN}"])
    assert shown.exit_code == 0, shown.output
    assert (
        "ann@example.com · by the source account Octo Cat of hub · member of team" in shown.output
    )
    explained = cli.invoke(app, ["explain", "hub:a", "--as", f"user:{ANN}"])
    assert "the source account Octo Cat of hub" in explained.output
    assert cli.invoke(app, ["show", "hub:a", "--as", f"user:{BOB}"]).exit_code == 1
