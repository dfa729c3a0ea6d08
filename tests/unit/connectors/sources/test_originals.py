"""The file that a document was read from, handed out as long as it is the same."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from connectors.document import Document
from connectors.sources.folder.connector import FolderConnector, FolderSettings


def _nothing_known(ids: Sequence[str]) -> dict[str, str]:
    del ids
    return {}


def _read(folder: Path) -> tuple[FolderConnector, Document]:
    connector = FolderConnector("files", 1, FolderSettings(path=folder))
    (document,) = [
        change for change in connector.changes(None, _nothing_known) if isinstance(change, Document)
    ]
    return connector, document


@pytest.mark.parametrize(
    "name",
    [
        "plan.txt",
        "a b %2F c.txt",
        "差旅報告.txt",
        "plan..txt",
        "\udcff.txt",  # a byte that is no Unicode
    ],
)
def test_a_name_leads_back_to_its_file(tmp_path: Path, name: str) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / name).write_text("A trip.\n", encoding="utf-8")
    connector, document = _read(tmp_path)
    file = connector.original(document.id, document.version)
    assert file is not None
    with file:
        assert file.read() == b"A trip.\n"


@pytest.mark.parametrize(
    "own_id",
    ["../secret.txt", "/%2E%2E/secret.txt", "/etc/passwd", "deep/../../secret.txt", "", "\0"],
)
def test_no_id_leads_out_of_the_folder(tmp_path: Path, own_id: str) -> None:
    (tmp_path / "secret.txt").write_text("A trip.\n", encoding="utf-8")
    root = tmp_path / "root"
    root.mkdir()
    (root / "plan.txt").write_text("A trip.\n", encoding="utf-8")
    connector, document = _read(root)
    assert connector.original(f"files:{own_id}", document.version) is None


def test_a_document_that_was_never_read_has_no_original(tmp_path: Path) -> None:
    (tmp_path / "plan.txt").write_text("A trip.\n", encoding="utf-8")
    connector, document = _read(tmp_path)
    assert connector.original(document.id, "") is None
