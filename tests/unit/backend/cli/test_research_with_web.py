"""`quarry research --web`: a run that reads the web beside the documents, from the terminal."""

import json
from collections.abc import Iterator

import pytest
from typer.testing import CliRunner

from backend.cli import command_line
from backend.cli.command_line import app
from tests.support.research_open_web import ResearchWeb, research_web
from tests.support.research_world import ResearchModel


@pytest.fixture
def world(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ResearchWeb]:
    with research_web(tmp_path_factory.mktemp("research-web")) as running:
        running.model.play(ResearchModel())
        monkeypatch.setattr(command_line, "open_home", lambda: running.container)
        yield running


def test_the_report_cites_documents_and_pages(world: ResearchWeb) -> None:
    asked = ["research", "What does the Aster pump cost?", "--web", "--json"]
    ran = CliRunner().invoke(app, asked)
    assert ran.exit_code == 0, ran.output
    report = json.loads(ran.stdout)
    assert {one["kind"] for one in report["sources"]} == {"document", "url"}
    assert "news.test/aster" in world.web.asked
    for said in ("costs 40 EUR", "costs 45 EUR"):
        assert said in report["markdown"]
