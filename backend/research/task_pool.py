"""Run the tasks of a round side by side, each with its share of the budget."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import ceil
from queue import Empty, SimpleQueue
from typing import TypeAlias

from backend.research.agent.run_task import run_task
from backend.research.dependencies import (
    ResearchControl,
    ResearchDependencies,
    ResearchInterruptedError,
)
from backend.research.events import ResearchEvent, TaskDone
from backend.research.record.budget import TaskBudget
from backend.research.record.plan import ResearchTask
from backend.research.record.research_record import MAX_ROUNDS, ResearchRecord
from backend.research.record.task_report import TaskReport
from backend.research.step_time import StepTime, check_interrupted, ended_by

ROUND_SHARE = 0.6
"""Of what is left, for one round; the last one may have all."""
GRACE_SECONDS = 5.0
"""For an agent whose time is up, before it is given up."""
STOPPING_SECONDS = 10.0
"""For all agents to report what they have, once the run is stopped."""
LOST = "This task did not end in time."

_Ended: TypeAlias = "SimpleQueue[TaskReport | int]"


def run_pending_tasks(
    record: ResearchRecord, dependencies: ResearchDependencies, control: ResearchControl
) -> ResearchRecord:
    """Run the tasks that have no report yet, side by side; `control.save` is called after each.

    Of more tasks than there are steps left the first ones are run.
    What `save` raises ends the agents, and is raised.

    Raises:
        ResearchInterruptedError: the reports of the tasks that have ended are saved.
    """
    step = StepTime(record, control)
    with ended_by(control.interrupt) as interrupt:
        pool = _TaskPool(record, dependencies, replace(control, interrupt=interrupt), step)
        for report in pool.run():
            record = step.measure(record.with_report(report))
            control.save(record)
    check_interrupted(control)
    return record


def share_budget(record: ResearchRecord, tasks: int) -> TaskBudget:
    """Return what each of so many tasks may spend; those that cannot all work at once share the time too."""
    budget = record.request.budget
    left = budget.left_after(record.spent)
    share = ROUND_SHARE if record.rounds < MAX_ROUNDS else 1.0
    waves = ceil(tasks / max(1, budget.parallel_tasks))
    of_round = replace(
        left, tokens=int(left.tokens * share), seconds=left.seconds * share / max(1, waves)
    )
    return of_round.share(tasks)


def _choose_tasks(record: ResearchRecord) -> tuple[ResearchTask, ...]:
    """Return as many tasks as can take a step each; all where none can, so that each says why."""
    pending = record.pending_tasks
    return pending[: record.request.budget.left_after(record.spent).cycles] or pending


class _TaskEvents:
    """Passes on the events of a task, one at a time among all tasks, until it is given up."""

    def __init__(self, emit: Callable[[ResearchEvent], None], lock: threading.Lock) -> None:
        self._emit = emit
        self._lock = lock
        self._is_open = True

    def pass_on(self, event: ResearchEvent) -> None:
        with self._lock:
            if self._is_open:
                self._emit(event)

    def close(self) -> None:
        with self._lock:
            self._is_open = False


class _TaskPool:
    """Threads are daemons: one that never ends holds up neither the run nor the process."""

    def __init__(
        self,
        record: ResearchRecord,
        dependencies: ResearchDependencies,
        control: ResearchControl,
        step: StepTime,
    ) -> None:
        self._record = record
        self._dependencies = dependencies
        self._control = control
        self._tasks = _choose_tasks(record)
        self._budget = share_budget(record, len(self._tasks))
        self._waiting: SimpleQueue[ResearchTask] = SimpleQueue()
        self._ended: _Ended = SimpleQueue()
        lock = threading.Lock()
        self._events = {one.number: _TaskEvents(control.emit, lock) for one in self._tasks}
        self._ends_at = time.monotonic() + step.left.seconds + GRACE_SECONDS

    def run(self) -> Iterator[TaskReport]:
        """Yield the reports as they come, and then one for each task that did not end in time."""
        for task in self._tasks:
            self._waiting.put(task)
        most = self._record.request.budget.parallel_tasks
        for _ in range(min(max(1, most), len(self._tasks))):
            threading.Thread(target=self._work, daemon=True).start()
        left = {task.number: task for task in self._tasks}
        while left and (ended := self._wait()) is not None:
            if isinstance(ended, TaskReport):
                del left[ended.task.number]
                yield ended
            else:
                yield self._give_up(left.pop(ended))
        check_interrupted(self._control)
        for task in left.values():
            yield self._give_up(task)

    def _wait(self) -> TaskReport | int | None:
        """Return what has ended; None where the time is up."""
        stop, interrupt = self._control.stop, self._control.interrupt
        stopped_at: float | None = None
        while not interrupt.is_cancelled:
            if stop.is_cancelled and stopped_at is None:
                stopped_at = time.monotonic() + STOPPING_SECONDS
            ends_at = min(self._ends_at, stopped_at or self._ends_at)
            try:
                return self._ended.get(timeout=min(0.2, max(0.0, ends_at - time.monotonic())))
            except Empty:
                if time.monotonic() >= ends_at:
                    return None
        return None

    def _work(self) -> None:
        """Take one task after another, until none is left."""
        while True:
            try:
                task = self._waiting.get_nowait()
            except Empty:
                return
            self._run(task)

    def _run(self, task: ResearchTask) -> None:
        # A mistake in the program ends the thread, which reports it, and the task all the same.
        outcome: TaskReport | int = task.number
        control = replace(self._control, emit=self._events[task.number].pass_on)
        try:
            outcome = run_task(self._record, task, self._budget, self._dependencies, control)
        except ResearchInterruptedError:
            return
        finally:
            self._ended.put(outcome)

    def _give_up(self, task: ResearchTask) -> TaskReport:
        self._events[task.number].close()
        report = TaskReport.of_failure(task, LOST)
        self._control.emit(TaskDone(report))
        return report
