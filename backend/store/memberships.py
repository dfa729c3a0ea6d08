"""Who belongs to the groups and scopes of sources, and what follows from it for those who ask.

A group or scope is a reader token, its members are reader tokens too: people, or other groups. A row that is
pending counts for nobody yet.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from functools import cache

from sqlalchemy import Connection, Select, delete, exists, func, insert, select, update

from backend.store import group_listings
from backend.store.database import (
    Database,
    encode_texts,
    select_bound_texts,
    select_texts,
)
from backend.store.runs import lock_running
from backend.store.tables import (
    batches,
    conjunction_readers,
    conjunctions,
    document_readers,
    memberships,
    source_groups,
)
from connectors.connector import Checkpoint, ReaderGroup

_TOKENS = "tokens"


def save_groups(
    database: Database, run: int, groups: Sequence[ReaderGroup], reached: Checkpoint | None
) -> None:
    """Save a page of the listing of groups: delete the members that they have no more, and add their new ones.

    These are pending, unless no document names the group yet: then it can admit nobody to anything else.

    Raises:
        RunEndedError: the run does not belong to the caller any more; nothing is saved.
    """
    members = {group.token: group.members for group in groups}
    with database.writing() as connection:
        source_id = lock_running(connection, run)
        held = _read_members(connection, source_id, members)
        for token, present in members.items():
            if gone := held.get(token, set()) - present:
                _delete_members(connection, token, gone)
        unused = _find_unused(connection, source_id, members)
        now = datetime.now(UTC)
        rows = [
            {
                "member": member,
                "token": token,
                "source_id": source_id,
                "pending": int(token not in unused),
                "since": now,
            }
            for token, present in members.items()
            for member in present.difference(held.get(token, ()))
        ]
        if rows:
            connection.execute(insert(memberships), rows)
        group_listings.save_page(connection, source_id, groups, reached)


def _find_unused(connection: Connection, source_id: int, tokens: Iterable[str]) -> set[str]:
    """Return the tokens among these that were never listed, and that no document names."""
    if connection.scalar(select(exists().where(batches.c.source_id == source_id))):
        return set()  # What waits to be indexed may name any of them.
    unused = set(tokens)
    for named in (source_groups.c.token, conjunction_readers.c.reader, document_readers.c.reader):
        among = select_texts(connection.dialect.name, unused)
        if unused:
            unused.difference_update(connection.scalars(select(named).where(named.in_(among))))
    return unused


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


def delete_unlisted(database: Database, run: int) -> None:
    """Delete the groups that the listing did not contain, which is whole. Raises as `save_groups`."""
    with database.writing() as connection:
        source_id = lock_running(connection, run)
        group_listings.delete_unlisted(connection, source_id)
        kept = select(source_groups.c.token).where(source_groups.c.source_id == source_id)
        ended = (memberships.c.source_id == source_id, memberships.c.token.not_in(kept))
        connection.execute(delete(memberships).where(*ended))


def confirm_pending(database: Database, run: int) -> None:
    """Let the pending members of the run's source count: the listing was applied. Raises as `save_groups`."""
    with database.writing() as connection:
        source_id = lock_running(connection, run)
        pending = (memberships.c.source_id == source_id, memberships.c.pending == 1)
        connection.execute(update(memberships).where(*pending).values(pending=0))
        group_listings.finish(connection, source_id)


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
