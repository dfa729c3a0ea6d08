"""What the errors of SQLite and PostgreSQL mean, sorted by what the caller can do."""

import re
import sqlite3
from datetime import timedelta

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

from connectors.errors import (
    DamagedDataError,
    NotConfiguredError,
    QuarryError,
    TemporarilyUnavailableError,
)

PATIENCE_SECONDS = 30
"""For a lock that another transaction holds."""


def to_product_error(error: DBAPIError) -> QuarryError | None:
    """Return None for a mistake of the program, which is no error of the database."""
    if isinstance(error.orig, sqlite3.Error):
        return _sqlite_error(error.orig)
    if (state := getattr(error.orig, "sqlstate", None)) is not None:
        return _postgresql_error(state, _message(error))
    if isinstance(error, OperationalError | InterfaceError) or error.connection_invalidated:
        return _connection_error(_message(error))
    return None


def _message(error: DBAPIError) -> str:
    return " ".join(str(error.orig).split()).rstrip(".")


def _sqlite_error(error: sqlite3.Error) -> QuarryError | None:
    if isinstance(error, sqlite3.OperationalError) and re.search(r"locked|busy", str(error)):
        return _held_too_long()
    if isinstance(error, sqlite3.OperationalError):
        return NotConfiguredError(
            f"The database cannot be used: {error}. Check that its folder can be written to,"
            " that the disk has room, and QUARRY_DATABASE_URL if it is set."
        )
    if type(error) is sqlite3.DatabaseError:
        return DamagedDataError(
            f"The database is damaged: {error}. Put back a copy of it, or move it away and sync"
            " again."
        )
    return None


def _postgresql_error(state: str, words: str) -> QuarryError | None:
    """Sort by SQLSTATE; PostgreSQL's manual lists the codes in its appendix A."""
    match state[:2], state:
        case _, "55P03":
            return _held_too_long()
        case _, "40001" | "40P01":
            return TemporarilyUnavailableError(
                f"Two transactions conflicted ({words}).",
                retry_after=timedelta(seconds=1),
            )
        case ("08" | "57", _) | (_, "53300" | "25P03"):
            return _away(words)
        case "28" | "3D", _:
            return _refused(words)
        case _, "42501":
            return NotConfiguredError(
                f"Quarry's user lacks a privilege in PostgreSQL: {words}. Make that user the owner of the"
                " database: ALTER DATABASE name OWNER TO user."
            )
        case "53", _:
            return NotConfiguredError(
                f"PostgreSQL has run out of a resource: {words}. Raise its limit."
            )
        case _:
            return None


def _connection_error(words: str) -> QuarryError:
    """Sort by message: without a connection there is no SQLSTATE."""
    if re.search(_REFUSALS, words):
        return _refused(words)
    return _away(words)


_REFUSALS = (
    r"authentication failed|no password supplied|pg_hba\.conf|(role|database) .* does not exist"
    r"|invalid (connection|URI|port|sslmode)|certificate|does not support SSL|SSL was required"
)


def _held_too_long() -> TemporarilyUnavailableError:
    return TemporarilyUnavailableError(
        "Another process has held the database for too long.",
        retry_after=timedelta(seconds=PATIENCE_SECONDS),
    )


def _away(words: str) -> TemporarilyUnavailableError:
    return TemporarilyUnavailableError(
        f"The database does not answer: {words}. If this persists, check that PostgreSQL runs at the"
        " address in QUARRY_DATABASE_URL.",
        retry_after=timedelta(seconds=10),
    )


def _refused(words: str) -> NotConfiguredError:
    return NotConfiguredError(
        f"PostgreSQL refused the connection: {words}. Correct the user, the password or the database"
        " in QUARRY_DATABASE_URL."
    )
