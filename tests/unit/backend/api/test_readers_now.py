"""Rights are read again on the event loop, which may end with the server meanwhile."""

import asyncio
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from fastapi import Request

from backend.access.roles import Role
from backend.api.authorization import Asker
from backend.api.readers_now import make_readers_now
from backend.chat.rights_watch import ReadersNow
from backend.store.database import Database, open_database
from connectors.access import Readers
from connectors.errors import TemporarilyUnavailableError
from tests.support.databases import sqlite_in

ANN = Readers.of("user:ann@example.com")


class Authentication:
    """Recognizes everybody as Ann; or never answers."""

    def __init__(self, *, answers: bool) -> None:
        self.answers = answers
        self.is_asked = threading.Event()

    async def authenticate(self, request: Request) -> Asker | None:
        del request
        self.is_asked.set()
        if not self.answers:
            await asyncio.Event().wait()
        return Asker(kind="local", readers=ANN, role=Role.ADMIN)


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return open_database(sqlite_in(tmp_path))


async def _made(authentication: Authentication, database: Database) -> ReadersNow:
    return make_readers_now(Request({"type": "http"}), authentication, database)


def test_rights_are_read_from_a_thread(database: Database) -> None:
    async def ask() -> Readers | None:
        read = await _made(Authentication(answers=True), database)
        return await asyncio.to_thread(read)

    found = asyncio.run(ask())
    assert found is not None
    assert set(ANN.tokens) <= set(found.tokens)


def test_a_server_that_stops_meanwhile_is_said(database: Database) -> None:
    """What runs on the loop is cancelled when it ends."""
    authentication = Authentication(answers=False)
    with ThreadPoolExecutor(1) as threads:

        async def stop_while_asked() -> Future[Readers | None]:
            read = await _made(authentication, database)
            reading = threads.submit(read)
            await asyncio.to_thread(authentication.is_asked.wait)
            return reading

        reading = asyncio.run(stop_while_asked())
        with pytest.raises(TemporarilyUnavailableError):
            reading.result()


def test_a_server_that_has_stopped_is_said(database: Database) -> None:
    read = asyncio.run(_made(Authentication(answers=True), database))
    with pytest.raises(TemporarilyUnavailableError, match="cannot check what you may read"):
        read()
