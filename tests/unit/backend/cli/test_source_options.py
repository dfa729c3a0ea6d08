"""The options of a kind on the command line are those of its models; secrets are no arguments."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from backend.cli import app

SECRET = "t0p-secret"


@pytest.fixture
def cli(tmp_path: Path) -> CliRunner:
    return CliRunner(env={"QUARRY_HOME": str(tmp_path / "home"), "COLUMNS": "120"})


GIT = ("add", "git", "https://code.example.com/team/wiki.git", "--readers", "public")


def test_help_lists_every_kind_and_every_setting(cli: CliRunner) -> None:
    kinds = cli.invoke(app, ["add", "--help"]).output
    assert {"folder", "git"} <= set(kinds.split())
    output = " ".join(cli.invoke(app, ["add", "git", "--help"]).output.split())
    for option in ("URL", "--readers TEXT", "--sign-in none|token|ssh_key", "--token-file FILE"):
        assert option in output
    assert "--token-env VARIABLE" in output
    assert "--token TEXT" not in output
    assert "An access token that may read the repository. [for token]" in output


def test_lists_are_repeated_and_numbers_are_numbers(cli: CliRunner) -> None:
    more = ("--readers", "group:dev", "--largest-file", "1000", "--name", "kb", "--json")
    done = cli.invoke(app, [*GIT, *more])
    assert done.exit_code == 0, done.output
    assert '"readers": [\n      "public",\n      "group:dev"\n    ]' in done.output
    assert '"largest_file": 1000' in done.output


@pytest.mark.parametrize("way", ["file", "env", "pipe"])
def test_a_secret_comes_by_a_file_a_variable_or_a_pipe(
    cli: CliRunner, tmp_path: Path, way: str
) -> None:
    (tmp_path / "token").write_text(f"{SECRET}\n", encoding="utf-8")
    given = {
        "file": ["--token-file", str(tmp_path / "token")],
        "env": ["--token-env", "THE_TOKEN"],
        "pipe": ["--token-file", "-"],
    }
    done = cli.invoke(
        app, [*GIT, *given[way], "--json"], input=f"{SECRET}\n", env={"THE_TOKEN": SECRET}
    )
    assert done.exit_code == 0, done.output
    assert '"has_credential": true' in done.output
    assert SECRET not in done.output


@pytest.mark.soak("slow")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("add", "git", "/srv/x.git"), "--readers: Required."),
        (("add", "git", "--readers", "public"), "URL: Required."),
        ((*GIT, "--largest-file", "0"), "--largest-file: "),
        ((*GIT, "--sign-in", "token"), "--token-file or --token-env: Required."),
        ((*GIT, "--sign-in", "smile"), "--sign-in"),
        ((*GIT, "--token-env", "NO_SUCH_VARIABLE"), "NO_SUCH_VARIABLE"),
        ((*GIT, "--token-file", "/no/such/file"), "cannot be read"),
        ((*GIT, "--name", "a:b"), "--name: "),
        (("add", "git", "http://code.example.com/x.git", "--readers", "public"), "not encrypted"),
        (("add", "fax"), "fax"),
    ],
)
def test_wrong_use_names_the_option(cli: CliRunner, arguments: tuple[str, ...], says: str) -> None:
    done = cli.invoke(app, [*arguments])
    assert (done.exit_code, says in " ".join(done.output.split())) == (2, True), done.output


def test_settings_come_from_a_file_of_json_and_options_go_before(
    cli: CliRunner, tmp_path: Path
) -> None:
    file = tmp_path / "git.json"
    file.write_text('{"url": "/srv/a.git", "readers": ["public"], "branch": "old"}', "utf-8")
    done = cli.invoke(app, ["add", "git", "--settings", str(file), "--branch", "new", "--json"])
    assert done.exit_code == 0, done.output
    assert '"name": "a"' in done.output
    assert '"branch": "new"' in done.output
    file.write_text("[1]", "utf-8")
    assert cli.invoke(app, ["add", "git", "--settings", str(file)]).exit_code == 2


def test_the_variant_is_reported_by_what_is_given(cli: CliRunner, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(SECRET, encoding="utf-8")
    both = ("--token-file", str(tmp_path / "token"), "--known-hosts", "x")
    assert cli.invoke(app, [*GIT, *both]).exit_code == 2  # of two variants at once


def test_edit_changes_what_is_named_and_takes_back_what_is_empty(cli: CliRunner) -> None:
    assert cli.invoke(app, [*GIT, "--branch", "old", "--include", "*.md"]).exit_code == 0
    done = cli.invoke(
        app, ["sources", "edit", "wiki", "--branch", "new", "--include", "", "--json"]
    )
    assert done.exit_code == 0, done.output
    assert '"branch": "new"' in done.output
    assert "include" not in done.output
    assert '"readers": [\n      "public"\n    ]' in done.output


def test_an_edit_that_is_not_valid_changes_nothing(cli: CliRunner) -> None:
    assert cli.invoke(app, [*GIT, "--branch", "old"]).exit_code == 0
    refused = cli.invoke(app, ["sources", "edit", "wiki", "--branch", "b", "--readers", ""])
    assert (refused.exit_code, "--readers: Required." in refused.output) == (2, True)
    assert '"branch": "old"' in cli.invoke(app, ["sources", "--json"]).output


def test_a_credential_is_kept_by_an_edit_of_settings(cli: CliRunner) -> None:
    added = cli.invoke(app, [*GIT, "--token-env", "THE_TOKEN"], env={"THE_TOKEN": SECRET})
    assert added.exit_code == 0
    edited = cli.invoke(app, ["sources", "edit", "wiki", "--branch", "new", "--json"])
    assert '"has_credential": true' in edited.output


def test_what_is_not_there_cannot_be_edited(cli: CliRunner) -> None:
    done = cli.invoke(app, ["sources", "edit", "nothing", "--branch", "x"])
    assert done.exit_code == 1
    assert "There is no source named 'nothing'" in done.output


def test_a_kind_without_one_place_to_read_is_named_too(cli: CliRunner) -> None:
    output = cli.invoke(app, ["add", "github", "--help"]).output
    assert "--name NAME" in output
    assert "--name" not in cli.invoke(app, ["sources", "edit", "nothing", "--help"]).output


def test_a_fault_of_an_edit_names_the_option(cli: CliRunner) -> None:
    assert cli.invoke(app, [*GIT]).exit_code == 0
    refused = cli.invoke(app, ["sources", "edit", "wiki", "--url", ""])
    assert (refused.exit_code, "--url: Required." in refused.output) == (2, True)
