"""`quarry serve --processes N`: processes that serve one port, and one that syncs.

They share the socket, so that one that is idle takes the next connection. What they know of each other lies in the
database and in the folder that they share (`ServerProcesses`); the supervisor does nothing but keep them running.
"""

import asyncio
import signal
import socket
import threading
import time
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.synchronize import Semaphore

from backend.api.access_log import log_start
from backend.api.server_processes import SYNC_WORKER, ServerProcesses, make_shared_folder
from backend.cli import command_line
from backend.cli.listening import Listening
from backend.cli.server import (
    BACKLOG,
    SYNC_GRACE,
    Owner,
    Server,
    announce,
    end_process,
    log_requests,
    make_app,
    syncs_by_itself,
)
from backend.cli.supervised_processes import (
    SPAWNING,
    SupervisedProcess,
    supervise,
    until_signalled,
)
from backend.container import Container
from backend.research.runs.research_workers import ResearchWorkers
from backend.settings import Settings, for_one_of_several, share_metrics
from backend.sync.due_work import Engine
from backend.sync.prometheus_metrics import StageMetrics
from backend.sync.run_lease import StallLimit
from backend.sync.worker_threads import WorkerThreads
from backend.worker.logs import configure_logging
from backend.worker.process import ContainerProvider, watch_parent
from backend.worker.research_work import make_research_work

_KILL_AFTER = 4.5
"""Seconds after which a process that was asked to end is killed; more than it needs by itself."""
_LOOK = 0.05
_ACCEPTED_AT_ONCE = 1
"""Connections that a process takes in one turn of its event loop; the others are for the others."""


@dataclass(frozen=True, slots=True)
class ServerPlan:
    """What a process that serves is given."""

    processes: ServerProcesses
    bound: socket.socket
    owner: Owner
    listening: Listening
    log_level: int
    first: Semaphore
    """Acquired by the first process, which accepts connections at once."""
    announcement: Semaphore
    """Acquired by the process that says where the server is."""


def serve_by_processes(
    settings: Settings,
    bound: socket.socket,
    owner: Owner,
    listening: Listening,
    log_level: int,
    count: int,
) -> None:
    """Serve by so many processes until Ctrl-C or SIGTERM, then end all of them within seconds.

    Raises:
        NotConfiguredError: a process cannot run with its settings.
    """
    configure_logging()
    log_requests(log_level)
    log_start()
    # Clients that come before the first process is ready wait instead of being refused.
    bound.listen(BACKLOG)
    first, announcement = SPAWNING.Semaphore(1), SPAWNING.Semaphore(1)
    with make_shared_folder() as folder, until_signalled() as stopping:
        share_metrics(folder)
        supervised = [
            SupervisedProcess(each.name, run_server, (plan,))
            for each in (ServerProcesses(folder, f"server {n}") for n in range(1, count + 1))
            for plan in [ServerPlan(each, bound, owner, listening, log_level, first, announcement)]
        ]
        if syncs_by_itself(settings):
            processes = ServerProcesses(folder, SYNC_WORKER)
            supervised.append(SupervisedProcess(SYNC_WORKER, run_sync_worker, (processes,)))
        supervise(supervised, stopping, _KILL_AFTER)


def run_server(plan: ServerPlan) -> None:
    """Serve in this process, until it is terminated or its supervisor has died."""
    _begin(plan.processes)
    log_requests(plan.log_level)
    container = Container(for_one_of_several(Settings()))
    server = SharedSocketServer(plan, container)
    watch_parent(server.end)
    server.run([Listener.of(plan.bound)])
    end_process(command_line.console(), server.unfinished())


def run_sync_worker(processes: ServerProcesses) -> None:
    """Sync the sources and work on research in this process, until it is terminated or its supervisor has died."""
    _begin(processes)
    stopping, settings = threading.Event(), Settings()

    def stop(number: int, frame: object) -> None:
        del number, frame
        stopping.set()

    signal.signal(signal.SIGTERM, stop)
    watch_parent(stopping.set)
    containers = ContainerProvider(settings)
    engine = Engine(
        lambda: containers().sources,
        bound=StallLimit(still=timedelta(minutes=settings.still_minutes)),
        measure=StageMetrics(),
    )
    workers = WorkerThreads(engine, _is_ready)
    work = make_research_work(containers, lambda: containers.database, settings.research_at_once)
    research = ResearchWorkers(work, _is_ready)
    workers.start()
    research.start()
    while not stopping.is_set():
        time.sleep(_LOOK)
    research.give_back()
    ended = workers.stop(SYNC_GRACE)
    end_process(command_line.console(), [] if ended else ["the workers"])


class SharedSocketServer(Server):
    """The server of one of several processes.

    One process accepts connections at once, to say what the server waits for; each other one, and one that is
    started again, when it is ready, so that no request waits for it that another process could answer.
    """

    def __init__(self, plan: ServerPlan, container: Container) -> None:
        app = make_app(container, plan.owner, plan.listening, plan.processes)
        super().__init__(app, plan.listening, _ACCEPTED_AT_ONCE)
        self._plan = plan
        self._container = container

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        is_first = self._plan.first.acquire(block=False)
        warmup = self.state.warmup
        warmup.start()
        while not (is_first or warmup.is_settled or self.should_exit):
            await asyncio.sleep(_LOOK)
        await super().startup(sockets)
        if sockets and self._plan.announcement.acquire(block=False):
            announce(command_line.console(), sockets[0], self._plan.owner, self._container)

    def end(self) -> None:
        self.should_exit = True


class Listener(socket.socket):
    """A socket whose queue of connections is long, however few are accepted at once."""

    @classmethod
    def of(cls, bound: socket.socket) -> "Listener":
        return cls(bound.family, bound.type, bound.proto, bound.detach())

    def listen(self, backlog: int = BACKLOG, /) -> None:
        # The event loop gives the number of connections that it accepts in one turn.
        super().listen(max(backlog, BACKLOG))


def _begin(processes: ServerProcesses) -> None:
    configure_logging(processes.name)
    processes.register()


def _is_ready(seconds: float) -> bool:
    """Return True: the parts of the process are opened by the work that needs them."""
    del seconds
    return True
