"""`quarry models`: add, edit, list, test, use, remove, usage, budgets."""

import json
import re
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from backend.access.roles import Role
from backend.cli import app
from backend.store.accounts.people import NOBODY
from backend.store.database import open_database
from backend.store.llm import model_usage
from backend.store.llm.model_usage import TokenCounts
from tests.support.accounts import add_person
from tests.support.databases import sqlite_in
from tests.support.scripted_model import Call, Refuse, Reply, Request, Say, ScriptedModel, ToolUse

SECRET = "sk-0123456789abcdef"
URL = "https://llm.example.com/v1"


@pytest.fixture
def cli(tmp_path: Path) -> CliRunner:
    env = {"QUARRY_HOME": str(tmp_path), "COLUMNS": "200", "MODEL_KEY": SECRET}
    return CliRunner(env=env)


@pytest.fixture
def server() -> Iterator[ScriptedModel]:
    with ScriptedModel(_well) as running:
        yield running


def _well(request: Request) -> Reply:
    if request.tool_names:
        return Call(ToolUse("note", {"text": "ready"}))
    return Say("one, two, three")


def _run(cli: CliRunner, *arguments: str, stdin: str | None = None) -> str:
    done = cli.invoke(app, ["models", *arguments], input=stdin)
    assert done.exit_code == 0, done.output
    return done.output


def _add(cli: CliRunner, name: str, *options: str, url: str = URL) -> str:
    return _run(cli, "add", name, "--url", url, "--model", f"{name}-2026", *options)


def test_models_are_added_listed_used_and_removed(cli: CliRunner) -> None:
    assert "quarry models add" in _run(cli, "list")
    said = _add(cli, "large", "--key-env", "MODEL_KEY", "--window", "128000", "--sees")
    assert said == (
        "large is added.\nTo have it write the answers: quarry models use large --as default\n"
    )
    prices = ("--input-price", "0.5", "--output-price", "2")
    assert _add(cli, "small", "--fast", "--no-tools", "--reasons", *prices) == "small is added.\n"
    assert _run(cli, "use", "large", "--as", "default") == "large is the default model.\n"
    large, small = json.loads(_run(cli, "list", "--json"))
    assert large == {
        "name": "large",
        "base_url": URL,
        "model": "large-2026",
        "origin": "database",
        "has_key": True,
        "context_window": 128_000,
        "sees_pictures": True,
        "calls_tools": True,
        "reasons": False,
        "input_price": None,
        "output_price": None,
        "roles": ["default"],
    }
    assert (small["has_key"], small["calls_tools"], small["reasons"]) == (False, False, True)
    assert (small["input_price"], small["output_price"], small["roles"]) == (0.5, 2.0, ["fast"])
    table = _run(cli, "list")
    assert "call tools, accept images" in table
    assert re.search(r"small .* reason  +0\.5 read, 2 written  +database", table)
    assert SECRET not in table
    removed = json.loads(_run(cli, "remove", "small", "--json"))
    assert removed == {"name": "small", "done": "is removed"}
    assert [one["name"] for one in json.loads(_run(cli, "list", "--json"))] == ["large"]
    audited = cli.invoke(app, ["audit", "--json"]).output
    assert SECRET not in audited
    assert [one["action"] for one in json.loads(audited)] == [
        "remove_model",
        "use_model",
        "add_model",
        "add_model",
    ]


def test_a_key_is_read_from_a_file_a_variable_or_a_pipe(
    cli: CliRunner, tmp_path: Path, server: ScriptedModel
) -> None:
    (tmp_path / "key.txt").write_text(f"{SECRET}1\n", encoding="utf-8")
    _add(cli, "a", "--key-file", str(tmp_path / "key.txt"), url=server.base_url)
    _add(cli, "b", "--key-env", "MODEL_KEY", url=server.base_url)
    piped = ["add", "c", "--url", server.base_url, "--model", "m", "--key-file", "-"]
    _run(cli, *piped, stdin=f"{SECRET}3\n")
    for name, key in (("a", f"{SECRET}1"), ("b", SECRET), ("c", f"{SECRET}3")):
        server.requests.clear()
        assert key not in _run(cli, "test", name)
        assert {one.headers["authorization"] for one in server.requests} == {f"Bearer {key}"}


def test_a_try_says_what_it_can(cli: CliRunner, server: ScriptedModel) -> None:
    _add(cli, "large", url=server.base_url)
    lines = _run(cli, "test", "large").splitlines()
    assert lines[0].startswith("answers: one, two, three (first token after")
    assert lines[1:] == ["streams: yes", "calls tools: yes", "accepts a temperature: yes"]
    found = json.loads(_run(cli, "test", "large", "--json"))
    assert (found["answers"], found["calls_tools"], found["trouble"]) == (True, True, "")


