"""Serve the Quarry that everybody asks."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fastapi.testclient import TestClient

from backend.api.account_authentication import AccountCookies
from backend.cli.listening import Listening
from backend.cli.server import Owner, make_app
from backend.container import Container
from backend.settings import Settings
from backend.store.documents import document_sets
from backend.store.sync import sources
from backend.sync.foreground_run import sync
from connectors.access import PUBLIC, Readers
from tests.support.access_actors import ROLES, SERVICE, email_of
from tests.support.access_world import ADDRESS, World
from tests.support.accounts import add_person
from tests.support.document_sets import source as all_of
from tests.support.document_sets import values as make_set_values
from tests.support.models import MODEL_CACHE


@contextmanager
def make_world(path: Path) -> Iterator[World]:
    """Serve a Quarry with accounts, whose documents are of one person each."""
    with socket.socket() as closed:
        # Nothing listens there: the provider cannot be reached.
        closed.bind(("127.0.0.1", 0))
        yield from _serve(path, _make_container(path, closed.getsockname()[1]))


@contextmanager
def make_world_of_one(path: Path) -> Iterator[World]:
    """Serve a Quarry without accounts, for the person at the machine."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        yield from _serve_container(path, _make_container(path, closed.getsockname()[1]))


def _serve(path: Path, container: Container) -> Iterator[World]:
    for name, role in ROLES.items():
        add_person(container.database, email_of(name), role)
    for source in ("wiki", "vault"):
        _sync_folder(container, path / source, source)
    yield from _serve_container(path, container)


def _serve_container(path: Path, container: Container) -> Iterator[World]:
    empty = path / "empty"
    empty.mkdir()
    owner = Owner(container.sign_in.machine_secret, Readers.of(f"user:{email_of(SERVICE)}"))
    app = make_app(container, owner, Listening(address="127.0.0.1"))
    cookies = AccountCookies.of_machine(container.sign_in.machine_secret)
    with TestClient(app, base_url=ADDRESS, follow_redirects=False) as client:
        assert app.state.app_state.warmup.ready.wait(60)
        yield World(container, app, client, cookies, empty)


def _make_container(path: Path, closed_port: int) -> Container:
    values = {
        "home": path / "state",
        "models": MODEL_CACHE,
        "source_roots": str(path / "empty"),
        "oidc_issuer": f"http://127.0.0.1:{closed_port}",
        "oidc_client_id": "quarry",
        "oidc_client_secret": "secret",
    }
    return Container(Settings.model_validate(values))


def _sync_folder(container: Container, folder: Path, source: str) -> None:
    """Of the source `vault` nobody who asks reads anything."""
    folder.mkdir()
    readers = [*ROLES, SERVICE] if source == "wiki" else ["absent"]
    rules = "rules:\n"
    for name in readers:
        (folder / f"{name}.md").write_text("# Parental leave\n\nParents have 26 weeks of leave.\n")
        rules += f"  - match: {name}.md\n    readers: ['user:{email_of(name)}']\n"
    (folder / "access.yaml").write_text(rules)
    added = sources.add(container.database, source, "folder", {"path": str(folder)})
    _define_sets(container, added.name)
    connector, pipeline = container.sources.connector(added), container.sources.pipeline(added)
    assert list(sync(container.database, added, connector, pipeline))


def _define_sets(container: Container, source: str) -> None:
    """Let a set that is shown to everybody and one that is shown to nobody hold what those read who ask."""
    if source != "wiki":
        return
    for name, reader in (("policies", PUBLIC), ("reserves", f"user:{email_of('absent')}")):
        values = make_set_values(name, all_of(source), readers=frozenset({reader}))
        document_sets.add(container.database, values)
