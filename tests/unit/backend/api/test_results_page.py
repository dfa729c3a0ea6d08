"""The part of the search page that depends on its address."""

import re
from pathlib import Path

from fastapi.testclient import TestClient

from backend.container import Container
from backend.store import sources

NOWHERE = "zzzqqq xyzzy"


def _hints(client: TestClient) -> str:
    page = client.get("/results", params={"q": NOWHERE}).text
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


def test_nothing_found_names_the_sources_that_are_not_read_yet(
    container: Container, client: TestClient, folder: Path
) -> None:
    assert "Not read to the end yet" not in _hints(client)
    sources.add(container.database, "drawings", "folder", {"path": str(folder)})
    try:
        assert "Not read to the end yet: drawings" in _hints(client)
    finally:
        sources.remove(container.database, "drawings")
