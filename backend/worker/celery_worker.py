"""The processes of `quarry worker` and `quarry beat`: messages wake them, and the database decides what they do.

A task calls one function of the engine. Its message carries the id of a source and nothing else, so that a lost,
doubled or late one does no harm: `quarry beat` sends what is due every 15 seconds, and what is not due is not
done.
"""

import logging
import os
import signal
import socket
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from types import FrameType
from typing import Any

from celery import Celery, signals
from celery.apps.worker import Worker
from celery.exceptions import CPendingDeprecationWarning, SecurityWarning
from celery.worker import state

from backend.container import Container
from backend.settings import Settings
from backend.store.sync import runs, sources, workers
from backend.sync.due_work import Engine
from backend.sync.prometheus_metrics import StageMetrics, register_process_metrics, serve_metrics
from backend.sync.run_lease import ChangeNotifier, StallLimit, StoppedError, this_process
from backend.sync.wakeup_messages import Task, list_due
from backend.sync.worker_heartbeat import WorkerHeartbeat
from backend.worker.broker import BEAT_SECONDS, POLL_SECONDS, Broker, IndexWakeup
from backend.worker.process import (
    MISCONFIGURED,
    ContainerProvider,
    LogOnChange,
    WorkerConfig,
    start_logging,
    watch_parent,
)
from connectors.errors import ActionRequiredError, NotConfiguredError, TemporarilyUnavailableError
from indexing.runtime import malloc
from indexing.runtime.deadline import DeadlineExceededError

GRACE_SECONDS = 3.0
"""Seconds for current work once a worker stops; after that its leases are left to run out."""
_REST = 1.0
_LOOK_UP = 0.5
_STUCK = 70
"""The exit code of a process with a hung thread (EX_SOFTWARE)."""

LOG = logging.getLogger("quarry.worker")


class Tasks:
    """The tasks that messages start."""

    def __init__(self, engine: Engine, containers: ContainerProvider) -> None:
        self._engine = engine
        self._containers = containers
        self._updating_sets = threading.Lock()

    def register(self, app: Celery) -> None:
        tasks: tuple[tuple[Task, Callable[[int], None]], ...] = (
            ("fetch", self.fetch),
            ("index", self.index),
            ("light", self.light),
            ("sets", self.sets),
        )
        for name, task in tasks:
            app.task(name=f"quarry.{name}", shared=False)(_function(task))

    def fetch(self, source: int) -> None:
        self._do(source, self._engine.fetch_due)

    def light(self, source: int) -> None:
        self._do(source, self._engine.light_due)

    def sets(self, source: int) -> None:
        """Update the documents of the sets that were changed, one set after the other.

        One message at a time is worked on: the others would take the places of permission syncs.
        """
        del source
        if not self._updating_sets.acquire(blocking=False):
            return
        try:
            with log_errors():
                while self._engine.sets_due():
                    pass
        finally:
            self._updating_sets.release()

    def index(self, source: int) -> None:
        """Index all sources for as long as one is fetched: no message is needed meanwhile."""
        del source
        stopping, going_on = self._engine.stopping, True
        while going_on and not stopping.is_set():
            going_on = False
            with log_errors():
                self._engine.index_due(along=True)
            with log_errors():
                # Fetching goes on, although indexing failed or found nothing more.
                going_on = runs.any_in_stage(self._containers.database, "indexing")
            if going_on:
                stopping.wait(_REST)

    def _do(self, source: int, work: Callable[[str], bool]) -> None:
        with log_errors():
            name = sources.find_name(self._containers.database, source)
            if name is not None:
                work(name)


def _function(method: Callable[[int], None]) -> Callable[[int], None]:
    """Wrap a method as a function: Celery sets attributes, which a bound method does not allow."""

    def task(source: int) -> None:
        method(source)

    return task


@contextmanager
def log_errors() -> Iterator[None]:
    """Log the error that ends a task; its message is done, and the beat sends another one."""
    try:
        yield
    except StoppedError:
        LOG.info("Stopped; claimed work is given back.")
    except (ActionRequiredError, TemporarilyUnavailableError, DeadlineExceededError) as error:
        LOG.warning("A task failed: %s", error)
    except Exception:
        # A bug. The process continues, because other sources must not suffer from it.
        LOG.exception("A task failed with an internal error.")


