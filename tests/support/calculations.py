"""The sandbox of calculations as the tests have it: built once, kept in `.cache/calculations` of the checkout."""

from functools import cache
from pathlib import Path

from backend.research.calculations.preparation import prepare_component
from backend.research.calculations.sandbox import CalculationSandbox
from indexing.runtime.deadline import Deadline

FOLDER = Path(__file__).parents[2] / ".cache" / "calculations"


@cache
def prepared_sandbox() -> CalculationSandbox:
    """Return a sandbox whose component is built."""
    assert prepare_component(FOLDER, Deadline.after(600)) is not None
    return CalculationSandbox(FOLDER)
