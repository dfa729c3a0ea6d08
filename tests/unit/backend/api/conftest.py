"""A Quarry of a few documents, and its API without a socket."""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from fastapi.routing import iter_route_contexts
from fastapi.testclient import TestClient

from backend.access.api_tokens import find_valid_token
from backend.api.app import Api, create_app
from backend.api.authentication import MachineAuthenticator
from backend.api.authorization import Permission, get_permission
from backend.api.dependencies import AppState
from backend.container import Container
from backend.settings import Settings
from backend.store.sync import sources
from backend.sync.foreground_run import sync
from connectors.access import Readers
from tests.support.databases import sqlite_in
from tests.support.models import MODEL_CACHE

FILES = {
    "leave.md": "# Parental leave\n\nParents have 26 weeks of paid leave.\n",
    "travel.md": "# Travel\n\nFirst class is for journeys above four hours.\n",
    "plain.txt": "The bike cage is next to the loading bay.\n",
    "page.html": "<meta name=author content='Ann Lee &lt;Ann@example.com&gt;'><h1>Scanner codes</h1><p>QX-4031 means that the interlock is open.</p>",
    "notes/original": "A note that is named so.\n",
    "finance/pay.md": "---\nauthor: Mole\n---\n# Salary bands\n\nA senior engineer is in band five.\n",
    "access.yaml": (
        "rules:\n"
        "  - match: finance/**\n    readers: [group:finance]\n"
        '  - match: "**"\n    readers: [public]\n'
    ),
}
SOURCE = "wiki"
ADDRESS = "http://127.0.0.1:8321"


def write_files(folder: Path) -> None:
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def make_container(home: Path, **settings: object) -> Container:
    """Of a new home, whose database is already up to date; of one that has a database, that one's."""
    state = home / "state"
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    sqlite_in(state)
    chosen = {"home": state, "models": MODEL_CACHE, **settings}
    return Container(Settings.model_validate(chosen))


def connected(container: Container, folder: Path) -> None:
    source = sources.add(container.database, SOURCE, "folder", {"path": str(folder)})
    steps = sync(
        container.database,
        source,
        container.sources.connector(source),
        container.sources.pipeline(source),
    )
    assert list(steps)


@dataclass(frozen=True)
class PoolRecord:
    """Counts by pool what one reports of requests."""

    entered: Counter[str] = field(default_factory=Counter)
    turned_away: Counter[str] = field(default_factory=Counter)

    def waited(self, pool: str, seconds: float) -> None:
        assert seconds >= 0
        self.entered[pool] += 1

    def refused(self, pool: str) -> None:
        self.turned_away[pool] += 1


@contextmanager
def client_of(container: Container, *tokens: str) -> Iterator[TestClient]:
    """As a browser on this machine would address it, once it is ready."""
    with ready(api(container, *tokens)) as client:
        yield client


@contextmanager
def ready(app: Api) -> Iterator[TestClient]:
    with TestClient(app, base_url=ADDRESS, headers=authorization(app)) as client:
        assert app.state.app_state.warmup.ready.wait(60), app.state.app_state.warmup.status()
        yield client


def api(container: Container, *tokens: str) -> Api:
    return create_app(container, owner(container, *tokens))


def owner(container: Container, *tokens: str) -> MachineAuthenticator:
    return MachineAuthenticator(
        container.sign_in.machine_secret,
        Readers.of(*tokens),
        lambda given: find_valid_token(container.database, given),
    )


def authorization(app: Api) -> dict[str, str]:
    """The header that programs of the owner send."""
    state: AppState = app.state.app_state
    return {"Authorization": f"Bearer {state.current.container.sign_in.machine_secret.value}"}


def list_requests(app: Api) -> Iterator[tuple[str, str, Permission | None]]:
    """Every method and path of the router, with the rule of its route."""
    names = {"name": SOURCE, "document_id": f"{SOURCE}:leave.md", "number": "1", "version": "0"}
    names |= {"person_id": "1", "group_id": "1", "action": "x", "message_id": "1"}
    for context in iter_route_contexts(app.routes):
        route = context.original_route
        path = re.sub(
            r"\{(\w+)(?::\w+)?\}",
            lambda found: names.get(found[1], "x"),
            getattr(route, "path", ""),
        )
        for method in getattr(route, "methods", None) or ("GET",):
            yield method, path, get_permission(getattr(route, "endpoint", None))


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files; to be left as they are."""
    path = tmp_path_factory.mktemp("files")
    write_files(path)
    return path


@pytest.fixture(scope="session")
def container(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Container:
    made = make_container(tmp_path_factory.mktemp("home"))
    connected(made, folder)
    return made


@pytest.fixture(scope="session")
def client(container: Container) -> Iterator[TestClient]:
    with client_of(container) as client:
        yield client
