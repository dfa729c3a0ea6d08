"""How many tokens of language models a person with a budget of their own may use on a day, and has used."""

from dataclasses import dataclass
from datetime import date

from sqlalchemy import ColumnElement, delete, func, select

from backend.store.database import Database, inserting
from backend.store.schema.language_model_tables import model_usage, person_budgets
from backend.store.schema.tables import people


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonBudget:
    person_id: int
    email: str
    name: str
    tokens: int
    """Each day; 0: they have no budget of their own."""
    used: int
    """On the day."""


def read(database: Database, person_id: int) -> int:
    """Return the tokens of a day that a person has for themselves; 0 where they have no budget of their own."""
    query = select(person_budgets.c.tokens).where(person_budgets.c.person_id == person_id)
    with database.reading() as connection:
        return connection.scalar(query) or 0


def change(database: Database, person_id: int, tokens: int) -> None:
    """Give a person so many tokens a day; 0: no budget of their own."""
    with database.writing() as connection:
        if not tokens:
            connection.execute(
                delete(person_budgets).where(person_budgets.c.person_id == person_id)
            )
            return
        given = inserting(connection, person_budgets).values(person_id=person_id, tokens=tokens)
        changed = given.on_conflict_do_update(
            index_elements=["person_id"], set_={"tokens": given.excluded.tokens}
        )
        connection.execute(changed)


def list_people(database: Database, day: date) -> list[PersonBudget]:
    """Return the people with a budget of their own by address, and what is used of each on a day."""
    return _list(database, day, person_budgets.c.tokens.is_not(None))


def find(database: Database, person_id: int, day: date) -> PersonBudget | None:
    """Return the budget of a person, who may have none, and what they used on a day; None where there is no such person."""
    found = _list(database, day, people.c.id == person_id)
    return found[0] if found else None


def _list(database: Database, day: date, which: ColumnElement[bool]) -> list[PersonBudget]:
    used = (
        select(func.sum(model_usage.c.input_tokens + model_usage.c.output_tokens))
        .where(model_usage.c.day == day, model_usage.c.person_id == people.c.id)
        .scalar_subquery()
    )
    query = (
        select(people.c.id, people.c.email, people.c.name, person_budgets.c.tokens, used)
        .join(person_budgets, isouter=True)
        .where(which)
        .order_by(people.c.email)
    )
    with database.reading() as connection:
        return [
            PersonBudget(
                person_id=person_id, email=email, name=name, tokens=tokens or 0, used=int(used or 0)
            )
            for person_id, email, name, tokens, used in connection.execute(query)
        ]
