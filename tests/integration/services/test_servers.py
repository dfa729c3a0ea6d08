"""The PostgreSQL and Redis of `deploy/services`: they start, answer, are announced, and end."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
import redis
from sqlalchemy import make_url

from deploy.opensearch.releases import SetupError
from deploy.services import software
from deploy.services.service import PostgreSql, Redis
from tests.support.databases import Server

ROOT = Path(__file__).resolve().parents[3]
DURING = [sys.executable, "-m", "deploy.services.server", "during"]
VARIABLES = ("QUARRY_TEST_POSTGRESQL", "QUARRY_TEST_REDIS")
PRINT = "import json, os; print(json.dumps({name: os.environ[name] for name in %r})); raise SystemExit(7)"


def environment(**given: str) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in VARIABLES} | given


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def gone(port: int) -> bool:
    end = time.monotonic() + 30
    while listens(port) and time.monotonic() < end:
        time.sleep(0.05)
    return not listens(port)


def test_a_command_is_shown_where_both_are_and_they_end_with_it() -> None:
    command = [*DURING, sys.executable, "-c", PRINT % (VARIABLES,)]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False
    )
    variables = json.loads(done.stdout.splitlines()[-1])
    assert done.returncode == 7
    ports = [make_url(variables[name]).port for name in VARIABLES]
    assert all(port and not listens(port) for port in ports)
    assert make_url(variables["QUARRY_TEST_POSTGRESQL"]).drivername == "postgresql+psycopg"


def test_a_server_that_the_environment_names_is_used_as_it_is() -> None:
    named = dict.fromkeys(VARIABLES, "redis://elsewhere")
    done = subprocess.run(
        [*DURING, sys.executable, "-c", PRINT % (VARIABLES,)],
        cwd=ROOT,
        env=environment(**named),
        capture_output=True,
        text=True,
        check=False,
    )
    assert json.loads(done.stdout) == named


def test_no_server_outlives_the_process_that_it_was_started_for() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)  # where root starts a server, it runs as another account
        given = {"QUARRY_TEST_POSTGRESQL": "postgresql://elsewhere", "TMPDIR": folder}
        with subprocess.Popen(
            [*DURING, "sleep", "60"],
            cwd=ROOT,
            env=environment(**given),
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            assert process.stdout
            port = int(process.stdout.readline().rpartition(":")[2])
            assert listens(port)
            os.killpg(process.pid, signal.SIGKILL)  # the server is in a session of its own
        assert gone(port)


def test_without_the_programs_one_is_informed_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(software, "CACHE", tmp_path)
    monkeypatch.setattr(software, "PACKAGES", {"no-such-server": "postgresql", "sh": "dash"})
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(SetupError, match=r"need postgresql\. .*sudo apt-get install postgresql$"):
        software.install()


def test_a_redis_keeps_address_and_password_when_it_is_stopped_or_killed() -> None:
    with Server(Redis) as server:
        url = server.url
        for end in (server.stop, server.kill):
            with redis.Redis.from_url(url) as client:
                assert client.ping()
            end()
            assert gone(server.service.port)
            server.start()
        assert server.url == url
        without = f"redis://127.0.0.1:{server.service.port}/0"
        with (
            redis.Redis.from_url(without) as client,
            pytest.raises(redis.AuthenticationError),
        ):
            client.ping()
    assert gone(server.service.port)
    assert not server.service.folder.exists()


def test_a_password_is_for_its_server_alone(tmp_path: Path) -> None:
    service = PostgreSql(folder=tmp_path / "here", port=1)
    service.folder.mkdir()
    path = service.write("password", "secret")
    assert path.stat().st_mode & 0o777 == 0o600
    assert service.password == "secret"
