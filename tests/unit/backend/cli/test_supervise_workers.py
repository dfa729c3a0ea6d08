"""The processes of `quarry worker`: one a queue, kept going."""

import signal
import socket
import threading
import time
from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

from backend.cli import app, supervise_workers
from backend.cli.supervise_workers import SupervisedProcess, WorkerPlan
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


class Dead:
    """A process that has ended."""

    pid, exitcode, sentinel = 1, -9, -1

    def is_alive(self) -> bool:
        return False

    def close(self) -> None:
        """There is nothing of it."""


def test_a_process_that_dies_is_started_again_later_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, started = [0.0], list[float]()
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    class Fragile(SupervisedProcess):
        def _start(self) -> None:
            started.append(now[0])
            self.process = Dead()  # type: ignore[assignment]
            self._began = now[0]

    kept = Fragile(WorkerConfig(queue="index", concurrency=1))
    for second in range(200):
        now[0] = float(second)
        kept.keep_up()
    # Each dies at once, which is noticed a second later: 2, 4, 8, … s, and never more than a minute.
    assert [later - before for before, later in pairwise(started)] == [
        3.0, 5.0, 9.0, 17.0, 33.0, 61.0, 61.0,
    ]  # fmt: skip


def test_ctrl_c_ends_it_and_handlers_are_those_of_before() -> None:
    before = signal.getsignal(signal.SIGINT)
    with supervise_workers.until_signalled() as stopping:
        assert not stopping.is_set()
        signal.raise_signal(signal.SIGINT)
        assert stopping.is_set()
    assert signal.getsignal(signal.SIGINT) is before


def test_nothing_is_left_when_it_is_asked_to_end_before_it_began() -> None:
    stopping = threading.Event()
    stopping.set()
    kept = SupervisedProcess(WorkerConfig(queue="index", concurrency=1))
    supervise_workers.supervise([kept], stopping)
    assert kept.process is None


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
