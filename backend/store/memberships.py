"""Who belongs to the groups and scopes of sources, and what follows from it for those who ask.

A group or scope is a reader token, its members are reader tokens too: people, or other groups. A row that is
pending counts for nobody yet.
"""

from collections.abc import Collection, Iterable, Mapping
from functools import cache

from sqlalchemy import Connection, Select, delete, exists, func, insert, select, update

from backend.store.database import (
    Database,
    encode_texts,
    select_bound_texts,
    select_texts,
)
from backend.store.runs import lock_running
from backend.store.tables import conjunction_readers, conjunctions, memberships

_TOKENS = "tokens"


def save_members(database: Database, run: int, groups: Mapping[str, frozenset[str]]) -> None:
    """Delete the members that groups have no more, and add their new ones as pending.

    Raises:
        RunEndedError: the run does not belong to the caller any more; nothing is saved.
    """
    with database.writing() as connection:
        source_id = lock_running(connection, run)
        held = _read_members(connection, source_id, groups)
        for token, members in groups.items():
            if gone := held.get(token, set()) - members:
                _delete_members(connection, token, gone)
        rows = [
            {"member": member, "token": token, "source_id": source_id, "pending": 1}
            for token, members in groups.items()
            for member in members.difference(held.get(token, ()))
        ]
        if rows:
            connection.execute(insert(memberships), rows)


def _read_members(
    connection: Connection, source_id: int, tokens: Iterable[str]
) -> dict[str, set[str]]:
    query = select(memberships.c.token, memberships.c.member).where(
        memberships.c.source_id == source_id,
        memberships.c.token.in_(select_texts(connection.dialect.name, tokens)),
    )
    held: dict[str, set[str]] = {}
    for token, member in connection.execute(query):
        held.setdefault(token, set()).add(member)
    return held


def _delete_members(connection: Connection, token: str, gone: Iterable[str]) -> None:
    which = memberships.c.member.in_(select_texts(connection.dialect.name, gone))
    connection.execute(delete(memberships).where(memberships.c.token == token, which))


def delete_groups(database: Database, run: int, kept: Collection[str]) -> None:
    """Delete the groups of the run's source that are not among the kept ones. Raises as `save_members`."""
    with database.writing() as connection:
        source_id = lock_running(connection, run)
        of_source = memberships.c.source_id == source_id
        held = connection.scalars(select(memberships.c.token).where(of_source).distinct())
        gone = select_texts(connection.dialect.name, set(held).difference(kept))
        connection.execute(delete(memberships).where(of_source, memberships.c.token.in_(gone)))


def confirm_pending(database: Database, run: int) -> None:
    """Let the pending members of the run's source count. Raises as `save_members`."""
    with database.writing() as connection:
        source_id = lock_running(connection, run)
        pending = (memberships.c.source_id == source_id, memberships.c.pending == 1)
        connection.execute(update(memberships).where(*pending).values(pending=0))


def find_held_tokens(database: Database, own: Collection[str]) -> frozenset[str]:
    """Return the tokens that holders of these hold besides: groups with their groups, and conjunctions met."""
    with database.reading() as connection:
        # One short query is all that a database without groups is asked.
        has_groups, has_conjunctions = connection.execute(_HAS_ROWS).one()
        groups = _find_groups(connection, own) if has_groups else frozenset()
        met = _find_met(connection, groups.union(own)) if has_conjunctions else frozenset()
    return groups | met


_HAS_ROWS = select(exists().select_from(memberships), exists().select_from(conjunctions))


def _find_groups(connection: Connection, own: Collection[str]) -> frozenset[str]:
    return _find(connection, _select_groups(connection.dialect.name), own)


def _find_met(connection: Connection, held: Collection[str]) -> frozenset[str]:
    return _find(connection, _select_met(connection.dialect.name), held)


def _find(
    connection: Connection, query: Select[tuple[str]], tokens: Collection[str]
) -> frozenset[str]:
    encoded = encode_texts(connection.dialect.name, tokens)
    return frozenset(connection.scalars(query, {_TOKENS: encoded}))


# To build a query takes as long as to find the groups of a person.
@cache
def _select_groups(dialect: str) -> Select[tuple[str]]:
    """Select the groups of some tokens, their groups, and so on; groups may contain each other."""
    own, confirmed = select_bound_texts(dialect, _TOKENS), memberships.c.pending == 0
    direct = select(memberships.c.token).where(memberships.c.member.in_(own), confirmed)
    groups = direct.cte("groups", recursive=True)
    above = select(memberships.c.token).join(groups, memberships.c.member == groups.c.token)
    return select(groups.union(above.where(confirmed)).c.token)


@cache
def _select_met(dialect: str) -> Select[tuple[str]]:
    """Select the conjunctions of which some tokens meet every clause."""
    met = func.count(conjunction_readers.c.clause.distinct())
    return (
        select(conjunctions.c.token)
        .join(conjunction_readers)
        .where(conjunction_readers.c.reader.in_(select_bound_texts(dialect, _TOKENS)))
        .group_by(conjunctions.c.token, conjunctions.c.clauses)
        .having(met == conjunctions.c.clauses)
    )
