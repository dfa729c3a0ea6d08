"""All scenarios of turns, in both modes and on every surface."""

from tests.support.mode_scenarios.agent import AGENT_SCENARIOS
from tests.support.mode_scenarios.chat import CHAT_SCENARIOS
from tests.support.mode_scenarios.scenario import Outcome, Scenario, Surface

SCENARIOS: tuple[Scenario, ...] = (*CHAT_SCENARIOS, *AGENT_SCENARIOS)


def name_scenario(scenario: Scenario) -> str:
    return f"{scenario.mode}: {scenario.name}"


def list_scenarios(*surfaces: Surface) -> list[Scenario]:
    return [one for one in SCENARIOS if one.surface in surfaces]


def check_outcome(scenario: Scenario, outcome: Outcome) -> None:
    """Compare what a surface showed, whatever it was, with what must come of the scenario."""
    if scenario.refused or outcome.refused:
        assert scenario.refused
        assert scenario.refused in outcome.refused
        return
    assert "A list of the model" not in outcome.text
    assert outcome.is_general == scenario.is_general, outcome
    is_open = isinstance(scenario.kinds, frozenset)
    listed = tuple(sorted(outcome.kinds)) if is_open else outcome.kinds
    assert listed == (tuple(sorted(scenario.kinds)) if is_open else scenario.kinds), outcome
    for said in scenario.shown:
        assert said in outcome.steps
