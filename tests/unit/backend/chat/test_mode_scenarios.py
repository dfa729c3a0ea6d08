"""Chat and Agent mode as they are asked in the terminal and over the API, by a table of scenarios that names what each covers."""

import re
from collections.abc import Iterator
from itertools import product

import pytest

from tests.support.mode_scenarios.contract_lines import Line
from tests.support.mode_scenarios.conversation import ask_in_conversation
from tests.support.mode_scenarios.scenario import Outcome, Scenario, Surface
from tests.support.mode_scenarios.table import (
    SCENARIOS,
    check_outcome,
    list_scenarios,
    name_scenario,
)
from tests.support.mode_scenarios.world import ModesWorld, modes_world
from tests.support.scripted_model import Json, Request

FEWEST = 60
MARK_OR_LIST = re.compile(r"\[\d+\]|References|A list of the model")


@pytest.fixture(scope="module")
def modes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModesWorld]:
    with modes_world(tmp_path_factory.mktemp("modes")) as world:
        yield world


def test_the_table_covers_every_line_of_the_contract() -> None:
    assert len(SCENARIOS) >= FEWEST
    assert len({name_scenario(one) for one in SCENARIOS}) == len(SCENARIOS)
    assert {line for one in SCENARIOS for line in one.lines} == set(Line)
    asked = {(one.mode, one.surface) for one in SCENARIOS}
    assert asked == set(product(("chat", "agent"), Surface))


@pytest.mark.soak("slow")
@pytest.mark.parametrize("scenario", list_scenarios(Surface.API), ids=name_scenario)
def test_over_the_api(modes: ModesWorld, scenario: Scenario) -> None:
    with modes.prepare(scenario):
        ask = ask_in_conversation if scenario.is_in_conversation else ModesWorld.ask_api
        outcome = ask(modes, scenario)
    _check(modes, scenario, outcome)


@pytest.mark.soak("slow")
@pytest.mark.parametrize("scenario", list_scenarios(Surface.TERMINAL), ids=name_scenario)
def test_in_the_terminal(
    modes: ModesWorld, scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    with modes.prepare(scenario):
        outcome = modes.ask_terminal(scenario, monkeypatch)
    _check(modes, scenario, outcome)


def _check(modes: ModesWorld, scenario: Scenario, outcome: Outcome) -> None:
    check_outcome(scenario, outcome)
    assert modes.queries == sorted(map(modes.fill_in, scenario.sent))
    assert sorted(modes.web.requests) == sorted(scenario.pages)
    for said in scenario.says:
        assert modes.fill_in(said) in outcome.text
    if not scenario.refused:
        _check_last_message(scenario, [one for one in modes.model.requests if one.answers][-1])
    requests = [*modes.model.requests, *modes.model.planned]
    sent = "\n".join(one.text for one in requests)
    for text in scenario.told:
        assert modes.fill_in(text) in sent
    for text in scenario.not_told:
        assert text not in sent


def _check_last_message(scenario: Scenario, request: Request) -> None:
    """Check what the model was sent for its answer: references, pictures, and the answer before."""
    assert sum(map(_count_pictures, request.messages)) == scenario.pictures
    if scenario.references:
        sent = [(one["number"], one["type"]) for one in request.sources]
        assert sent == list(enumerate(scenario.references, 1))
    before = [
        one for one in request.messages if one["role"] == "assistant" and not one.get("tool_calls")
    ]
    assert len(before) == bool(scenario.earlier)
    for one in before:
        assert MARK_OR_LIST.search(one["content"]) is None, one


def _count_pictures(message: Json) -> int:
    parts = message["content"] if isinstance(message["content"], list) else []
    return sum(part["type"] == "image_url" for part in parts)