def test_a_try_says_that_a_temperature_is_refused(cli: CliRunner, server: ScriptedModel) -> None:
    def refuse(request: Request) -> Reply:
        return Refuse(400, "temperature") if "temperature" in request.body else _well(request)

    server.play(refuse)
    _add(cli, "large", url=server.base_url)
    assert _run(cli, "test", "large").splitlines()[-2:] == [
        "accepts a temperature: no",
        "Assistants that set a temperature answer at the temperature of the model.",
    ]
    found = json.loads(_run(cli, "test", "large", "--json"))
    assert (found["takes_temperature"], found["trouble"]) == (False, "")


def test_a_try_that_fails_says_what_to_do(cli: CliRunner, server: ScriptedModel) -> None:
    _add(cli, "large", "--key-env", "MODEL_KEY", url=server.base_url)
    server.play(lambda _: Refuse(401, f"wrong key {SECRET}"))
    failed = cli.invoke(app, ["models", "test", "large"])
    assert failed.exit_code == 1
    assert "Set the key of large to a valid one." in failed.output
    assert SECRET not in failed.output


def test_the_model_of_the_settings_is_listed_and_tried(
    tmp_path: Path, server: ScriptedModel
) -> None:
    env = {"QUARRY_LLM_URL": server.base_url, "QUARRY_LLM_MODEL": "usual"}
    cli = CliRunner(env={"QUARRY_HOME": str(tmp_path), "COLUMNS": "200", **env})
    assert "The default is from the settings (QUARRY_LLM_MODEL)" in _run(cli, "list")
    (listed,) = json.loads(_run(cli, "list", "--json"))
    assert (listed["name"], listed["origin"], listed["roles"]) == ("usual", "settings", ["default"])
    assert _run(cli, "test", "usual").startswith("answers: one, two, three")
    _add(cli, "large", "--default")
    large, usual = json.loads(_run(cli, "list", "--json"))
    assert (large["roles"], usual["roles"]) == (["default"], [])
    assert "from the settings" not in _run(cli, "list")
    assert _run(cli, "test", "usual").startswith("answers: one, two, three")


def test_usage_is_shown_by_day_person_and_model(cli: CliRunner, tmp_path: Path) -> None:
    assert _run(cli, "usage") == "No tokens were used in this time.\n"
    _add(cli, "large", "--input-price", "2", "--output-price", "10")
    database = open_database(sqlite_in(tmp_path))
    today = datetime.now(UTC).date()
    counts = TokenCounts(input_tokens=1_500, output_tokens=200, calls=4)
    model_usage.add(database, NOBODY, today, {"large": counts, "gone": counts})
    model_usage.add(database, NOBODY, today - timedelta(days=1), {"large": counts})
    found = json.loads(_run(cli, "usage", "--days", "1", "--json"))
    assert [(one["model"], one["cost"]) for one in found] == [("gone", None), ("large", 0.005)]
    assert found[1] | {"day": ""} == {
        "day": "",
        "person": None,
        "model": "large",
        "input_tokens": 1_500,
        "output_tokens": 200,
        "calls": 4,
        "cost": 0.005,
    }
    assert len(json.loads(_run(cli, "usage", "--json"))) == 3
    assert "1,500" in _run(cli, "usage")


@pytest.mark.parametrize(
    "arguments",
    [
        ["add", "large", "--url", URL, "--model", "m"],
        ["add", "a b", "--url", URL, "--model", "m"],
        ["add", "a", "--url", "http://169.254.169.254/v1", "--model", "m"],
        ["add", "a", "--url", "no address", "--model", "m"],
        ["test", "none"],
        ["remove", "none"],
        ["use", "none", "--as", "fast"],
        ["edit", "none", "--window", "8000"],
    ],
)
def test_what_is_refused_says_why(cli: CliRunner, arguments: list[str]) -> None:
    _add(cli, "large")
    refused = cli.invoke(app, ["models", *arguments, "--json"])
    assert refused.exit_code == 1
    assert len(json.loads(refused.output)["error"]) > 20


