"""How many tokens of language models the members of a group may use on a day, and have used."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from datetime import date

from sqlalchemy import bindparam, delete, func, select

from backend.store.accounts.groups import OWN
from backend.store.database import Database, inserting
from backend.store.schema.language_model_tables import group_budgets, model_usage
from backend.store.schema.tables import group_members, groups


@dataclass(frozen=True, slots=True)
class BudgetOfDay:
    """A budget of a group that a person is in."""

    group_id: int
    tokens: int
    used: int
    """By those who are members now, on the whole day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupBudget:
    """A group of Quarry's own, as admins see it."""

    group_id: int
    name: str
    members: int
    tokens: int
    """Each day; 0: no limit."""
    used: int
    """On the day, by those who are members now."""


_TOKENS = model_usage.c.input_tokens + model_usage.c.output_tokens
_mine, _all = group_members.alias("mine"), group_members.alias("members")
# Built once: every question asks it. It goes from one person to the groups with a budget, their members, and what each
# used on the day, by an index at each step.
_OF_PERSON = (
    select(group_budgets.c.group_id, group_budgets.c.tokens, func.sum(_TOKENS))
    .select_from(_mine)
    .join(group_budgets, group_budgets.c.group_id == _mine.c.group_id)
    .join(_all, _all.c.group_id == group_budgets.c.group_id)
    .join(
        model_usage,
        (model_usage.c.day == bindparam("day")) & (model_usage.c.person_id == _all.c.person_id),
        isouter=True,
    )
    .where(_mine.c.person_id == bindparam("person_id"))
    .group_by(group_budgets.c.group_id, group_budgets.c.tokens)
    .order_by(group_budgets.c.group_id)
)
_AMONG = select(group_members.c.group_id, group_members.c.person_id).where(
    group_members.c.group_id.in_(bindparam("group_ids", expanding=True)),
    group_members.c.person_id.in_(bindparam("person_ids", expanding=True)),
)


def list_of_person(database: Database, person_id: int, day: date) -> list[BudgetOfDay]:
    """Return the budgets of the groups that a person is in, and what is used of each on a day."""
    with database.reading() as connection:
        rows = connection.execute(_OF_PERSON, {"person_id": person_id, "day": day})
        return [BudgetOfDay(group, tokens, int(used or 0)) for group, tokens, used in rows]


def find_members(
    database: Database, group_ids: Iterable[int], person_ids: Iterable[int]
) -> Mapping[int, Set[int]]:
    """Return who of these people is in each of these groups; groups that none of them is in are left out."""
    which = {"group_ids": list(group_ids), "person_ids": list(person_ids)}
    found: dict[int, set[int]] = {}
    with database.reading() as connection:
        for group_id, person_id in connection.execute(_AMONG, which):
            found.setdefault(group_id, set()).add(person_id)
    return found


def read(database: Database, group_id: int) -> int:
    """Return the tokens of a day that a group has; 0 where it has no limit."""
    query = select(group_budgets.c.tokens).where(group_budgets.c.group_id == group_id)
    with database.reading() as connection:
        return connection.scalar(query) or 0


def change(database: Database, group_id: int, tokens: int) -> None:
    """Give a group so many tokens a day; 0: no limit."""
    with database.writing() as connection:
        if not tokens:
            connection.execute(delete(group_budgets).where(group_budgets.c.group_id == group_id))
            return
        given = inserting(connection, group_budgets).values(group_id=group_id, tokens=tokens)
        changed = given.on_conflict_do_update(
            index_elements=["group_id"], set_={"tokens": given.excluded.tokens}
        )
        connection.execute(changed)


def list_groups(database: Database, day: date) -> list[GroupBudget]:
    """Return the groups that admins have made by name, with their budgets and what is used of each on a day."""
    used = (
        select(model_usage.c.person_id, func.sum(_TOKENS).label("tokens"))
        .where(model_usage.c.day == day)
        .group_by(model_usage.c.person_id)
        .subquery()
    )
    query = (
        select(
            groups.c.id,
            groups.c.name,
            func.count(group_members.c.person_id).label("members"),
            group_budgets.c.tokens,
            func.sum(used.c.tokens).label("used"),
        )
        .select_from(groups)
        .join(group_budgets, isouter=True)
        .join(group_members, group_members.c.group_id == groups.c.id, isouter=True)
        .join(used, used.c.person_id == group_members.c.person_id, isouter=True)
        .where(groups.c.origin == OWN)
        .group_by(groups.c.id, groups.c.name, group_budgets.c.tokens)
        .order_by(groups.c.name)
    )
    with database.reading() as connection:
        return [
            GroupBudget(
                group_id=row.id,
                name=row.name,
                members=row.members,
                tokens=row.tokens or 0,
                used=int(row.used or 0),
            )
            for row in connection.execute(query)
        ]
