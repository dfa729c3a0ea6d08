"""Whether an asker in a terminal may hold more than it says, asked of a SQLite database without the store, which takes longer to load than a search."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

_TABLES = ("memberships", "conjunctions", "group_members")


def holds_groups(file: Path) -> bool:
    """Return whether an asker of this database may hold more tokens than the asker's own."""
    return _ask(file, _read_presence)


def holds_files_of_owner(file: Path) -> bool:
    """Return whether the owner of the machine may have files of their own in this database."""
    return _ask(file, _read_file_presence)


def _ask(file: Path, read: Callable[[sqlite3.Connection], bool]) -> bool:
    if not file.exists():
        return False
    try:
        with closing(
            sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)
        ) as connection:
            return read(connection)
    except sqlite3.DatabaseError:
        return True  # Opening it in full waits for it, or says what is wrong.


def _read_presence(connection: sqlite3.Connection) -> bool:
    tables = _list_tables(connection)
    return any(
        connection.execute(f"SELECT EXISTS (SELECT 1 FROM {table})").fetchone()[0]
        for table in _TABLES
        if table in tables
    )


def _read_file_presence(connection: sqlite3.Connection) -> bool:
    query = "SELECT EXISTS (SELECT 1 FROM user_files WHERE person_id IS NULL)"
    if "user_files" not in _list_tables(connection):
        return False
    return bool(connection.execute(query).fetchone()[0])


def _list_tables(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
