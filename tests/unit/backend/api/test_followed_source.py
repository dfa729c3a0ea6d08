"""Whoever follows the sync of a source is told no more of it once it is not theirs, or they are nobody any more."""

import asyncio
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from fastapi import Request

from backend.access.people import PeopleService
from backend.access.roles import Role
from backend.api import followed_source
from backend.api.app import create_app
from backend.api.authorization import Asker
from backend.api.followed_source import SourceFollower
from backend.api.server_sent_events import Event
from backend.api.sync_runs import SyncRun
from backend.container import Container
from backend.store.accounts import people
from backend.store.database import Database
from backend.store.sync import sources
from backend.store.sync.sources import Source
from connectors.access import Readers
from indexing.ingestion.progress import Progress, Report
from tests.support.accounts import add_person
from tests.support.serving import events
from tests.unit.backend.api.conftest import SOURCE, make_container, ready
from tests.unit.backend.api.test_sync_runs import Steps

ANN, SAM, TOM = (f"{name}@example.com" for name in ("ann", "sam", "tom"))
SITE = {"url": "https://example.com/", "readers": ["public"]}
REQUEST = Request({"type": "http", "headers": []})
SOON = 30.0


@dataclass(frozen=True)
class SessionOf:
    """An authenticator with one session, of somebody who may be disabled."""

    database: Database
    email: str

    async def authenticate(self, request: Request) -> Asker | None:
        del request
        person = people.get_by_email(self.database, self.email)
        if person.disabled_at is not None:
            return None
        return Asker(kind="session", readers=Readers.of(), role=Role(person.role), person=person)


@pytest.fixture
def database(tmp_path: Path) -> Database:
    database = make_container(tmp_path).database
    add_person(database, ANN, Role.ADMIN)
    for email in (SAM, TOM):
        add_person(database, email, Role.SOURCE_MANAGER)
    return database


@pytest.fixture
def source(database: Database) -> Source:
    owner = people.get_by_email(database, SAM).id
    return sources.add(database, "own", "web", SITE, owner_id=owner)


def _give_away(database: Database) -> None:
    sources.set_owner(database, "own", people.get_by_email(database, TOM).id)


def _replace(database: Database) -> None:
    source = sources.find(database, "own")
    sources.remove(database, "own")
    owner = people.get_by_email(database, SAM).id
    assert sources.add(database, "own", "web", SITE, owner_id=owner).id != source.id


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (lambda database: PeopleService(database).disable(SAM), 401),
        (lambda database: PeopleService(database).set_role(SAM, Role.MEMBER), 403),
        (_give_away, 404),
        (_replace, 404),
    ],
)
@pytest.mark.parametrize("every", [0.0, 3_600.0])
def test_who_may_not_follow_any_more_is_told_no_more(
    database: Database,
    source: Source,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Database], None],
    status: int,
    every: float,
) -> None:
    """Whether rights are read again before the next step, or only before the end."""
    monkeypatch.setattr(followed_source, "EVERY", every)
    steps = Steps(3)
    run = SyncRun(source.name, steps)
    follower = SourceFollower(REQUEST, SessionOf(database, SAM), database, source)

    async def follow() -> list[Event]:
        following = follower.follow(run)
        steps.let(1)
        seen = [await anext(following)]
        change(database)
        steps.let(1 if every == 0.0 else 2)
        return seen + [event async for event in following]

    first, *_, last = asyncio.run(asyncio.wait_for(follow(), SOON))
    assert (first.name, last.name) == ("progress", "error")
    assert getattr(last.data, "status", None) == status
    steps.let(1)
    run.join(SOON)
    assert run.is_over  # the sync itself went on


def test_whose_source_it_stays_is_told_the_end(database: Database, source: Source) -> None:
    def steps() -> Generator[Progress | Report, None, None]:
        yield Report(documents=2)

    run = SyncRun(source.name, steps)
    for email in (SAM, ANN):
        follower = SourceFollower(REQUEST, SessionOf(database, email), database, source)

        async def follow(follower: SourceFollower) -> list[str]:
            return [event.name async for event in follower.follow(run)]

        assert asyncio.run(asyncio.wait_for(follow(follower), SOON)) == ["done"]


@dataclass
class Once:
    """An authenticator whose token is revoked after its first request began."""

    asked: list[Request] = field(default_factory=list)

    async def authenticate(self, request: Request) -> Asker | None:
        self.asked.append(request)
        is_first = len(self.asked) == 1
        return Asker(kind="local", readers=Readers.of(), role=Role.ADMIN) if is_first else None


def test_the_route_authenticates_again(container: Container) -> None:
    with ready(create_app(container, Once())) as client:
        answer = client.post(f"/api/sources/{SOURCE}/sync")
    last = list(events(answer.text.splitlines()))[-1]
    assert (last.name, last.data["status"]) == ("error", 401)
