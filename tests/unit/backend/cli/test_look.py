"""`quarry look`: that a document exists, and who may read it."""

import json
from pathlib import Path

from typer.testing import CliRunner, Result

from backend.cli import app
from connectors.access import Access
from tests.support.store import document, store_with


def _run(home: Path, *arguments: str) -> Result:
    return CliRunner(env={"QUARRY_HOME": str(home)}).invoke(app, ["look", *arguments])


def test_it_names_the_readers_and_not_the_text(tmp_path: Path) -> None:
    store = store_with(tmp_path, "desk")
    held = document(access=Access.to(["user:bob@example.com"]))
    store.hold(held)
    store.database.close()
    shown = _run(tmp_path, "desk:a").output
    assert shown.splitlines()[1:] == ["desk:a", "desk, readable by", "  bob@example.com"]
    as_json = json.loads(_run(tmp_path, "desk:a", "--json").output)
    assert as_json["admitted"] == [
        {"reader": "user:bob@example.com", "member_of": [], "source_account": None}
    ]
    assert all(section.text not in shown for section in held.sections)
    missing = _run(tmp_path, "desk:none")
    assert missing.exit_code == 1
    assert "No document desk:none is indexed." in missing.output
