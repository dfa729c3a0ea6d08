"""Who looks after a source, and who may be given it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from backend.access.people import PeopleService
from backend.access.roles import Role
from backend.cli import app
from backend.store import audit
from backend.store.database import Database, open_database
from backend.store.sync import sources
from connectors.errors import ConflictError, InvalidInputError, NotFoundError
from tests.support.accounts import add_person
from tests.support.databases import sqlite_in
from tests.support.store import Store, source_service, store_at

ANN, SAM, MIA = (f"{name}@example.com" for name in ("ann", "sam", "mia"))


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    with store_at(database_url) as store:
        add_people_and_sites(store.database)
        yield store


def add_people_and_sites(database: Database) -> None:
    for name in ("desk", "web"):
        site = {"url": f"https://{name}.example.com/", "readers": ["public"]}
        sources.add(database, name, "web", site)
    for email, role in ((ANN, Role.ADMIN), (SAM, Role.SOURCE_MANAGER), (MIA, Role.MEMBER)):
        add_person(database, email, role)


def test_a_source_is_given_to_a_person_and_back_to_the_admins(store: Store) -> None:
    service = source_service(store.database)
    assert service.status("desk").owner is None
    assert service.set_owner("desk", f" {SAM.upper()}").owner == SAM
    assert [one.owner for one in service.list_statuses()] == [SAM, None]
    assert service.set_owner("desk", None).owner is None
    entries = [one for one in audit.list_entries(store.database) if one.subject == "desk"]
    assert [(one.action, one.detail) for one in entries] == [
        ("set_owner", {"before": SAM, "after": "admins"}),
        ("set_owner", {"before": "admins", "after": SAM}),
    ]


@pytest.mark.parametrize(
    ("email", "refusal"),
    [
        (MIA, ConflictError),
        ("nobody@example.com", NotFoundError),
        ("nobody", InvalidInputError),
    ],
)
def test_only_who_can_look_after_sources_is_given_one(
    store: Store, email: str, refusal: type[Exception]
) -> None:
    service = source_service(store.database)
    service.set_owner("desk", SAM)
    with pytest.raises(refusal):
        service.set_owner("desk", email)
    assert service.status("desk").owner == SAM


def test_a_disabled_account_keeps_its_sources_and_is_given_none(store: Store) -> None:
    """The admins look after them too, and the person does again once the account is enabled."""
    service = source_service(store.database)
    service.set_owner("desk", SAM)
    PeopleService(store.database).disable(SAM)
    assert service.status("desk").owner == SAM
    with pytest.raises(ConflictError, match="disabled"):
        service.set_owner("web", SAM)


def test_the_owner_of_a_source_that_does_not_exist_is_not_set(store: Store) -> None:
    with pytest.raises(NotFoundError):
        source_service(store.database).set_owner("gone", SAM)


def test_the_terminal_changes_the_owner(tmp_path: Path) -> None:
    add_people_and_sites(open_database(sqlite_in(tmp_path)))
    cli = CliRunner(env={"QUARRY_HOME": str(tmp_path), "COLUMNS": "200"})

    def run(*arguments: str) -> str:
        return cli.invoke(app, ["sources", *arguments]).output

    assert run("owner", "desk", SAM) == f"desk is looked after by {SAM}.\n"
    assert f"desk: Looked after by {SAM}." in run()
    assert json.loads(run("owner", "desk", "--admins", "--json"))["owner"] is None
    assert "Looked after" not in run()
    assert "Give either an address or --admins" in run("owner", "desk")
    assert source_service(open_database(sqlite_in(tmp_path))).status("desk").owner is None