def test_a_model_is_edited_and_the_rest_stays(cli: CliRunner) -> None:
    _add(cli, "large", "--key-env", "MODEL_KEY", "--sees", "--default", "--fast")
    said = _run(
        cli,
        "edit",
        "large",
        "--name",
        "larger",
        "--window",
        "64000",
        "--no-sees",
        "--no-fast",
        "--fallback",
    )
    assert said == "large is changed.\n"
    (found,) = json.loads(_run(cli, "list", "--json"))
    assert (found["name"], found["model"], found["base_url"]) == ("larger", "large-2026", URL)
    assert (found["context_window"], found["sees_pictures"]) == (64_000, False)
    assert (found["calls_tools"], found["has_key"]) == (True, True)
    assert found["roles"] == ["default", "fallback"]
    prices = ("--input-price", "0.5", "--output-price", "2")
    _run(cli, "edit", "larger", *prices, "--no-tools", "--reasons", "--json")
    (found,) = json.loads(_run(cli, "list", "--json"))
    assert (found["input_price"], found["output_price"]) == (0.5, 2.0)
    assert (found["calls_tools"], found["reasons"]) == (False, True)
    moved = ["models", "edit", "larger", "--url", "https://other.example.com/v1", "--json"]
    refused = cli.invoke(app, moved)
    assert refused.exit_code == 1
    assert "Enter the key again" in json.loads(refused.output)["error"]


@pytest.mark.parametrize(
    "options",
    [
        ["--key-file", "none.txt"],
        ["--key-env", "NO_SUCH_VARIABLE"],
        ["--key-env", "MODEL_KEY", "--key-file", "-"],
        ["--window", "10"],
        ["--input-price", "-1"],
    ],
)
def test_what_is_wrong_is_refused(cli: CliRunner, options: list[str]) -> None:
    arguments = ["models", "add", "a", "--url", URL, "--model", "m", *options]
    assert cli.invoke(app, arguments).exit_code == 2
    assert cli.invoke(app, ["models", "use", "a", "--as", "best"]).exit_code == 2


def test_a_group_is_given_a_budget_and_loses_it(cli: CliRunner) -> None:
    assert "quarry models budget GROUP TOKENS" in _run(cli, "budgets")
    assert cli.invoke(app, ["groups", "create", "sales"]).exit_code == 0
    assert _run(cli, "budget", "sales", "2000000") == "sales has 2,000,000 tokens a day.\n"
    (found,) = json.loads(_run(cli, "budgets", "--json"))
    assert (found["name"], found["tokens"], found["used"]) == ("sales", 2_000_000, 0)
    assert "2,000,000" in _run(cli, "budgets")
    assert _run(cli, "budget", "sales", "0") == "sales has no limit of tokens.\n"
    assert json.loads(_run(cli, "budgets", "--json")) == []
    refused = cli.invoke(app, ["models", "budget", "none", "5", "--json"])
    assert refused.exit_code == 1
    assert "no group none" in json.loads(refused.output)["error"]
    assert cli.invoke(app, ["models", "budget", "sales", "many"]).exit_code == 2
    negative = cli.invoke(app, ["models", "budget", "sales", "-5"])
    assert negative.exit_code == 2
    assert "Invalid value for 'TOKENS'" in negative.output
    # What is no number is an option, as everywhere.
    assert (
        "No such option: --jso"
        in cli.invoke(app, ["models", "budget", "sales", "5", "--jso"]).output
    )


def test_a_person_is_given_a_budget_of_their_own_and_loses_it(
    cli: CliRunner, tmp_path: Path
) -> None:
    assert "quarry models person-budget EMAIL TOKENS" in _run(cli, "person-budgets")
    with closing(open_database(sqlite_in(tmp_path))) as database:
        add_person(database, "ann@example.com", Role.ADMIN)
    said = _run(cli, "person-budget", "Ann@example.com", "2000000")
    assert said == "ann@example.com has 2,000,000 tokens a day.\n"
    (found,) = json.loads(_run(cli, "person-budgets", "--json"))
    assert found == {"email": "ann@example.com", "name": "Ann", "tokens": 2_000_000, "used": 0}
    assert "2,000,000" in _run(cli, "person-budgets")
    # Those of groups stay apart.
    assert json.loads(_run(cli, "budgets", "--json")) == []
    said = _run(cli, "person-budget", "ann@example.com", "0")
    assert said == "ann@example.com has no budget of their own.\n"
    assert json.loads(_run(cli, "person-budgets", "--json")) == []
    refused = cli.invoke(app, ["models", "person-budget", "bob@example.com", "5", "--json"])
    assert refused.exit_code == 1
    assert "no account of bob@example.com" in json.loads(refused.output)["error"]
    assert cli.invoke(app, ["models", "person-budget", "ann@example.com", "many"]).exit_code == 2
    negative = cli.invoke(app, ["models", "person-budget", "ann@example.com", "-5"])
    assert "Invalid value for 'TOKENS'" in negative.output


def test_budgets_are_commands_beside_those_of_models(cli: CliRunner) -> None:
    shown = _run(cli, "--help")
    for command in ("add", "usage", "budget", "budgets", "person-budget", "person-budgets"):
        assert f" {command} " in shown
