"""The budgets of single people: what is used of each, and that none outlives its person."""

from collections.abc import Iterator
from contextlib import closing
from datetime import date, timedelta

import pytest
from sqlalchemy import delete

from backend.access.roles import Role
from backend.store.accounts.people import NOBODY
from backend.store.database import Database, open_database
from backend.store.llm import model_usage, person_budgets
from backend.store.llm.model_usage import OwnUse, TokenCounts
from backend.store.llm.person_budgets import PersonBudget
from backend.store.schema.tables import people as people_table
from tests.support.accounts import add_person

TODAY = date(2026, 3, 31)
ANN, BOB = "ann@example.com", "bob@example.com"


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    with closing(open_database(database_url)) as database:
        yield database


def _count(tokens: int) -> dict[str, TokenCounts]:
    return {"large": TokenCounts(input_tokens=tokens - 1, output_tokens=1, calls=1)}


def test_people_with_a_budget_are_listed_with_what_they_used(database: Database) -> None:
    bob, ann = (add_person(database, email, Role.ADMIN) for email in (BOB, ANN))
    assert person_budgets.list_people(database, TODAY) == []
    model_usage.add(database, ann.id, TODAY, _count(70) | {"small": TokenCounts(input_tokens=5)})
    model_usage.add(database, ann.id, TODAY - timedelta(days=1), _count(1_000))
    model_usage.add(database, bob.id, TODAY, _count(20))
    for person, tokens in ((bob, 10**15), (ann, 5), (ann, 500)):
        person_budgets.change(database, person.id, tokens)
    of_ann = PersonBudget(person_id=ann.id, email=ANN, name=ann.name, tokens=500, used=75)
    of_bob = PersonBudget(person_id=bob.id, email=BOB, name=bob.name, tokens=10**15, used=20)
    assert person_budgets.list_people(database, TODAY) == [of_ann, of_bob]
    person_budgets.change(database, bob.id, 0)
    assert person_budgets.list_people(database, TODAY) == [of_ann]
    ended = person_budgets.find(database, bob.id, TODAY)
    assert ended == PersonBudget(person_id=bob.id, email=BOB, name=bob.name, tokens=0, used=20)
    assert person_budgets.find(database, 999_999, TODAY) is None


def test_a_question_finds_a_budget_with_what_is_used_of_it(database: Database) -> None:
    ann, bob = (add_person(database, email, Role.ADMIN).id for email in (ANN, BOB))
    model_usage.add(database, ann, TODAY, _count(70))
    model_usage.add(database, bob, TODAY, _count(20))
    assert model_usage.find_budgeted(database, ann, TODAY) is None
    person_budgets.change(database, ann, 500)
    assert model_usage.find_budgeted(database, ann, TODAY) == OwnUse(70, 500)
    assert model_usage.sum_of_day(database, ann, TODAY) == (OwnUse(70, 500), 90)
    assert model_usage.sum_of_day(database, bob, TODAY) == (OwnUse(20, None), 90)
    tomorrow = TODAY + timedelta(days=1)
    assert model_usage.find_budgeted(database, ann, tomorrow) == OwnUse(0, 500)
    assert model_usage.sum_of_day(database, ann, tomorrow) == (OwnUse(0, 500), 0)
    for nobody in (bob, NOBODY):
        assert model_usage.find_budgeted(database, nobody, TODAY) is None


def test_who_is_deleted_leaves_no_budget(database: Database) -> None:
    ann = add_person(database, ANN, Role.ADMIN).id
    person_budgets.change(database, ann, 500)
    with database.writing() as connection:
        connection.execute(delete(people_table).where(people_table.c.id == ann))
    assert person_budgets.read(database, ann) == 0
