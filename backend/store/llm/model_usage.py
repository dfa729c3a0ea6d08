"""The tokens of language models that people have used, by day and model."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta

from sqlalchemy import Connection, bindparam, case, delete, func, literal, select, tuple_
from sqlalchemy.dialects import postgresql, sqlite

from backend.store.database import Database, inserting
from backend.store.schema.language_model_tables import model_usage, person_budgets
from backend.store.schema.tables import people

DAYS_KEPT = 400
"""A year can be compared with the one before. Budgets need today alone, the page of models three months at most."""
_COUNTS = ("input_tokens", "output_tokens", "calls")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCounts:
    input_tokens: int = 0
    output_tokens: int = 0
    calls: int = 0

    def __add__(self, other: "TokenCounts") -> "TokenCounts":
        return TokenCounts(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            calls=self.calls + other.calls,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUsage:
    """What a person used of a model on a day."""

    day: date
    email: str | None
    """None: nobody's."""
    model: str
    counts: TokenCounts


@dataclass(frozen=True, slots=True)
class ModelDay:
    """What all have used of a model on a day."""

    day: date
    model: str
    counts: TokenCounts


@dataclass(frozen=True, slots=True)
class PersonDay:
    """The tokens that a person, or all but those who used most, have used on a day."""

    day: date
    person_id: int | None
    """None: all but those who used most."""
    email: str | None
    """None: nobody's."""
    tokens: int


@dataclass(frozen=True, slots=True)
class OwnUse:
    """What a person has used on a day, and may use."""

    tokens: int
    budget: int | None
    """None: no budget of their own."""


def add(database: Database, person_id: int, day: date, used: Mapping[str, TokenCounts]) -> None:
    """Add what a person used, by model, in one statement; forget the days that are kept no longer."""
    if not used:
        return
    rows = [
        {
            "day": day,
            "person_id": person_id,
            "model": model,
            "input_tokens": counts.input_tokens,
            "output_tokens": counts.output_tokens,
            "calls": counts.calls,
        }
        # In one order, so that no two transactions deadlock.
        for model, counts in sorted(used.items())
    ]
    with database.writing() as connection:
        connection.execute(_add_to_counts(inserting(connection, model_usage)), rows)
        _forget(connection, day - timedelta(days=DAYS_KEPT))


def rename_model(connection: Connection, before: str, after: str) -> None:
    """Count what was used of a model under its new name, beside what another one of that name has left."""
    if before == after:
        return
    columns = ["day", "person_id", "model", *_COUNTS]
    renamed = select(
        model_usage.c.day,
        model_usage.c.person_id,
        literal(after),
        *(model_usage.c[name] for name in _COUNTS),
    ).where(model_usage.c.model == before)
    connection.execute(
        _add_to_counts(inserting(connection, model_usage).from_select(columns, renamed))
    )
    connection.execute(delete(model_usage).where(model_usage.c.model == before))


def _add_to_counts(given: postgresql.Insert | sqlite.Insert) -> postgresql.Insert | sqlite.Insert:
    """Let rows that are there already grow by those given."""
    sums = {name: model_usage.c[name] + given.excluded[name] for name in _COUNTS}
    return given.on_conflict_do_update(index_elements=["day", "person_id", "model"], set_=sums)


def _forget(connection: Connection, last: date) -> None:
    """Delete the counts of this day and of those before it."""
    # Those that another transaction deletes at this moment are left to it: who waits for them could deadlock.
    past = select(*model_usage.primary_key).where(model_usage.c.day <= last)
    forgotten = past.with_for_update(skip_locked=True)
    of_row = tuple_(*model_usage.primary_key)
    connection.execute(delete(model_usage).where(of_row.in_(forgotten)))


