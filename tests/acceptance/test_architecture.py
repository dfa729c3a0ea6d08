"""ARCHITECTURE.md is true: the paths that it names exist, and its journeys are as it describes them."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from backend.search.selection import FEW_SECTIONS
from tests.support.home import Home
from tests.support.scripted_model import Reply, Request, Say, ScriptedModel

pytestmark = pytest.mark.smoke

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


QUESTION = "How many days of paid leave are there?"


def _journey(title: str) -> list[str]:
    """The functions that a journey names, as `module:function`."""
    section = TEXT.partition(f"### {title}\n")[2].partition("\n#")[0]
    return re.findall(r"`((?:backend|connectors|indexing)\.[\w.]+:[\w.]+)`", section)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    made = Home(tmp_path_factory.mktemp("home"))
    folder = made.path / "docs"
    folder.mkdir()
    # More than are read without asking the model which.
    for number in range(FEW_SECTIONS + 2):
        text = (
            f"# Leave in team {number}\n\nThere are twenty days of paid leave in team {number}.\n"
        )
        (folder / f"leave-{number}.md").write_text(text, encoding="utf-8")
    assert made.quarry("add", "folder", str(folder), "--name", "docs").code == 0
    return made


def _called(home: Home, *arguments: str, **settings: str) -> Iterator[str]:
    target = home.path / "called.json"
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.call_recorder", str(target), *arguments],
        cwd=ROOT,
        env=home.environment(**settings),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for name in json.loads(target.read_text(encoding="utf-8")):
        yield name.replace("<locals>.", "")


@pytest.mark.soak("slow")
def test_a_document_and_a_question_pass_through_the_functions_that_it_names(home: Home) -> None:
    document, question = _journey("A document"), _journey("A question")
    assert len(document) >= 8
    assert len(question) >= 8
    synced = set(_called(home, "sync", "docs"))
    assert [name for name in document if name not in synced] == []
    asked = set(_called(home, "ask", QUESTION))
    assert [name for name in question if name not in asked] == []


@pytest.mark.soak("slow")
def test_a_question_with_a_language_model_passes_through_the_functions_that_it_names(
    home: Home,
) -> None:
    journey = _journey("A question with a language model")
    assert len(journey) >= 8
    assert home.quarry("sync", "docs").code == 0
    asked: set[str] = set()
    with ScriptedModel(_answer) as model:
        settings = {"QUARRY_LLM_URL": model.base_url, "QUARRY_LLM_MODEL": "scripted"}
        for mode in ("chat", "agent"):
            asked |= {*_called(home, "ask", QUESTION, "--mode", mode, **settings)}
    assert [name for name in journey if name not in asked] == []


def _answer(request: Request) -> Reply:
    if request.has_sources:
        return Say("There are twenty days of paid leave [1].")
    return Say("days of paid leave")


def test_every_path_that_it_names_exists() -> None:
    paths = re.findall(r"`((?:backend|connectors|indexing|tests|deploy)/[\w./]*)`", TEXT)
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_a_file_that_it_names_without_its_folder_exists_too() -> None:
    names = set(re.findall(r"`(\w+\.py)`", TEXT))
    rooms = ("backend", "connectors", "indexing", "tests", "deploy")
    files = {path.name for room in rooms for path in (ROOT / room).rglob("*.py")}
    files |= {path.name for path in ROOT.glob("*.py")}
    assert names - files == set()
