"""What the asker of a running request may read now, asked from a thread."""

import asyncio
from concurrent.futures import CancelledError
from datetime import timedelta

from fastapi import Request

from backend.access.shared_file_readers import resolve_to_open
from backend.api.authentication import Authenticator
from backend.chat.rights_watch import ReadersNow
from backend.store.database import Database
from connectors.access import Readers
from connectors.errors import TemporarilyUnavailableError

_PATIENCE = 30.0
"""Seconds to authenticate a request again."""
_PAUSE = timedelta(seconds=10)


def make_readers_now(
    request: Request, authenticator: Authenticator, database: Database
) -> ReadersNow:
    """Return what authenticates the request again; made on the event loop, called by another thread.

    That call raises `TemporarilyUnavailableError` where the event loop ends, as the server does, or does not answer.
    """
    loop = asyncio.get_running_loop()

    def read() -> Readers | None:
        again = authenticator.authenticate(request)
        try:
            asker = asyncio.run_coroutine_threadsafe(again, loop).result(_PATIENCE)
        except (CancelledError, TimeoutError) as error:
            raise _unavailable() from error
        except RuntimeError as error:  # the loop is closed, so that the coroutine never began
            again.close()
            raise _unavailable() from error
        return resolve_to_open(database, asker.readers, asker.owner) if asker else None

    return read


def _unavailable() -> TemporarilyUnavailableError:
    return TemporarilyUnavailableError(
        "The server cannot check what you may read now, so the answer ends here.", _PAUSE
    )
