"""A Quarry with a few documents, a search engine, a web and a model, which scenarios ask in the terminal and over the API."""

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from backend.chat.events import GENERAL_KNOWLEDGE
from backend.cli import command_line
from backend.cli.command_line import app
from backend.container import Container
from backend.store.audit import OWNER
from backend.store.llm import language_models
from backend.store.llm.language_models import ModelRole, ModelValues
from backend.web_search.page_fetcher import PageFetcher
from backend.web_search.page_reader import PageReader
from backend.web_search.service import ProviderChange, RulesChange
from indexing.text.tokenizer import plain_words
from tests.contract.provider_worlds.api_worlds import SearxngWorld
from tests.contract.provider_worlds.world import Item
from tests.support.chat_turns import FOUND
from tests.support.local_web import LocalWeb, local_web
from tests.support.mode_scenarios.model import ModelOfScenario
from tests.support.mode_scenarios.scenario import Outcome, Scenario
from tests.support.open_web import FEW_WORDS
from tests.support.scripted_model import ScriptedModel, ToolUse
from tests.support.services.serving import ReceivedRequest, Reply, RunningService, reply_text, serve
from tests.support.serving import events
from tests.support.web_search import switch_on
from tests.unit.backend.api.conftest import client_of, connected, make_container

FINANCE = "group:finance"
BROKEN = "broken"
FILES = {
    "leave.md": "# Parental leave\n\nOur parental leave lasts 14 weeks.\n",
    "travel.md": "# Travel abroad\n\nThe team lead approves travel abroad.\n",
    "receipts.md": "# Receipts\n\nReceipts are handed in within 30 days.\n",
    "finance/falcon.md": "# Project Falcon\n\nProject Falcon has the code ZX-4417 and uses zirconium.\n",
    "board/leave.md": "# Directors\n\nDirectors have parental leave of 40 weeks.\n",
    "access.yaml": (
        "rules:\n"
        "  - match: finance/**\n    readers: [group:finance]\n"
        "  - match: board/**\n    readers: [group:board]\n"
        '  - match: "**"\n    readers: [public]\n'
    ),
}
PAGES = (
    *FOUND,
    Item("A tidal pool", "{web}/en/pool", "The tidal pool opens late."),
    Item("A tidal pool, again", "{web}/en/pool#tides", "The tidal pool is late."),
    *(
        Item(f"Lighthouse {at}", f"https://light.example/{at}", f"Lighthouse {at} stands. " * 20)
        for at in range(1, 8)
    ),
)
DEFAULT_RULES = RulesChange(
    is_on=True, allowed_domains=(), blocked_domains=(), keeps_internal_names=True
)
SEEING = ModelValues(
    name="seeing",
    base_url="",
    model="seeing",
    context_window=32_000,
    sees_pictures=True,
    calls_tools=True,
    reasons=False,
    input_price=None,
    output_price=None,
)
_LISTED = re.compile(r"^\[\d+\] .*?(?: \((web|what you asked to remember)\))?$", re.MULTILINE)
_KINDS = {"web": "url", "what you asked to remember": "memory", "": "document"}


class WordSearxng(SearxngWorld):
    """Finds the pages that share a word with the query."""

    def __init__(self, pages: tuple[Item, ...]) -> None:
        super().__init__()
        self.pages = pages

    def __call__(self, request: ReceivedRequest) -> Reply:
        asked = set(plain_words(request.param("q"))) - FEW_WORDS
        found = WordSearxng(())
        found.items = [
            one for one in self.pages if asked & set(plain_words(f"{one.title} {one.summary}"))
        ]
        return found._answer()


