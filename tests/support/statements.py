"""The statements that a database is asked, as its driver is given them."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Engine, event

_BACKGROUND = frozenset({"files", "research worker", "turns", "warm-up"})
"""Threads of a server that look into the database whether it is asked anything or not."""


@contextmanager
def noted_statements(engine: Engine) -> Iterator[list[str]]:
    """Yield the statements that are executed in the block, with those that begin a transaction of SQLite.

    What threads execute that serve no request is left out.
    """
    statements: list[str] = []

    def note(*arguments: Any) -> None:
        if threading.current_thread().name not in _BACKGROUND:
            statements.append(arguments[2])

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield statements
    finally:
        event.remove(engine, "before_cursor_execute", note)
