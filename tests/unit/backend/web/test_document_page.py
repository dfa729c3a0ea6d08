"""A document as a page, and as what another page shows beside a conversation."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from fastapi.testclient import TestClient

from backend.api.app import Api
from backend.container import Container
from backend.web import document_view
from tests.unit.backend.api.conftest import SOURCE, connected, ready
from tests.unit.backend.web.conftest import ANN

PATH = f"/document/{SOURCE}:leave.md"
PASSAGE = "section=0&start=0&end=12"


@pytest.fixture
def ann(browse: Any, container: Container, tmp_path: Path) -> Iterator[TestClient]:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "leave.md").write_text(
        "# Parental leave\n\nIt lasts 26 weeks.\n\n## Pay\n\nIt is paid.\n", encoding="utf-8"
    )
    (folder / "access.yaml").write_text(
        'rules:\n  - match: "**"\n    readers: [public]\n', encoding="utf-8"
    )
    connected(container, folder)
    client: TestClient = browse(ANN)
    with ready(cast("Api", client.app)):
        yield client


def _ids(html: str) -> list[str]:
    return re.findall(r'\bid="([^"]*)"', html)


def test_beside_a_conversation_it_is_the_text_alone_with_ids_of_its_own(ann: TestClient) -> None:
    page = ann.get(f"{PATH}?{PASSAGE}").text
    pane = ann.get(f"{PATH}?{PASSAGE}&form=pane").text
    assert "<html" in page
    assert {"title", "cited", "s0"} <= set(_ids(page))
    assert {"pane-title", "pane-cited", "pane-s0"} <= set(_ids(pane))
    assert all(name.startswith("pane-") for name in _ids(pane))
    for part in ("<html", "<header", "<script", "<link", "<h1", "About this document"):
        assert part not in pane
    marked = re.search(r"<mark.*</mark>", page)
    assert marked is not None
    assert marked[0].replace('id="', 'id="pane-') in pane


def test_its_other_parts_are_reached_from_either(
    ann: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_view, "LONGEST", 5)
    for form in ("page", "pane"):
        shown = ann.get(f"{PATH}?form={form}").text
        assert f'href="{PATH}?from=1"' in shown.replace("%3A", ":")


def test_one_that_may_not_be_read_is_no_pane(ann: TestClient) -> None:
    assert ann.get(f"/document/{SOURCE}:none.md?form=pane").status_code == 404
    assert ann.get(f"{PATH}?form=other").status_code == 422
