"""The processes of `quarry worker`: one a queue, kept going."""

import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from backend.cli import app
from backend.cli.supervise_workers import WorkerPlan
from backend.worker.process import WorkerConfig


def test_each_queue_has_a_process_and_a_port_of_its_own() -> None:
    assert WorkerPlan(metrics_port=9100).worker_configs() == [
        WorkerConfig(queue="fetch", concurrency=8, metrics=("127.0.0.1", 9100)),
        WorkerConfig(queue="index", concurrency=1, metrics=("127.0.0.1", 9101)),
        WorkerConfig(queue="light", concurrency=2, metrics=("127.0.0.1", 9102)),
    ]
    assert WorkerPlan(queues=("index",), concurrency=3).worker_configs() == [
        WorkerConfig(queue="index", concurrency=3)
    ]


@pytest.mark.soak("slow")
def test_a_metrics_port_that_is_in_use_ends_all_with_a_clear_error(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = CliRunner().invoke(
            app,
            ["worker", "--queue", "light", "--metrics-port", str(port)],
            env={"QUARRY_HOME": str(tmp_path), "QUARRY_BROKER_URL": "redis://127.0.0.1:1/0"},
        )
    assert done.exit_code == 1
    assert "The light worker cannot run" in done.output
    assert f"Metrics cannot be served on 127.0.0.1:{port}: Address already in use" in (
        capfd.readouterr().err
    )
