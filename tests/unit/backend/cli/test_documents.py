"""`quarry documents`: what is indexed, and who may read it."""

import json
from pathlib import Path

from typer.testing import CliRunner

from backend.cli import app
from connectors.access import NOBODY, Access
from tests.support.groups import save_groups, token_of
from tests.support.store import document, store_with


def _run(home: Path, *arguments: str) -> str:
    runner = CliRunner(env={"QUARRY_HOME": str(home), "COLUMNS": "160"})
    return runner.invoke(app, ["documents", *arguments]).output


def test_groups_of_sources_have_the_names_that_people_know(tmp_path: Path) -> None:
    store = store_with(tmp_path, "desk")
    save_groups(store.database, "desk", {"board": ["user:ann@example.com"]})
    # The first source of a database has the id 1.
    board = token_of(1, "board")
    store.hold(document("desk:a", access=Access.to([board, "group:hr"])))
    store.hold(document("desk:b", access=NOBODY))
    store.database.close()
    shown = _run(tmp_path)
    assert "“board”, group:hr" in shown
    assert board not in shown
    assert "nobody" in shown
    readers = [one["readers"] for one in json.loads(_run(tmp_path, "--json"))]
    assert readers == [[board, "group:hr"], []]


def test_a_group_that_is_called_nobody_is_not_taken_for_that(tmp_path: Path) -> None:
    store = store_with(tmp_path, "desk")
    save_groups(store.database, "desk", {"nobody": ["user:ann@example.com"]})
    store.hold(document("desk:a", access=Access.to([token_of(1, "nobody")])))
    store.hold(document("desk:b", access=NOBODY))
    store.database.close()
    shown = _run(tmp_path)
    assert shown.count("“nobody”") == 1
    assert shown.count("nobody") == 2
