"""The version is that of the installed distribution, on the terminal as elsewhere."""

import tomllib
from pathlib import Path

from typer.testing import CliRunner

from backend.cli import app
from backend.version import describe_version, read_version

PROJECT = Path(__file__).parents[3] / "pyproject.toml"


def test_the_version_is_that_of_the_project() -> None:
    declared = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["version"]
    assert read_version() == declared


def test_the_command_prints_its_version() -> None:
    printed = CliRunner().invoke(app, ["--version"])
    assert (printed.exit_code, printed.output.strip()) == (0, describe_version())
