"""`/api/admin/token-budgets` and `/api/admin/person-token-budgets`: the budgets of groups and of people, for admins alone."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import insert

from backend.access.groups import GroupService, get_group
from backend.access.roles import Role
from backend.access.token_budgets import MOST_TOKENS
from backend.container import Container
from backend.store import audit
from backend.store.llm import model_usage
from backend.store.llm.model_usage import TokenCounts
from backend.store.schema.tables import groups
from tests.support.accounts import add_person
from tests.unit.backend.api.conftest import client_of, make_container

BUDGETS = "/api/admin/token-budgets"
OF_PEOPLE = "/api/admin/person-token-budgets"
ANN = "ann@example.com"


@pytest.fixture
def container(tmp_path: Path) -> Container:
    return make_container(tmp_path)


@pytest.fixture
def client(container: Container) -> Iterator[TestClient]:
    with client_of(container) as client:
        yield client


def test_budgets_are_set_changed_listed_and_ended(container: Container, client: TestClient) -> None:
    database, service = container.database, GroupService(container.database)
    assert client.get(BUDGETS).json() == []
    for name in ("sales", "hr"):
        service.create(name)
    sales, hr = (get_group(database, name).id for name in ("sales", "hr"))
    with_budget = {"group_id": sales, "name": "sales", "members": 0, "tokens": 500, "used": 0}
    without = {"group_id": hr, "name": "hr", "members": 0, "tokens": 0, "used": 0}
    changed = client.put(f"{BUDGETS}/{sales}", json={"tokens": 500})
    assert (changed.status_code, changed.json()) == (200, with_budget)
    assert client.get(BUDGETS).json() == [without, with_budget]
    assert audit.list_entries(database, limit=1)[0].action == "set_token_budget"
    ended = client.put(f"{BUDGETS}/{sales}", json={"tokens": 0})
    assert ended.json() == with_budget | {"tokens": 0}


def test_a_group_of_a_provider_and_a_missing_one_are_the_same(
    container: Container, client: TestClient
) -> None:
    database = container.database
    with database.writing() as connection:
        of_provider = {"name": "staff", "origin": "https://idp.example.com"}
        connection.execute(insert(groups).values(of_provider))
    refused = client.put(f"{BUDGETS}/{get_group(database, 'staff').id}", json={"tokens": 5})
    missing = client.put(f"{BUDGETS}/999999", json={"tokens": 5})
    assert (refused.status_code, refused.json()) == (404, missing.json())
    assert client.get(BUDGETS).json() == []


@pytest.mark.parametrize("body", [{}, {"tokens": -1}, {"tokens": MOST_TOKENS + 1}, {"tokens": "x"}])
def test_what_is_no_budget_is_refused(
    container: Container, client: TestClient, body: dict[str, object]
) -> None:
    GroupService(container.database).create("hr")
    group = get_group(container.database, "hr").id
    assert client.put(f"{BUDGETS}/{group}", json=body).status_code == 422
    assert client.get(BUDGETS).json()[0]["tokens"] == 0


def test_budgets_of_people_are_set_changed_listed_and_ended(
    container: Container, client: TestClient
) -> None:
    database = container.database
    ann = add_person(database, ANN, Role.ADMIN)
    used = {"large": TokenCounts(input_tokens=60, output_tokens=10, calls=1)}
    model_usage.add(database, ann.id, datetime.now(UTC).date(), used)
    assert client.get(OF_PEOPLE).json() == []
    expected = {"email": ANN, "name": ann.name, "tokens": 500, "used": 70}
    changed = client.put(OF_PEOPLE, json={"email": " Ann@example.com", "tokens": 500})
    assert (changed.status_code, changed.json()) == (200, expected)
    assert client.get(OF_PEOPLE).json() == [expected]
    (entry,) = audit.list_entries(database, limit=1)
    assert (entry.action, entry.subject) == ("set_token_budget", f"user:{ANN}")
    assert dict(entry.detail) == {"before": None, "after": 500}
    ended = client.put(OF_PEOPLE, json={"email": ANN, "tokens": 0})
    assert ended.json() == expected | {"tokens": 0}
    assert client.get(OF_PEOPLE).json() == []
    # Those of groups are what they were.
    assert client.get(BUDGETS).json() == []


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"email": "nobody@example.com", "tokens": 5}, 404),
        ({"email": "nobody", "tokens": 5}, 422),
        ({"email": ANN}, 422),
        ({"email": ANN, "tokens": -1}, 422),
        ({"email": ANN, "tokens": MOST_TOKENS + 1}, 422),
        ({"email": ANN, "tokens": 5, "name": "Ann"}, 422),
    ],
)
def test_what_is_no_budget_of_a_person_is_refused(
    container: Container, client: TestClient, body: dict[str, object], status: int
) -> None:
    add_person(container.database, ANN, Role.ADMIN)
    assert client.put(OF_PEOPLE, json=body).status_code == status
    assert client.get(OF_PEOPLE).json() == []
