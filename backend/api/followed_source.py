"""A run is followed by somebody for as long as its source exists for them, and no longer."""

import time
from contextlib import aclosing
from dataclasses import dataclass

from anyio import to_thread
from fastapi import Request

from backend.api import problem_details
from backend.api.authentication import Authenticator
from backend.api.authorization import Permission, check_asker
from backend.api.dependencies import choose_sources
from backend.api.problem_details import Problem, problem
from backend.api.server_sent_events import Event, Events
from backend.api.sync_runs import SyncRun
from backend.schemas.system import ProblemDetails
from backend.store.database import Database
from backend.store.sync import sources
from backend.store.sync.sources import Source
from connectors.errors import ActionRequiredError, NotFoundError, TemporarilyUnavailableError

EVERY = 1.0
"""Seconds after which rights are read again while there is progress; before the end they are in any case."""
_GONE = problem(
    401, "You are not signed in any more, so this ends here.", "The sync goes on. Sign in again."
)


@dataclass(frozen=True, slots=True)
class SourceFollower:
    """Whoever has asked for a run of a source; the request is authenticated again while it is answered."""

    request: Request
    authenticator: Authenticator
    database: Database
    source: Source

    async def follow(self, run: SyncRun) -> Events:
        """Yield the events of the run, or the error that ends them."""
        checked = time.monotonic()
        async with aclosing(run.follow()) as events:
            async for event in events:
                if event.is_last or time.monotonic() - checked >= EVERY:
                    if refusal := await self._find_refusal():
                        yield Event("error", refusal)
                        return
                    checked = time.monotonic()
                yield event

    async def _find_refusal(self) -> ProblemDetails | None:
        try:
            await self._check()
        except Problem as refused:
            return refused.problem
        except (ActionRequiredError, TemporarilyUnavailableError) as error:
            return problem_details.from_error(error)
        return None

    async def _check(self) -> None:
        """Raise Problem or NotFoundError if the asker would be refused by now."""
        asker = await self.authenticator.authenticate(self.request)
        if asker is None:
            raise Problem(_GONE)
        check_asker(Permission.SOURCES, asker)
        name, choice = self.source.name, choose_sources(asker)
        found = await to_thread.run_sync(sources.find, self.database, name, choice)
        if found.id != self.source.id:
            raise NotFoundError(f"The source {name!r} was removed.")
