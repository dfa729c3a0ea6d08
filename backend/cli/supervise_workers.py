"""`quarry worker` and `quarry beat`: one process for each queue and one for research, restarted when it dies."""

from dataclasses import dataclass

from backend.cli.supervised_processes import SupervisedProcess, supervise, until_signalled
from backend.settings import Settings
from backend.sync.wakeup_messages import QUEUES, Queue
from backend.worker.broker import Broker
from backend.worker.celery_worker import GRACE_SECONDS, run_beat, run_worker
from backend.worker.process import CONCURRENCY, LOG, WorkerConfig, start_logging
from backend.worker.research_work import run_research_worker
from connectors.errors import TemporarilyUnavailableError


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPlan:
    """The processes that `quarry worker` runs."""

    queues: tuple[Queue, ...] = QUEUES
    concurrency: int | None = None
    metrics_host: str = "127.0.0.1"
    metrics_port: int | None = None
    """The port of the first queue; the others use the next ports."""

    def worker_configs(self) -> list[WorkerConfig]:
        """Return one for each queue: fetching must not take the interpreter lock from indexing."""
        return [
            WorkerConfig(
                queue=queue,
                concurrency=self.concurrency or CONCURRENCY[queue],
                metrics=(self.metrics_host, self.metrics_port + number)
                if self.metrics_port is not None
                else None,
            )
            for number, queue in enumerate(self.queues)
        ]


def supervise_workers(settings: Settings, plan: WorkerPlan) -> None:
    """Run until Ctrl-C or SIGTERM.

    Raises:
        NotConfiguredError: no broker is set, or a worker cannot run with its settings.
    """
    broker = Broker(settings)
    start_logging()
    try:
        broker.check()
    except TemporarilyUnavailableError as error:
        LOG.warning("%s", error)  # the workers wait for it
    with until_signalled() as stopping:
        processes = [
            SupervisedProcess(f"{config.queue} worker", run_worker, (config,))
            for config in plan.worker_configs()
        ]
        if "light" in plan.queues:
            processes.append(SupervisedProcess("research worker", run_research_worker))
        supervise(processes, stopping, GRACE_SECONDS + 1)


def supervise_beat(settings: Settings, every: float) -> None:
    """Run until Ctrl-C or SIGTERM. Raises NotConfiguredError: no broker is set."""
    start_logging()
    with until_signalled() as stopping:
        run_beat(settings, stopping, every)
