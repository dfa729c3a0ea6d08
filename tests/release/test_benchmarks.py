"""The benchmarks whose bars are asserted: each is a command that exits with 1 where it misses one."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.soak("release")

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "name", ["modules_passed", "web_turns", "reference_matching", "research_tasks"]
)
def test_its_bars_are_met(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", f"tests.benchmarks.{name}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
