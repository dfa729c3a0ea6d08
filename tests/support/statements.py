"""The statements that a database is asked, as its driver is given them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Engine, event


@contextmanager
def noted_statements(engine: Engine) -> Iterator[list[str]]:
    """Yield the statements that are executed in the block, with those that begin a transaction of SQLite."""
    statements: list[str] = []

    def note(*arguments: Any) -> None:
        statements.append(arguments[2])

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield statements
    finally:
        event.remove(engine, "before_cursor_execute", note)
