"""Research over HTTP: a home with accounts, a model that answers only from what it is sent, and the threads that work on runs."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from fastapi.testclient import TestClient

from backend.access.api_tokens import ApiTokenService, TokenScope
from backend.api.account_authentication import AccountCookies, AccountPresence
from backend.api.app import Api, create_app
from backend.cli.server import Owner, make_authenticator
from backend.container import Container
from backend.research.runs.research_workers import ResearchWorkers
from backend.store.accounts import people
from backend.store.accounts.people import Person
from backend.worker.research_work import make_research_work
from connectors.access import Readers
from tests.support.research_world import ResearchModel, name_prompt
from tests.support.scripted_model import Reply, Request
from tests.support.serving import Event, events

BASE = "/api/research"
SOON = 30.0
ENDED = {"done", "stopped", "failed"}


@dataclass
class HeldModel:
    """A model of research that waits, before it answers a prompt of some name, until it is let go on."""

    model: ResearchModel = field(default_factory=ResearchModel)
    prompt: str | None = None
    held: threading.Event = field(default_factory=threading.Event)
    let_go: threading.Event = field(default_factory=threading.Event)

    def __call__(self, request: Request) -> Reply:
        if name_prompt(request) == self.prompt:
            self.held.set()
            assert self.let_go.wait(SOON)
        return self.model(request)

    def hold(self, prompt: str) -> None:
        self.held.clear()
        self.let_go.clear()
        self.prompt = prompt

    def release(self) -> None:
        self.prompt = None
        self.let_go.set()


@contextmanager
def serve(container: Container) -> Iterator[Api]:
    """A server process of people with accounts, from when it is ready until it has stopped."""
    secret = container.sign_in.machine_secret
    cookies = AccountCookies.of_machine(secret)
    accounts = AccountPresence(lambda: people.has_people(container.database))
    authenticator = make_authenticator(
        lambda: container.database, Owner(secret, Readers.of()), cookies, accounts
    )
    app = create_app(container, authenticator)
    with TestClient(app, base_url="http://127.0.0.1:8321"):
        assert app.state.app_state.warmup.ready.wait(60)
        yield app


@contextmanager
def work(container: Container, app: Api | None = None, at_once: int = 2) -> Iterator[None]:
    """Threads that work on runs, as those of a process do."""
    work = make_research_work(
        lambda: container,
        lambda: container.database,
        at_once,
        app.state.app_state.turns.news.announce if app else lambda _: None,
    )
    workers = ResearchWorkers(work, lambda _: True, pause=0.02)
    workers.start()
    try:
        yield
    finally:
        assert workers.stop(SOON)


def client_of(app: Api, container: Container, person: Person | None) -> TestClient:
    """A client with a token of somebody's own."""
    service = ApiTokenService(container.database, owner=person)
    name = f"token-{time.monotonic_ns()}"
    given = service.create(name, [TokenScope.ASK], timedelta(days=1))
    headers = {"Authorization": f"Bearer {given}"}
    return TestClient(app, base_url="http://127.0.0.1:8321", headers=headers)


def start(client: TestClient, question: str, **body: object) -> str:
    begun = client.post(BASE, json={"question": question, "confirm": False, **body})
    assert begun.status_code == 202, begun.text
    return str(begun.json()["run"]["id"])


def follow(client: TestClient, run_id: str, after: int = 0) -> list[Event]:
    headers = {"Last-Event-ID": str(after)} if after else {}
    answer = client.get(f"{BASE}/{run_id}/events", headers=headers)
    assert answer.status_code in {200, 204}, answer.text
    return list(events(answer.text.splitlines()))


def open_run(client: TestClient, run_id: str) -> Any:
    answer = client.get(f"{BASE}/{run_id}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def wait_for_state(client: TestClient, run_id: str, *states: str) -> Any:
    end = time.monotonic() + SOON
    while True:
        opened = open_run(client, run_id)
        if opened["run"]["state"] in states:
            return opened
        assert time.monotonic() < end, opened["run"]
        time.sleep(0.02)
