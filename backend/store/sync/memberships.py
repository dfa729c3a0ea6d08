"""Who belongs to the groups and scopes of sources, how far they are listed, and what follows for those who ask.

A group or scope is a reader token, its members are reader tokens too: people, or other groups. A row that is
pending counts for nobody yet. The listing of a source's groups resumes where the last try ended, and is finished
once the documents were compared as well: then the members that it found count. A try that fails in between lists
no group again.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache

from sqlalchemy import (
    CompoundSelect,
    Connection,
    Select,
    delete,
    exists,
    func,
    insert,
    select,
    update,
)

from backend.store.database import (
    Database,
    encode_texts,
    select_bound_texts,
    select_texts,
    upsert,
)
from backend.store.schema.tables import (
    batches,
    conjunction_readers,
    conjunctions,
    document_readers,
    documents,
    group_listings,
    memberships,
    runs,
    source_groups,
)
from backend.store.sync.runs import lock_running
from backend.store.sync.sources import select_source_id
from connectors.connector import Checkpoint, ReaderGroup

_TOKENS = "tokens"
_MAX_AGE = timedelta(days=7)
"""An older unfinished listing starts anew."""
_MAX_WHOLE_AGE = timedelta(days=1)
"""So does one that listed all groups: who left since then must not wait for documents that are compared slowly."""


@dataclass(frozen=True, slots=True)
class GroupListing:
    number: int
    since: Checkpoint | None
    """From where it resumes."""
    is_whole: bool
    """All groups were listed."""


def resume_listing(database: Database, run: int) -> GroupListing:
    """Continue the unfinished listing of the run's source, or begin another.

    Raises:
        RunEndedError: the run does not belong to the caller any more.
    """
    now = datetime.now(UTC)
    with database.writing() as connection:
        source_id = lock_running(connection, run)
        latest = select(group_listings).where(group_listings.c.source_id == source_id)
        row = connection.execute(latest).one_or_none()
        if row is not None and row.started_at is not None:
            max_age = _MAX_WHOLE_AGE if row.is_whole else _MAX_AGE
            if row.started_at > now - max_age:
                reached = None if row.checkpoint is None else Checkpoint(row.checkpoint)
                return GroupListing(row.number, reached, bool(row.is_whole))
        number = row.number + 1 if row else 1
        begun = {"checkpoint": None, "is_whole": 0, "started_at": now}
        upsert(connection, group_listings, [{"source_id": source_id, "number": number, **begun}])
    return GroupListing(number, None, is_whole=False)


def save_groups(
    database: Database, run: int, groups: Sequence[ReaderGroup], reached: Checkpoint | None
) -> bool:
    """Save a page of the listing of groups: delete the members that they have no more, and add their new ones.

    These are pending, unless no document names the group yet: then it can admit nobody to anything else.

    Returns:
        Whether some of the groups have lost members.

    Raises:
        RunEndedError: the run does not belong to the caller any more; nothing is saved.
    """
    members = {group.token: group.members for group in groups}
    with database.writing() as connection:
        source_id = lock_running(connection, run)
        held = _read_members(connection, source_id, members)
        left = {token: held.get(token, set()) - present for token, present in members.items()}
        for token, gone in left.items():
            if gone:
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
        _save_page(connection, source_id, groups, reached)
    return any(left.values())


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


def delete_unlisted(database: Database, run: int) -> bool:
    """Delete the groups that the listing did not contain, which is whole; return whether any had members. Raises as `save_groups`."""
    with database.writing() as connection:
        source_id = lock_running(connection, run)
        _delete_unlisted_groups(connection, source_id)
        kept = select(source_groups.c.token).where(source_groups.c.source_id == source_id)
        ended = (memberships.c.source_id == source_id, memberships.c.token.not_in(kept))
        return bool(connection.execute(delete(memberships).where(*ended)).rowcount)


def has_pending(database: Database, source_id: int) -> bool:
    """Return whether members of a source were listed that do not count yet."""
    pending = (memberships.c.source_id == source_id, memberships.c.pending == 1)
    with database.reading() as connection:
        return bool(connection.scalar(select(exists().where(*pending))))


def confirm_pending(database: Database, run: int) -> None:
    """Let the pending members of the run's source count: the listing was applied. Raises as `save_groups`."""
    with database.writing() as connection:
        source_id = lock_running(connection, run)
        pending = (memberships.c.source_id == source_id, memberships.c.pending == 1)
        connection.execute(update(memberships).where(*pending).values(pending=0))
        _finish_listing(connection, source_id)


def _save_page(
    connection: Connection,
    source_id: int,
    groups: Sequence[ReaderGroup],
    reached: Checkpoint | None,
) -> None:
    """Record that the listing contains these groups, and from where it resumes after them."""
    number = connection.scalar(_select_number(source_id))
    rows = [
        {"token": group.token, "source_id": source_id, "name": group.name, "listing": number}
        for group in groups
    ]
    upsert(connection, source_groups, rows)
    if reached is not None:
        _update_listing(connection, source_id, checkpoint=reached.value)


def _delete_unlisted_groups(connection: Connection, source_id: int) -> None:
    """Delete the groups that the listing, which is whole now, did not contain."""
    unlisted = source_groups.c.listing != _select_number(source_id).scalar_subquery()
    connection.execute(
        delete(source_groups).where(source_groups.c.source_id == source_id, unlisted)
    )
    _update_listing(connection, source_id, is_whole=1)


def _finish_listing(connection: Connection, source_id: int) -> None:
    """Record that the listing was applied to its end."""
    _update_listing(
        connection, source_id, started_at=None, checkpoint=None, finished_at=datetime.now(UTC)
    )


def _select_number(source_id: int) -> Select[tuple[int]]:
    return select(group_listings.c.number).where(group_listings.c.source_id == source_id)


def _update_listing(connection: Connection, source_id: int, **values: object) -> None:
    listing = update(group_listings).where(group_listings.c.source_id == source_id)
    connection.execute(listing.values(values))


def has_listed_groups(database: Database, source: str) -> bool:
    """Return whether the groups of a source were ever listed and applied to their end."""
    return last_listed_at(database, source) is not None


def last_listed_at(database: Database, source: str) -> datetime | None:
    """Return when the groups of a source were last listed and applied to their end."""
    query = select(group_listings.c.finished_at).where(
        group_listings.c.source_id == select_source_id(source)
    )
    with database.reading() as connection:
        finished: datetime | None = connection.scalar(query)
    return finished


def names_unlisted_groups(database: Database, run: int) -> bool:
    """Return whether documents that were indexed since the run began name groups that were never listed."""
    with database.reading() as connection:
        begun = connection.execute(
            select(runs.c.source_id, runs.c.started_at).where(runs.c.id == run)
        ).one()
        named = _select_named(begun.source_id, begun.started_at).subquery()
        unlisted = named.c.reader.startswith(
            f"external:{begun.source_id}:"
        ) & named.c.reader.not_in(select(source_groups.c.token))
        return bool(connection.scalar(select(exists().where(unlisted))))


def _select_named(source_id: int, since: datetime) -> CompoundSelect[tuple[str]]:
    """Select the tokens that documents of a source name which were indexed since then."""
    fresh = select(document_readers.c.reader).join(documents)
    fresh = fresh.where(documents.c.source_id == source_id, documents.c.indexed_at >= since)
    of_clauses = select(conjunction_readers.c.reader).where(
        conjunction_readers.c.conjunction.in_(fresh)
    )
    return fresh.union(of_clauses)


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