class WorkerProcess:
    """A process that works on one queue, until it is stopped."""

    def __init__(self, config: WorkerConfig) -> None:
        settings = Settings()
        broker = Broker(settings)
        self._config = config
        self._containers = ContainerProvider(settings)
        self._stopping = threading.Event()
        self._notifier = (
            ChangeNotifier(POLL_SECONDS, IndexWakeup(broker).ring)
            if config.queue == "fetch"
            else ChangeNotifier(POLL_SECONDS)
        )
        metrics = StageMetrics()
        if config.metrics:
            register_process_metrics(metrics.registry)
            serve_metrics(*config.metrics, metrics.registry)
        engine = Engine(
            lambda: self._containers().sources,
            stopping=self._stopping,
            notifier=self._notifier,
            bound=StallLimit(still=timedelta(minutes=settings.still_minutes), stuck=self._stuck),
            measure=metrics,
        )
        Tasks(engine, self._containers).register(broker.app)
        self._worker = _worker(broker.app, config, self.end)

    def run(self) -> int:
        """Work until the process is stopped; return the exit code."""
        signing = WorkerHeartbeat(
            lambda: self._containers.database, self._config.queue, self._stopping
        )
        signing.start()
        watch_parent(self.end)
        self._worker.start()
        signing.join(GRACE_SECONDS)
        return self._worker.exitcode or 0

    def end(self, code: int = 0) -> None:
        """Give back what was claimed, and take nothing more; the process ends within seconds."""
        state.should_stop = code
        threading.Thread(target=_exit_soon, args=(code,), daemon=True).start()
        self._stopping.set()
        self._notifier.notify()

    def _stuck(self, thread: threading.Thread) -> None:
        """End the process, because its hung thread cannot be ended; the supervisor starts another one."""
        LOG.error("%s is hung; the process ends.", thread.name)
        self.end(_STUCK)


def run_worker(config: WorkerConfig) -> None:
    """Run a worker process."""
    malloc.limit_arenas()  # before there are threads
    start_logging()
    # Celery warns of running as root, which is harmless here: messages are JSON and carry no code.
    warnings.simplefilter("ignore", SecurityWarning)
    warnings.simplefilter("ignore", CPendingDeprecationWarning)
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # sent to the whole terminal; the supervisor sends SIGTERM
    try:
        code = WorkerProcess(config).run()
    except NotConfiguredError as error:
        LOG.error("%s", error)
        code = MISCONFIGURED
    except (ActionRequiredError, TemporarilyUnavailableError) as error:
        LOG.error("%s", error)
        code = 1
    raise SystemExit(code)


def run_beat(settings: Settings, stopping: threading.Event, every: float = BEAT_SECONDS) -> None:
    """Send the workers what is due, again and again. Raises NotConfiguredError: no broker is set."""
    broker, container, faults = Broker(settings), Container(settings), LogOnChange()
    LOG.info("Sending the workers what is due every %g seconds.", every)
    while not stopping.is_set():
        try:
            broker.call(list_due(container.database))
            faults.note(None)
        except (TemporarilyUnavailableError, ActionRequiredError) as error:
            faults.note(error)
        except Exception:
            LOG.exception("Sending what is due failed with an internal error.")
        with suppress(TemporarilyUnavailableError, ActionRequiredError):
            workers.register(container.database, this_process(), "beat", faults.trouble)
        stopping.wait(every)
    with suppress(TemporarilyUnavailableError, ActionRequiredError):
        workers.unregister(container.database, this_process())


def _worker(app: Celery, config: WorkerConfig, end: Callable[[], None]) -> Worker:
    # Celery must not replace the configuration of the log.
    signals.setup_logging.connect(_keep_logging, weak=False)
    unacknowledged = threading.Event()
    logging.getLogger("celery.worker.request").addFilter(_FailedAcknowledgements(unacknowledged))
    worker: Worker = _CeleryWorker(
        app=app,
        hostname=f"{config.queue}-{os.getpid()}@{socket.gethostname()}",
        pool_cls="threads",
        concurrency=config.concurrency,
        queues=[config.queue],
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        quiet=True,
    )
    worker.end = end
    worker.unacknowledged = unacknowledged
    return worker


class _CeleryWorker(Worker):  # type: ignore[misc]
    """Celery's worker, but SIGTERM gives the work back at once, where Celery would wait for its end."""

    end: Callable[[], None]
    looking: Any = None
    unacknowledged: threading.Event

    def install_platform_tweaks(self, worker: object) -> None:
        del worker
        signal.signal(signal.SIGTERM, self._terminate)

    def on_consumer_ready(self, consumer: Any) -> None:
        """Check often after each new connection: the event loop would sleep for seconds otherwise."""
        super().on_consumer_ready(consumer)
        if self.looking is not None:
            self.looking.cancel()
        self.unacknowledged.clear()
        self.looking = consumer.hub.call_repeatedly(_LOOK_UP, self.look_up)

    def look_up(self) -> None:
        """Reconnect after a failed acknowledgement: the message would block its slot for ever otherwise."""
        if self.unacknowledged.is_set():
            raise ConnectionError("A message could not be acknowledged.")

    def _terminate(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self.end()


class _FailedAcknowledgements(logging.Filter):
    """Notices failed acknowledgements, which Celery reports in its log alone."""

    def __init__(self, noticed: threading.Event) -> None:
        super().__init__()
        self._noticed = noticed

    def filter(self, record: logging.LogRecord) -> bool:
        failed = str(record.msg).startswith("Couldn't ack")
        if failed:
            self._noticed.set()
        return not failed


def _keep_logging(**options: object) -> None:
    del options


def _exit_soon(code: int) -> None:
    time.sleep(GRACE_SECONDS)
    LOG.error("Work did not stop in time; its leases will run out.")
    os._exit(code)
