"""Calculations of agents: what the sandbox gives is known, and what it refuses is told."""

from pathlib import Path

import pytest

from backend.research.agent.calculation import make_calculate
from backend.research.calculations.sandbox import CalculationSandbox
from backend.research.knowledge_items import KnowledgeItem, KnowledgeType
from indexing.runtime.deadline import Deadline
from tests.support.calculations import prepared_sandbox


@pytest.mark.soak("slow")
def test_what_a_program_prints_is_known_with_its_code() -> None:
    calculate = make_calculate(prepared_sandbox())
    assert calculate is not None
    item = calculate("two pumps", "print(2 * 40)", Deadline.after(120))
    assert isinstance(item, KnowledgeItem)
    assert (item.type, item.answer, item.source_code) == (
        KnowledgeType.CODING,
        "80",
        "print(2 * 40)",
    )
    assert item.question == "What is the solution to the coding issue: two pumps?"


@pytest.mark.soak("slow")
def test_a_program_that_fails_says_why() -> None:
    calculate = make_calculate(prepared_sandbox())
    assert calculate is not None
    said = calculate("nothing", "1 / 0", Deadline.after(120))
    assert isinstance(said, str)
    assert said.startswith("The program failed: ")
    assert "ZeroDivisionError" in said


class NoSandbox(CalculationSandbox):
    def find_obstacle(self) -> str | None:
        return "There is no sandbox."


def test_without_a_sandbox_there_are_no_calculations(tmp_path: Path) -> None:
    assert make_calculate(NoSandbox(tmp_path)) is None
