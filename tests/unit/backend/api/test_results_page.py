"""The part of the search page that depends on its address."""

import re
from pathlib import Path

from backend.container import Container
from backend.store.sync import sources
from backend.web import routes
from tests.unit.backend.api.conftest import api, ready


def test_nothing_found_names_the_sources_that_are_not_read_yet(
    container: Container, folder: Path
) -> None:
    app = api(container)
    routes.mount(app)
    with ready(app) as client:

        def read_results() -> str:
            page = client.get("/results", params={"q": "zzzqqq xyzzy"})
            assert page.status_code == 200
            return " ".join(re.sub(r"<[^>]+>", " ", page.text).split())

        assert "Not read to the end yet" not in read_results()
        sources.add(container.database, "drawings", "folder", {"path": str(folder)})
        try:
            assert "Not read to the end yet: drawings" in read_results()
        finally:
            sources.remove(container.database, "drawings")
