"""`quarry explain`: why somebody does not find a document."""

import json
import re
from pathlib import Path

from typer.testing import CliRunner

from backend.access.groups import GroupService
from backend.access.roles import Role
from backend.cli import app
from backend.store.database import open_database
from connectors.access import Access
from tests.support.accounts import add_person
from tests.support.databases import sqlite_in
from tests.support.store import document, store_with

BOB = "user:bob@example.com"


def _run(home: Path, *arguments: str) -> str:
    done = CliRunner(env={"QUARRY_HOME": str(home)}).invoke(app, ["explain", *arguments])
    assert done.exit_code == 0, done.output
    return done.output


def test_it_says_what_is_required_and_what_is_held(tmp_path: Path) -> None:
    store = store_with(tmp_path, "desk")
    store.hold(document(access=Access.all_of([[BOB, "group:hr"], ["group:board"]])))
    store.database.close()
    told = _run(tmp_path, "desk:a", "--as", "group:hr")
    assert "They hold no reader token" in told
    assert "Condition 1 of 2: group:board\n  not met\n" in told
    assert "Condition 2 of 2: group:hr or user:bob@example.com\n  met by group:hr\n" in told
    assert "Permissions last compared with the source: never" in told
    as_json = json.loads(_run(tmp_path, "desk:a", "--as", "group:board", "--as", BOB, "--json"))
    assert as_json["reason"] == "readable"


def test_it_says_since_when_somebody_is_in_a_group_of_quarry(tmp_path: Path) -> None:
    store = store_with(tmp_path, "desk")
    store.hold(document(access=Access.to(["group:hr"])))
    add_person(store.database, "bob@example.com", Role.ADMIN)
    service = GroupService(store.database)
    service.create("hr")
    service.add_member("hr", "bob@example.com")
    store.database.close()
    told = _run(tmp_path, "desk:a", "--as", BOB)
    assert re.search(rf"  met by {BOB} → group:hr, since \d{{4}}-\d\d-\d\d \d\d:\d\d\n", told)


def test_a_document_that_is_not_there_is_no_error(tmp_path: Path) -> None:
    open_database(sqlite_in(tmp_path)).close()
    assert "No document of this id is indexed" in _run(tmp_path, "desk:none")
