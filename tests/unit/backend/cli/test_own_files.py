"""The files that the owner of a machine has uploaded, asked for in its terminal."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from backend.access.roles import Role
from backend.cli import app
from backend.container import Container
from backend.files.file_keeper import read_upload
from backend.settings import Settings
from backend.store.files import user_files, waiting_uploads
from backend.store.files.user_files import NewFile
from backend.sync.run_lease import is_dead, this_process
from tests.support.accounts import add_person
from tests.support.conversations import OWNER
from tests.support.embedding_server import embedding_server

TEXT = b"# Quay\n\nThe quay of Nantmoor is closed in May.\n"
DOCUMENT = "Your files:quay"


@pytest.fixture
def container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Container]:
    with embedding_server() as server:
        monkeypatch.setenv("QUARRY_HOME", str(tmp_path))
        monkeypatch.setenv("QUARRY_EMBEDDING_URL", server.url)
        container = Container(Settings(home=tmp_path, embedding_url=server.url))
        new = NewFile(
            id="quay",
            name="quay.md",
            media_type="text/markdown",
            size=len(TEXT),
            sha256="quay",
            document_id=DOCUMENT,
            data=TEXT,
        )
        user_files.add(container.database, OWNER, new, 9)
        upload = waiting_uploads.claim(container.database, this_process(), is_dead)
        assert upload is not None
        read_upload(container.sources.file_index, upload)
        yield container


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "--json"])


def _found(*arguments: str) -> list[str]:
    return [one["document_id"] for one in json.loads(_run(*arguments).stdout)["results"]]


@pytest.mark.usefixtures("container")
def test_the_owner_finds_their_own_files_and_somebody_else_does_not() -> None:
    assert _found("search", "Nantmoor") == [DOCUMENT]
    assert _found("search", "Nantmoor", "--as", "user:ann@example.com") == []
    answered = json.loads(_run("ask", "When is the quay of Nantmoor closed?").stdout)
    assert {one["document_id"] for one in answered["documents"]} == {DOCUMENT}
    assert _run("show", DOCUMENT).exit_code == 0
    assert _run("show", DOCUMENT, "--as", "user:ann@example.com").exit_code == 1


def test_where_there_are_accounts_the_machine_has_no_files(container: Container) -> None:
    add_person(container.database, "ann@example.com", Role.ADMIN)
    assert _found("search", "Nantmoor") == []
    assert _run("show", DOCUMENT).exit_code == 1
