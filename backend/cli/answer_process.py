"""Starts the process that writes answers for `quarry serve`."""

from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from backend.cli.supervised_processes import SPAWNING, without_interrupts
from backend.worker.answer_worker import run_answer_worker


def start_answer_process(connection: Connection) -> BaseProcess:
    """Start the process with its end of a pipe. It ends when the other end is closed."""
    process = SPAWNING.Process(
        target=run_answer_worker, args=(connection,), name="answers", daemon=True
    )
    with without_interrupts():
        process.start()
    return process