@dataclass(frozen=True)
class ModesWorld:
    container: Container
    client: TestClient
    model: ScriptedModel
    engine: RunningService
    web: LocalWeb

    def fill_in(self, text: str) -> str:
        return self.web.fill_in(text)

    @property
    def queries(self) -> list[str]:
        """What the search engine was sent, sorted."""
        return sorted(request.param("q") for request in self.engine.log)

    @contextmanager
    def prepare(self, scenario: Scenario) -> Iterator[None]:
        """Have the model, the rules and the memories of a scenario, with empty logs."""
        self.clear_logs()
        self.play(scenario)
        service = self.container.web.service(OWNER)
        service.change_rules(replace(DEFAULT_RULES, **scenario.rules))
        broken = self._ask_broken_first() if scenario.is_engine_broken else nullcontext()
        sees = self._see_pictures() if scenario.sees_pictures else nullcontext()
        with self._remember(scenario.memory), broken, sees:
            yield

    def clear_logs(self) -> None:
        for log in (self.model.requests, self.model.planned, self.engine.log, self.web.requests):
            log.clear()

    def play(self, scenario: Scenario) -> None:
        """Have the model do what the scenario says."""
        self.model.plan = self.fill_in(scenario.plan)
        self.model.play(ModelOfScenario(self.fill_in_steps(scenario.steps), scenario.adds))

    def fill_in_steps(
        self, steps: tuple[tuple[ToolUse, ...], ...]
    ) -> tuple[tuple[ToolUse, ...], ...]:
        return tuple(map(self._fill_in_step, steps))

    @contextmanager
    def _see_pictures(self) -> Iterator[None]:
        """Answer by the same model as one that sees."""
        database = self.container.database
        eye = language_models.find(database, SEEING.name)
        language_models.set_roles(database, eye.id, frozenset({ModelRole.DEFAULT}))
        yield
        language_models.set_roles(database, eye.id, frozenset())

    @contextmanager
    def _ask_broken_first(self) -> Iterator[None]:
        engine = SearxngWorld()
        engine.instead = reply_text("broken", status=500)
        service = self.container.web.service(OWNER)
        with serve(engine) as running:
            local = {"api_url": running.url, "private_hosts": ["127.0.0.1"]}
            service.add("searxng", local, name=BROKEN)
            service.move(BROKEN, 1)
            yield
            service.remove(BROKEN)
            assert running.log, "the engine that fails was not asked"

    def _fill_in_step(self, step: tuple[ToolUse, ...]) -> tuple[ToolUse, ...]:
        return tuple(ToolUse(one.name, self.fill_in(one.text)) for one in step)

    @contextmanager
    def _remember(self, text: str) -> Iterator[None]:
        if not text:
            yield
            return
        added = self.client.post("/api/memories", json={"text": text})
        assert added.status_code == 201, added.text
        yield
        assert self.client.delete(f"/api/memories/{added.json()['id']}").status_code == 204

    def ask_api(self, scenario: Scenario) -> Outcome:
        # A question without a mode is one of Chat mode.
        mode = {"mode": scenario.mode} if scenario.mode != "chat" else {}
        switches = {str(name): is_on for name, is_on in scenario.switches.items()}
        asked: dict[str, object] = {"question": self.fill_in(scenario.message), **mode, **switches}
        got = self.client.post("/api/ask", json=asked)
        if got.status_code != 200:
            assert got.status_code == 409, got.text
            return Outcome(refused=got.json()["detail"])
        stream = list(events(got.text.splitlines()))
        assert stream[-1].name == "done", stream[-1]
        steps = "\n".join(f"{one.name} {one.data}" for one in stream[:-1] if one.name != "text")
        return read_answer(stream[-1].data["answer"], steps)

    def ask_terminal(self, scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> Outcome:
        monkeypatch.setattr(command_line, "open_home", lambda: self.container)
        switches = [
            f"--{name}" if is_on else f"--no-{name}" for name, is_on in scenario.switches.items()
        ]
        mode = ["--mode", scenario.mode] if scenario.mode != "chat" else []
        # The owner of the machine has the memories; who reads as a group has none.
        readers = [] if scenario.memory else ["--as", FINANCE]
        asked = ["ask", self.fill_in(scenario.message), *mode, *switches, *readers]
        run = CliRunner(env={"COLUMNS": "200"}).invoke(app, asked)
        if run.exit_code != 0:
            assert run.exit_code == 1, run.output
            return Outcome(refused=run.output)
        return _read_terminal(run.output)


def read_answer(answer: Any, steps: str) -> Outcome:
    return Outcome(
        text=answer["answer"],
        kinds=tuple(one["kind"] for one in answer["references"]),
        is_general=answer["general_knowledge"],
        steps=steps,
    )


def _read_terminal(output: str) -> Outcome:
    before, _, listed = output.partition("\nReferences\n")
    return Outcome(
        text=before,
        kinds=tuple(_KINDS[found[1] or ""] for found in _LISTED.finditer(listed)),
        is_general=GENERAL_KNOWLEDGE in before,
        steps=before,
    )


@contextmanager
def modes_world(folder: Path) -> Iterator[ModesWorld]:
    """Run all that scenarios need, below this folder."""
    write_documents(folder / "wiki")
    with ExitStack() as stack:
        model = stack.enter_context(ScriptedModel())
        web = stack.enter_context(local_web())
        engine = stack.enter_context(serve(WordSearxng(fill_in_pages(web))))
        container = make_container(folder / "home", llm_url=model.base_url, llm_model="scripted")
        vars(container.web)["page_reader"] = PageReader(PageFetcher(web.allowed, web.resolve))
        connected(container, folder / "wiki")
        switch_on(container, engine)
        # All scenarios together ask more often than the usual limit of a minute lets them.
        container.web.service(OWNER).edit("searxng", ProviderChange(per_minute=600))
        seeing = replace(SEEING, base_url=model.base_url)
        language_models.add(container.database, seeing, None)
        client = stack.enter_context(client_of(container, FINANCE))
        yield ModesWorld(container, client, model, engine, web)


def fill_in_pages(web: LocalWeb) -> tuple[Item, ...]:
    """What the search engine finds, some of it on this web."""
    return tuple(replace(one, url=web.fill_in(one.url)) for one in PAGES)


def write_documents(folder: Path) -> None:
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
