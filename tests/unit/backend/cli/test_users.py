"""`quarry users`: invite, list, disable, enable, role, verify; and what changes for other commands."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from backend.access.machine_secret import read_machine_secret
from backend.access.password_reset import PasswordResetService
from backend.access.people import AccountDetails, PeopleService
from backend.access.random_secrets import digest
from backend.access.roles import Role
from backend.cli import app
from backend.store.chat import projects
from backend.store.database import Database, open_database
from backend.store.owner import ConversationOwner
from tests.support.accounts import CHEAP, PASSWORD, add_person
from tests.support.databases import sqlite_in

ANN, BOB = "ann@example.com", "bob@example.com"


@pytest.fixture
def cli(tmp_path: Path) -> CliRunner:
    return CliRunner(env={"QUARRY_HOME": str(tmp_path), "COLUMNS": "200"})


@pytest.fixture
def database(tmp_path: Path) -> Database:
    """The database of the home, migrated."""
    return open_database(sqlite_in(tmp_path))


def _run(cli: CliRunner, *arguments: str) -> str:
    done = cli.invoke(app, [*arguments])
    assert done.exit_code == 0, done.output
    return done.output


def test_an_invitation_prints_its_link_once(cli: CliRunner, database: Database) -> None:
    printed = _run(cli, "users", "invite", ANN, "--role", "admin", "--port", "9000")
    found = re.fullmatch(r"http://127\.0\.0\.1:9000/invitation\?code=([\w-]{43})\n", printed)
    assert found
    for arguments in (["users", "list"], ["users", "list", "--json"], ["audit", "--json"]):
        shown = _run(cli, *arguments)
        assert ANN in shown
        assert found[1] not in shown
        assert digest(found[1]) not in shown
    person = PeopleService(database).accept_invitation(
        found[1], AccountDetails(name="Ann", password=PASSWORD), CHEAP
    )
    assert (person.email, person.role) == (ANN, "admin")


def test_json_holds_the_link(cli: CliRunner, database: Database) -> None:
    add_person(database, ANN, Role.ADMIN)
    printed = json.loads(_run(cli, "users", "invite", BOB, "--host", "::1", "--json"))
    assert (printed["email"], printed["role"]) == (BOB, "member")
    assert printed["link"].startswith("http://[::1]:8321/invitation?code=")


def test_a_password_is_reset_by_a_link(cli: CliRunner, database: Database) -> None:
    add_person(database, ANN, Role.ADMIN)
    printed = _run(cli, "users", "reset-password", ANN, "--port", "9000")
    found = re.fullmatch(r"http://127\.0\.0\.1:9000/password-reset\?code=([\w-]{43})\n", printed)
    assert found
    assert PasswordResetService(database).find_person(found[1]).email == ANN
    assert found[1] not in _run(cli, "audit", "--json")
    again = json.loads(_run(cli, "users", "reset-password", ANN, "--json"))
    assert again["link"].startswith("http://127.0.0.1:8321/password-reset?code=")


def test_people_are_listed_with_their_states(cli: CliRunner, database: Database) -> None:
    assert "quarry users invite EMAIL --role admin" in _run(cli, "users", "list")
    add_person(database, ANN, Role.ADMIN)
    add_person(database, BOB)
    _run(cli, "users", "disable", BOB)
    _run(cli, "users", "invite", "cleo@example.com")
    listed = json.loads(_run(cli, "users", "list", "--json"))
    states = {one["email"]: (one["role"], one["state"]) for one in listed}
    assert states == {
        ANN: ("admin", "active"),
        BOB: ("member", "disabled"),
        "cleo@example.com": ("member", "invited"),
    }
    table = _run(cli, "users", "list")
    assert "invited, until" in table
    assert PASSWORD not in table
    assert "argon2" not in table + str(listed)


def test_accounts_are_changed(cli: CliRunner, database: Database) -> None:
    add_person(database, ANN, Role.ADMIN)
    add_person(database, BOB)
    assert (
        _run(cli, "users", "role", BOB, "source_manager") == f"{BOB} has the role source_manager.\n"
    )
    assert _run(cli, "users", "disable", "BOB@example.com") == "BOB@example.com is disabled.\n"
    assert _run(cli, "users", "enable", BOB) == f"{BOB} is enabled.\n"
    assert json.loads(_run(cli, "users", "verify", BOB, "--json"))["email"] == BOB
    _run(cli, "users", "end-sessions", BOB)
    new = "robert@example.com"
    assert _run(cli, "users", "change-address", BOB, new) == f"{BOB} is {new} from now on.\n"
    _run(cli, "users", "release-address", BOB)
    _run(cli, "users", "invite", BOB)
    assert _run(cli, "users", "withdraw", BOB) == f"{BOB} is no longer invited.\n"
    actions = [one["action"] for one in json.loads(_run(cli, "audit", "--json"))]
    assert actions[:5] == [
        "withdraw_invitation",
        "invite",
        "release_email",
        "change_email",
        "end_sessions",
    ]
    assert actions[5:9] == ["verify", "enable", "disable", "set_role"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["invite", BOB],
        ["invite", "nobody", "--role", "admin"],
        ["disable", ANN],
        ["role", ANN, "member"],
        ["enable", "nobody@example.com"],
        ["withdraw", BOB],
        ["reset-password", BOB],
        ["end-sessions", BOB],
        ["change-address", ANN, ANN],
        ["change-address", ANN, "no address"],
        ["release-address", ANN],
    ],
)
def test_what_is_refused_says_why(cli: CliRunner, database: Database, arguments: list[str]) -> None:
    if ANN in arguments:
        add_person(database, ANN, Role.ADMIN)
    refused = cli.invoke(app, ["users", *arguments, "--json"])
    assert refused.exit_code == 1
    assert len(json.loads(refused.output)["error"]) > 20


def test_a_token_is_of_a_person(cli: CliRunner, database: Database) -> None:
    add_person(database, ANN, Role.ADMIN)
    for owner in ([], ["--person", "Ann@example.com"]):
        _run(cli, "tokens", "create", "ci", "--scope", "search", *owner)
    listed = json.loads(_run(cli, "tokens", "list", "--json"))
    assert [(one["name"], one["person"]) for one in listed] == [("ci", None), ("ci", ANN)]
    assert ANN in _run(cli, "tokens", "list")
    _run(cli, "tokens", "revoke", "ci")
    (left,) = json.loads(_run(cli, "tokens", "list", "--json"))
    assert left["person"] == ANN
    assert cli.invoke(app, ["tokens", "revoke", "ci"]).exit_code == 1
    _run(cli, "tokens", "revoke", "ci", "--person", ANN)
    subjects = {one["subject"] for one in json.loads(_run(cli, "audit", "--json"))}
    assert {"token:ci", f"token:ci of {ANN}"} <= subjects
    nobody = ["tokens", "create", "x", "--scope", "search", "--person", "nobody@example.com"]
    assert cli.invoke(app, nobody).exit_code == 1


def test_the_link_of_the_machine_ends_with_the_first_account(
    cli: CliRunner, database: Database, tmp_path: Path
) -> None:
    read_machine_secret(tmp_path / "machine.secret")
    assert "/link?code=" in _run(cli, "link")
    add_person(database, ANN, Role.ADMIN)
    refused = cli.invoke(app, ["link"])
    assert refused.exit_code == 1
    assert "People sign in" in refused.output


def test_a_project_of_a_disabled_owner_is_handed_over(cli: CliRunner, database: Database) -> None:
    add_person(database, ANN, Role.ADMIN)
    bob = add_person(database, BOB)
    assert _run(cli, "users", "projects", BOB) == f"{BOB} owns no project.\n"
    owner = ConversationOwner(bob.id)
    project = projects.add(database, owner, "Depot", "", datetime.now(UTC))
    projects.add_member(database, project, ANN)
    shown = _run(cli, "users", "projects", BOB)
    assert project in shown
    assert ANN in shown
    # Its name is for those who are in it.
    assert "Depot" not in shown
    _run(cli, "users", "disable", BOB)
    told = _run(cli, "users", "hand-over-project", project, ANN)
    assert told == f"{ANN} owns the project from now on.\n"
    (owned,) = json.loads(_run(cli, "users", "projects", ANN, "--json"))
    assert owned == {"id": project, "members": [BOB]}
