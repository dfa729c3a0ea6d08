"""Chat and Agent mode as they are asked in the terminal and over the API, by a table of scenarios that names what each covers."""

from collections.abc import Iterator
from itertools import product

import pytest

from tests.support.mode_scenarios.contract_lines import Line
from tests.support.mode_scenarios.scenario import Outcome, Scenario, Surface
from tests.support.mode_scenarios.table import (
    SCENARIOS,
    check_outcome,
    list_scenarios,
    name_scenario,
)
from tests.support.mode_scenarios.world import ModesWorld, modes_world

FEWEST = 60


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


@pytest.mark.parametrize("scenario", list_scenarios(Surface.API), ids=name_scenario)
def test_over_the_api(modes: ModesWorld, scenario: Scenario) -> None:
    with modes.prepare(scenario):
        outcome = modes.ask_api(scenario)
    _check(modes, scenario, outcome)


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
    requests = [*modes.model.requests, *modes.model.planned]
    sent = "\n".join(one.text for one in requests)
    for text in scenario.told:
        assert text in sent
    for text in scenario.not_told:
        assert text not in sent