_TOKENS = model_usage.c.input_tokens + model_usage.c.output_tokens
_BUDGETS = select(person_budgets.c.tokens).where(
    person_budgets.c.person_id == bindparam("person_id")
)
# Built once: every question asks one of them.
_SUM_OF_DAY = select(
    _BUDGETS.scalar_subquery(),
    func.sum(case((model_usage.c.person_id == bindparam("person_id"), _TOKENS), else_=0)),
    func.sum(_TOKENS),
).where(model_usage.c.day == bindparam("day"))
_OF_BUDGETED = _BUDGETS.add_columns(
    select(func.sum(_TOKENS))
    .where(
        model_usage.c.day == bindparam("day"),
        model_usage.c.person_id == bindparam("person_id"),
    )
    .scalar_subquery()
)


def sum_of_day(database: Database, person_id: int, day: date) -> tuple[OwnUse, int]:
    """Return what a person has used on a day, and the tokens that all have used."""
    with database.reading() as connection:
        found = connection.execute(_SUM_OF_DAY, {"person_id": person_id, "day": day}).one()
    budget, own, total = found
    return OwnUse(int(own or 0), budget), int(total or 0)


def find_budgeted(database: Database, person_id: int, day: date) -> OwnUse | None:
    """Return what a person with a budget of their own has used on a day; None, after one look-up, for anybody else."""
    with database.reading() as connection:
        which = {"person_id": person_id, "day": day}
        found = connection.execute(_OF_BUDGETED, which).one_or_none()
    if found is None:
        return None
    budget, own = found
    return OwnUse(int(own or 0), budget)


def list_since(database: Database, since: date, most: int | None = None) -> list[ModelUsage]:
    """Return what was used since a day, the latest day first, up to a limit of rows."""
    query = (
        select(model_usage, people.c.email)
        .join(people, people.c.id == model_usage.c.person_id, isouter=True)
        .where(model_usage.c.day >= since)
        .order_by(model_usage.c.day.desc(), people.c.email.nulls_last(), model_usage.c.model)
        .limit(most)
    )
    with database.reading() as connection:
        return [
            ModelUsage(
                day=row.day,
                email=row.email,
                model=row.model,
                counts=TokenCounts(
                    input_tokens=row.input_tokens,
                    output_tokens=row.output_tokens,
                    calls=row.calls,
                ),
            )
            for row in connection.execute(query)
        ]


def list_days_by_model(database: Database, since: date) -> list[ModelDay]:
    """Return what all have used since a day, by day and model."""
    sums = (func.sum(model_usage.c[name]).label(name) for name in _COUNTS)
    query = (
        select(model_usage.c.day, model_usage.c.model, *sums)
        .where(model_usage.c.day >= since)
        .group_by(model_usage.c.day, model_usage.c.model)
        .order_by(model_usage.c.day, model_usage.c.model)
    )
    with database.reading() as connection:
        return [
            ModelDay(
                row.day,
                row.model,
                TokenCounts(**{name: int(getattr(row, name)) for name in _COUNTS}),
            )
            for row in connection.execute(query)
        ]


def list_days_by_person(database: Database, since: date, most: int) -> list[PersonDay]:
    """Return the tokens since a day by day and person: of so many who used most, and of all others together."""
    recent = model_usage.c.day >= since
    largest = (
        select(model_usage.c.person_id)
        .where(recent)
        .group_by(model_usage.c.person_id)
        .order_by(func.sum(_TOKENS).desc(), model_usage.c.person_id)
        .limit(most)
        .subquery()
    )
    of_day = (model_usage.c.day, largest.c.person_id, people.c.email)
    query = (
        select(*of_day, func.sum(_TOKENS).label("tokens"))
        .select_from(model_usage)
        .join(largest, largest.c.person_id == model_usage.c.person_id, isouter=True)
        .join(people, people.c.id == largest.c.person_id, isouter=True)
        .where(recent)
        .group_by(*of_day)
        .order_by(*of_day)
    )
    with database.reading() as connection:
        return [
            PersonDay(row.day, row.person_id, row.email, int(row.tokens))
            for row in connection.execute(query)
        ]
