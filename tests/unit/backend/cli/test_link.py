"""`quarry link`: a link to a server that has run in the home."""

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from typer.testing import CliRunner

from backend.access.machine_secret import read_machine_secret
from backend.cli import app


@pytest.mark.parametrize(
    ("arguments", "address"),
    [
        ((), "127.0.0.1:8321"),
        (("--port", "9000", "--host", "localhost"), "localhost:9000"),
        (("--host", "::1"), "[::1]:8321"),
    ],
)
def test_the_link_is_signed_with_the_secret_of_the_home(
    tmp_path: Path, arguments: tuple[str, ...], address: str
) -> None:
    secret = read_machine_secret(tmp_path / "machine.secret")
    done = CliRunner(env={"QUARRY_HOME": str(tmp_path)}).invoke(app, ["link", *arguments])
    link = urlsplit(done.output.strip())
    assert (done.exit_code, link.scheme, link.netloc, link.path) == (0, "http", address, "/link")
    (code,) = parse_qs(link.query)["code"]
    assert secret.is_link_code(code)
    assert secret.value not in done.output


def test_where_no_server_has_run_it_says_so_and_makes_nothing(tmp_path: Path) -> None:
    done = CliRunner(env={"QUARRY_HOME": str(tmp_path)}).invoke(app, ["link"])
    assert done.exit_code == 1
    assert "quarry serve" in done.output
    assert list(tmp_path.iterdir()) == []
