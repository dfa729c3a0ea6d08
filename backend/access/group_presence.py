"""Whether a SQLite database holds any group, asked without the store, which takes longer to load than a search."""

import sqlite3
from contextlib import closing
from pathlib import Path

_TABLES = ("memberships", "conjunctions", "group_members")


def holds_groups(file: Path) -> bool:
    """Return whether an asker of this database may hold more tokens than the asker's own."""
    if not file.exists():
        return False
    try:
        with closing(
            sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)
        ) as connection:
            return _read_presence(connection)
    except sqlite3.DatabaseError:
        return True  # Opening it in full waits for it, or says what is wrong.


def _read_presence(connection: sqlite3.Connection) -> bool:
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    return any(
        connection.execute(f"SELECT EXISTS (SELECT 1 FROM {table})").fetchone()[0]
        for table in _TABLES
        if table in tables
    )
