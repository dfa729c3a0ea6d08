"""Calculations of an agent, by the sandbox."""

from backend.research.calculations.sandbox import (
    Calculation,
    CalculationSandbox,
    FailedCalculation,
)
from backend.research.dependencies import Calculate
from backend.research.knowledge.builders import learn_from_calculation
from backend.research.knowledge_items import KnowledgeItem
from connectors.errors import NotConfiguredError
from indexing.runtime.deadline import Deadline


def make_calculate(sandbox: CalculationSandbox) -> Calculate | None:
    """Return what runs the programs of agents; None where there is no sandbox."""
    if sandbox.find_obstacle():
        return None

    def calculate(problem: str, program: str, deadline: Deadline) -> KnowledgeItem | str:
        try:
            outcome = sandbox.run_calculation(program, deadline)
        except NotConfiguredError as error:
            return str(error)
        match outcome:
            case Calculation():
                return learn_from_calculation(problem, outcome)
            case FailedCalculation(reason=reason):
                return f"The program failed: {reason}."

    return calculate
