"""The scripted language model in a process of its own, so that it takes no turns with what is measured."""

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection

from tests.support.scripted_model import Reply, Request, ScriptedModel


def serve_model(says: Callable[[Request], Reply], other_end: Connection) -> None:
    """Serve the model until something is sent or the connection closes."""
    with ScriptedModel(says) as model:
        other_end.send(model.base_url)
        other_end.poll(None)


@contextmanager
def running_model(says: Callable[[Request], Reply]) -> Iterator[str]:
    """Run the model and yield its address; `says` is a function of a module, since it is imported there."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve_model, args=(says, theirs))
    process.start()
    try:
        yield ours.recv()
    finally:
        ours.send(None)
        process.join()
