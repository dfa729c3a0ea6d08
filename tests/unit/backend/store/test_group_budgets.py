"""The budgets of groups: what is used of each, and how much it takes to ask."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, date, datetime, timedelta

import pytest
from sqlalchemy import insert

from backend.access.groups import GroupService, get_group
from backend.access.roles import Role
from backend.store.accounts import groups, people
from backend.store.database import Database, open_database
from backend.store.llm import group_budgets, model_usage
from backend.store.llm.group_budgets import BudgetOfDay, GroupBudget
from backend.store.llm.model_usage import TokenCounts
from backend.store.schema.language_model_tables import group_budgets as budgets_table
from backend.store.schema.language_model_tables import model_usage as usage_table
from backend.store.schema.tables import group_members
from backend.store.schema.tables import groups as groups_table
from backend.store.schema.tables import people as people_table
from tests.support.accounts import add_person

TODAY = date(2026, 3, 31)
ANN, BOB = "ann@example.com", "bob@example.com"
EVERYBODY, GROUPS, EACH = 5_000, 400, 60
"""People; groups; and how many people are in each but the first, in which all are."""


def _count(tokens: int) -> dict[str, TokenCounts]:
    return {"large": TokenCounts(input_tokens=tokens - 1, output_tokens=1, calls=1)}


def test_groups_are_listed_with_what_their_members_used(database: Database) -> None:
    service = GroupService(database)
    for email in (ANN, BOB):
        add_person(database, email, Role.ADMIN)
    ann, bob = (people.get_by_email(database, email).id for email in (ANN, BOB))
    for name in ("sales", "hr"):
        service.create(name)
    groups.replace_of_person(database, ann, "https://idp.example.com", {"of a provider"})
    service.add_member("sales", ANN)
    service.add_member("sales", BOB)
    service.set_token_budget("sales", 500)
    model_usage.add(database, ann, TODAY, _count(70) | {"small": TokenCounts(input_tokens=5)})
    model_usage.add(database, bob, TODAY, _count(20))
    model_usage.add(database, bob, TODAY - timedelta(days=1), _count(1_000))
    sales, hr = (get_group(database, name).id for name in ("sales", "hr"))
    assert group_budgets.list_groups(database, TODAY) == [
        GroupBudget(group_id=hr, name="hr", members=0, tokens=0, used=0),
        GroupBudget(group_id=sales, name="sales", members=2, tokens=500, used=95),
    ]
    assert group_budgets.list_of_person(database, ann, TODAY) == [BudgetOfDay(sales, 500, 95)]
    assert group_budgets.find_members(database, [sales, hr], [bob, 99]) == {sales: {bob}}
    assert group_budgets.find_members(database, [sales], []) == {}


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    with closing(open_database(database_url)) as database:
        yield database


def _describe_person(number: int) -> dict[str, object]:
    now = datetime.now(UTC)
    email = f"p{number}@example.com"
    return {"id": number, "email": email, "name": email, "role": "member", "created_at": now}


def _measure(ask: Callable[[int], object]) -> float:
    """Return the seconds of the quickest of fifty questions, which a busy machine did not interrupt."""
    times = []
    for person in range(1, 51):
        begun = time.perf_counter()
        ask(person)
        times.append(time.perf_counter() - begun)
    return min(times)


def _fill(database: Database) -> None:
    """All people are in the first group, and some in each of the others; everybody has used something."""
    with database.writing() as connection:
        connection.execute(
            insert(people_table), [_describe_person(n) for n in range(1, EVERYBODY + 1)]
        )
        connection.execute(
            insert(groups_table),
            [{"id": n, "name": f"g{n}", "origin": groups.OWN} for n in range(1, GROUPS + 1)],
        )
        members = [(1, person) for person in range(1, EVERYBODY + 1)]
        members += [
            (group, (group * EACH + n) % EVERYBODY + 1)
            for group in range(2, GROUPS + 1)
            for n in range(EACH)
        ]
        connection.execute(
            insert(group_members), [{"group_id": g, "person_id": p} for g, p in members]
        )
        connection.execute(
            insert(budgets_table), [{"group_id": n, "tokens": 10**9} for n in range(1, GROUPS + 1)]
        )
        connection.execute(
            insert(usage_table),
            [
                {
                    "day": TODAY,
                    "person_id": n,
                    "model": "large",
                    "input_tokens": 9,
                    "output_tokens": 1,
                    "calls": 1,
                }
                for n in range(1, EVERYBODY + 1)
            ],
        )


@pytest.mark.soak("slow")
def test_a_question_of_a_large_company_finds_its_budgets_quickly(database: Database) -> None:
    _fill(database)
    first = group_budgets.list_of_person(database, 1, TODAY)
    assert first[0] == BudgetOfDay(1, 10**9, 10 * EVERYBODY)
    assert {one.used for one in first[1:]} == {10 * EACH}
    assert len(first) > 1
    by_group = _measure(lambda person: group_budgets.list_of_person(database, person, TODAY))
    of_all = _measure(lambda person: model_usage.sum_of_day(database, person, TODAY))
    print(f"by group {1000 * by_group:.1f} ms, sum of the day {1000 * of_all:.1f} ms")
    assert by_group < 8 * of_all
