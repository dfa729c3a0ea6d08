"""`quarry research`: planned at the terminal, searched in this process, printed or given as one value."""

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from backend.cli import app
from backend.cli.research_run import TerminalResearch
from backend.container import Container
from backend.research.record.request import ResearchRequest
from backend.store.owner import ConversationOwner
from backend.store.research import research_runs
from connectors.access import Readers
from connectors.errors import ActionRequiredError
from tests.support.knowledge import forget_findings
from tests.support.models import MODEL_CACHE
from tests.support.research_world import ResearchModel
from tests.support.scripted_model import Json, Reply, Request, Say, ScriptedModel
from tests.unit.backend.api.conftest import connected, make_container, write_files

LEAVE = "How many weeks of paid leave do parents have?"
TRAVEL = "For which journeys is first class?"
OWNER = ConversationOwner(None)
PUBLIC = Readers.of("public")


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedModel]:
    with ScriptedModel() as running:
        yield running


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory, server: ScriptedModel) -> Container:
    files = tmp_path_factory.mktemp("files")
    write_files(files)
    made = make_container(
        tmp_path_factory.mktemp("home"), llm_url=server.base_url, llm_model="scripted"
    )
    connected(made, files)
    return made


@pytest.fixture(autouse=True)
def _no_earlier_findings(container: Container) -> None:
    forget_findings(container.database)


@pytest.fixture
def model(server: ScriptedModel) -> ResearchModel:
    made = ResearchModel()
    server.play(made)
    return made


@pytest.fixture
def cli(container: Container, server: ScriptedModel) -> CliRunner:
    return CliRunner(
        env={
            "QUARRY_HOME": str(container.home),
            "QUARRY_MODELS": str(MODEL_CACHE),
            "QUARRY_LLM_URL": server.base_url,
            "QUARRY_LLM_MODEL": "scripted",
            "COLUMNS": "160",
        }
    )


@pytest.mark.usefixtures("model")
def test_progress_is_on_standard_error_and_the_report_alone_on_standard_output(
    cli: CliRunner,
) -> None:
    ran = cli.invoke(app, ["research", f"{LEAVE}; {TRAVEL}", "--yes"])
    assert ran.exit_code == 0, ran.output
    assert "Parents have 26 weeks of paid leave [1]." in ran.stdout
    assert "First class is for journeys above four hours [2]." in ran.stdout
    assert "searching" not in ran.stdout
    for line in (f"1. {LEAVE}", f"2. {TRAVEL}", "task 1 done: 1 sources", "writing the report"):
        assert line in ran.stderr


@pytest.mark.usefixtures("model")
def test_json_is_one_document(cli: CliRunner) -> None:
    ran = cli.invoke(app, ["research", LEAVE, "--json"])
    assert ran.exit_code == 0, ran.output
    report = json.loads(ran.stdout)
    assert [one["title"] for one in report["sources"]] == ["Parental leave"]
    assert report["counts"]["supported"] == 1


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([" "], 2, "write a question"),
        ([LEAVE, "--no-knowledge"], 2, "search company knowledge"),
        ([LEAVE, "--minutes", "31"], 2, "--minutes"),
        ([LEAVE, "--web"], 1, "switched off"),
    ],
)
def test_what_cannot_be_researched_says_why(
    cli: CliRunner, arguments: list[str], code: int, said: str
) -> None:
    ran = cli.invoke(app, ["research", *arguments])
    assert (ran.exit_code, said in ran.stderr) == (code, True), ran.output


def test_research_needs_a_model(tmp_path: Path) -> None:
    ran = CliRunner(env={"QUARRY_HOME": str(tmp_path)}).invoke(app, ["research", LEAVE])
    assert ran.exit_code == 1
    assert "quarry models add" in ran.stderr


def _ask_back(values: Json, request: Request) -> Reply:
    del values, request
    return Say('{"questions": ["For whom?"]}')


def _terminal(container: Container) -> tuple[TerminalResearch, io.StringIO]:
    shown = io.StringIO()
    console = Console(file=shown, color_system=None, width=200)
    return TerminalResearch(container.research, lambda: PUBLIC, console), shown


def test_the_plan_is_chosen_from_at_the_terminal(
    container: Container, model: ResearchModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.steps["clarify"] = _ask_back
    said = iter(["For parents.", "2"])
    monkeypatch.setattr(typer, "prompt", lambda *_, **__: next(said))
    terminal, shown = _terminal(container)
    request = ResearchRequest(question=f"{LEAVE}; {TRAVEL}")
    report = terminal.carry_out(request, PUBLIC, asks=True)
    assert "26 weeks" in report.markdown
    assert "First class" not in report.markdown
    assert "For whom?" in shown.getvalue()
    (planned,) = model.of("plan")
    assert planned["answered"] == "For parents."


@pytest.mark.usefixtures("model")
def test_a_plan_without_a_task_is_not_carried_out(
    container: Container, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = iter(["", "1, 2"])
    monkeypatch.setattr(typer, "prompt", lambda *_, **__: next(said))
    terminal, _ = _terminal(container)
    with pytest.raises(ActionRequiredError, match="Every task was left out"):
        terminal.carry_out(ResearchRequest(question=f"{LEAVE}; {TRAVEL}"), PUBLIC, asks=True)


def test_ctrl_c_stops_the_run(
    container: Container, model: ResearchModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.steps["clarify"] = _ask_back

    def interrupt(*_: object, **__: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(typer, "prompt", interrupt)
    terminal, _ = _terminal(container)
    with pytest.raises(KeyboardInterrupt):
        terminal.carry_out(ResearchRequest(question=LEAVE), PUBLIC, asks=True)
    (last, *_) = research_runs.list_page(container.database, OWNER, None, None, 1)
    assert last.state == "stopped"
