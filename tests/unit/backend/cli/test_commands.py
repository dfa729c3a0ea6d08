"""The commands as a whole: found by name, loaded only when called."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from typer.testing import CliRunner

from backend.cli.command_line import _COMMANDS, _load, app
from tests.support.embedding_server import embedding_server

SEARCH = """\
import sys
from typer.testing import CliRunner
from backend.cli import app
done = CliRunner().invoke(app, ["search", "apples", "--source", "fruit", "--person", "ann"])
assert done.exit_code == 1 and "Nothing that you may read" in done.output, done.output
print(*sorted(set(sys.modules) & {"sqlalchemy", "backend.store", "celery", "fastapi"}))
"""


GROUPS = {"add", "sources", "eval", "credentials", "tokens"}


@pytest.mark.parametrize("name", sorted(_COMMANDS.keys() - GROUPS))
def test_the_list_of_commands_shows_the_first_line_of_their_help(name: str) -> None:
    help_text = _load(name).help or ""
    assert help_text.splitlines()[0] == _COMMANDS[name][1]


def test_a_search_loads_no_database(tmp_path: Path) -> None:
    with embedding_server() as server:
        done = subprocess.run(
            [sys.executable, "-c", SEARCH],
            env={"QUARRY_HOME": str(tmp_path), "QUARRY_EMBEDDING_URL": server.url},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ""


@pytest.mark.parametrize("name", sorted(_COMMANDS))
def test_the_help_of_each_command_is_plain_text(name: str) -> None:
    shown = CliRunner().invoke(app, [name, "--help"])
    assert shown.exit_code == 0
    assert "Options:" in shown.output
    assert "─" not in shown.output


@pytest.mark.parametrize("name", sorted(_COMMANDS))
def test_each_option_and_argument_says_what_it_is_for(name: str) -> None:
    assert list(_list_unexplained(_load(name), name)) == []


def _list_unexplained(command: click.Command, path: str) -> Iterator[str]:
    yield from (f"{path} {one.name}" for one in command.params if not getattr(one, "help", None))
    for name, part in getattr(command, "commands", {}).items():
        yield from _list_unexplained(part, f"{path} {name}")
