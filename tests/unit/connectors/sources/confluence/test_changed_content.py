"""What each reader finds of a Confluence site, through runs of the engine, ledger and embedded index."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from backend.access.readers import resolve_readers
from backend.store.sync import runs, schedule
from backend.sync.due_work import Engine
from backend.sync.worker_threads import WorkerThreads
from connectors.access import Readers
from connectors.sources.confluence.connector import ConfluenceConnector
from connectors.sources.confluence.settings import ConfluenceCredential, ConfluenceSettings
from tests.support.databases import sqlite_in
from tests.support.office import Office
from tests.support.services.confluence import (
    EMAIL,
    TOKEN,
    ConfluenceService,
    Page,
    Profile,
    Restriction,
    Space,
)
from tests.support.services.confluence_cloud import CloudService
from tests.support.services.confluence_server import DataCenterService
from tests.support.services.serving import serve
from tests.support.store import store_at

SOON = 60.0
WORD = "cleaving"
"""In the text of every page."""


def _nothing() -> None:
    return


@dataclass(frozen=True)
class WikiOffice(Office):
    """For one source called wiki."""

    done_at: list[float] = field(default_factory=list)
    """When each run was seen to be done."""

    def found(self, *people: str) -> set[str]:
        """The titles of all that somebody who holds these tokens finds."""
        own = Readers.of(*(f"user:{one}@example.com" for one in people))
        readers = resolve_readers(self.database, own)
        return {one.title for one in self.chunks(WORD, readers)}

    def everyone(self) -> dict[str, set[str]]:
        """What each person finds; under the empty name, somebody whom nobody knows."""
        return {"": self.found()} | {one: self.found(one) for one in ("ann", "bob", "cy", "dee")}

    def ran(self, kind: str, then: Callable[[], None] = _nothing) -> None:
        """Have a run of that kind made by workers, and do that as soon as it is done."""
        if kind != "first":
            schedule.request_run(self.database, "wiki", kind)
        workers = WorkerThreads(Engine(lambda: self), _at_once, pause=0.05)
        workers.start()
        end = time.monotonic() + SOON
        while not self._is_done(kind) and time.monotonic() < end:
            time.sleep(0.01)
        self.done_at.append(time.monotonic())
        then()
        assert workers.stop(SOON)
        assert self._is_done(kind)

    def _is_done(self, kind: str) -> bool:
        latest = runs.history(self.database, "wiki")
        return bool(latest) and (latest[0].kind, latest[0].state) == (kind, "done")


def _at_once(seconds: float) -> bool:
    del seconds
    return True


def page(number: int, title: str, **values: Any) -> Page:
    return Page(id=number, title=title, body=f"<p>{title}: all about {WORD}.</p>", **values)


def site(kind: type[ConfluenceService]) -> ConfluenceService:
    """An open space, one of the staff with a tree of restricted pages, and one of the board."""
    wide = Space(id=1, key="OPEN", is_public=True)
    wide.put(
        page(101, "Opening hours"), page(102, "Draft", restriction=Restriction(people=("dee",)))
    )
    staff = Space(id=2, key="STAFF", groups=["staff"])
    staff.put(
        page(201, "Handbook"),
        page(
            202, "Pay", parent=201, restriction=Restriction(people=("bob",), groups=("managers",))
        ),
        page(203, "Pay of managers", parent=202, restriction=Restriction(people=("ann", "dee"))),
        page(204, "Pay, a table", parent=202),
        page(205, "Party", kind="blogpost"),
    )
    board = Space(id=3, key="BOARD", people=["cy"])
    board.put(page(301, "Minutes"))
    made = kind(wide, staff, board)
    names = {"ann": "Ann Lee", "bob": "Bob Ek", "cy": "Cy Oh", "dee": "Dee Um"}
    made.people = {
        short: Profile(name=name, email=f"{short}@example.com") for short, name in names.items()
    }
    made.groups = {"staff": ["ann", "bob", "dee"], "managers": ["ann", "cy"]}
    return made


def connector(service: ConfluenceService, url: str) -> ConfluenceConnector:
    where = {"kind": "cloud", "email": EMAIL} if service.is_cloud else {"kind": "data center"}
    begins = f"{url}{service.get_base_path()}"
    chosen = {"url": begins, "site": where, "private_hosts": ("127.0.0.1",)}
    credential = ConfluenceCredential(token=SecretStr(TOKEN))
    return ConfluenceConnector("wiki", 1, ConfluenceSettings.model_validate(chosen), credential)


@contextmanager
def office(service: ConfluenceService, folder: Path) -> Iterator[WikiOffice]:
    url = sqlite_in(folder)
    with serve(service) as server, store_at(url, "wiki") as store:
        yield WikiOffice(store, folder / "index", partial(connector, service, server.url))


@pytest.mark.parametrize("kind", [CloudService, DataCenterService], ids=["cloud", "server"])
def test_each_reader_finds_exactly_their_pages_and_others_once_restrictions_change(
    kind: type[ConfluenceService], tmp_path: Path
) -> None:
    service = site(kind)
    everybody = {"Opening hours"}
    staff = everybody | {"Handbook", "Party"}
    with office(service, tmp_path) as desk:
        desk.ran("first")
        assert desk.everyone() == {
            "": everybody,
            "ann": staff | {"Pay", "Pay of managers", "Pay, a table"},
            "bob": staff | {"Pay", "Pay, a table"},
            # she is a manager, but may not view the space of the staff
            "cy": everybody | {"Minutes"},
            # he is named by the inner restriction, but does not pass the outer one
            "dee": staff | {"Draft"},
        }
        embedded = len(desk.embedder.passages)
        service.spaces[1].change(202, restriction=Restriction(people=("dee",)))
        service.spaces[0].is_public = False
        seconds: list[float] = []

        def look() -> None:
            assert desk.found("dee") >= {"Pay", "Pay, a table"}
            assert desk.found("bob") == {"Handbook", "Party"}
            seconds.append(time.monotonic() - desk.done_at[-1])

        desk.ran("permissions", look)
        assert seconds[0] < 10
        assert desk.everyone() == {
            "": set(),
            "ann": {"Handbook", "Party"},
            "bob": {"Handbook", "Party"},
            "cy": {"Minutes"},
            "dee": {"Handbook", "Party", "Pay", "Pay of managers", "Pay, a table"},
        }
        assert len(desk.embedder.passages) == embedded
