"""Who may read a document, by name: the people whom its groups and scopes admit, and the way that admits them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import CTE, Connection, Select, func, intersect, literal, select

from backend.store.database import Database, select_texts
from backend.store.schema.source_account_tables import source_accounts
from backend.store.schema.tables import memberships, people, source_groups
from backend.store.sync.source_accounts import IS_OF_NOBODY_ELSE
from connectors.access import (
    PUBLIC,
    Access,
    Clause,
    is_account_token,
    parse_account_token,
)

_PERSON = literal("user:") + people.c.email
_LIMIT = 100
"""People that are named of a large group."""


@dataclass(frozen=True, slots=True)
class AdmittedReader:
    token: str
    groups: tuple[str, ...] = ()
    """The names of the groups that admit them, from their own to one that the document names; empty if it names them."""
    source_account: str | None = None
    """Of a source, by which they are in these groups, or which the document names: an admin mapped it to them."""


@dataclass(frozen=True, slots=True)
class AdmittedReaders:
    readers: Sequence[AdmittedReader]
    """The first hundred by name."""
    count: int


def find_admitted(
    database: Database, access: Access, among: Collection[str] | None = None
) -> AdmittedReaders:
    """Return who meets every clause: people, groups that are not a source's, and `public`.

    Args:
        among: only these tokens; None for all.
    """
    with database.reading() as connection:
        clauses = [each for each in access.clauses if not _admits_everybody(connection, each)]
        if not clauses:
            readers = [AdmittedReader(PUBLIC)] if access.clauses else []
            return AdmittedReaders(readers, len(readers))
        admitted = _select_admitted(connection, clauses, among).subquery()
        count = connection.scalar(select(func.count()).select_from(admitted)) or 0
        found = select(admitted.c.token).order_by(admitted.c.token).limit(_LIMIT)
        tokens = list(connection.scalars(found))
        readers = _find_ways(connection, tokens, min(clauses, key=_rank_clause))
    return AdmittedReaders(readers, count)


def _admits_everybody(connection: Connection, clause: Clause) -> bool:
    members = _reach_members(connection, clause)
    query = select(members.c.token).where(members.c.token == PUBLIC)
    return connection.scalar(query.limit(1)) is not None


def _rank_clause(clause: Clause) -> tuple[int, list[str]]:
    """Order clauses so that the way is named by the one that names the fewest people; always in the same order."""
    return sum(not token.startswith("external:") for token in clause), sorted(clause)


def _reach_members(connection: Connection, clause: Clause) -> CTE:
    """Select the tokens of a clause, their members, the members of these, and so on, and to whom the accounts among them are mapped."""
    own = select_texts(connection.dialect.name, clause).subquery()
    begun = select(next(iter(own.c)).label("token")).cte(recursive=True)
    below = select(memberships.c.member).join(begun, memberships.c.token == begun.c.token)
    reached = begun.union(below.where(memberships.c.pending == 0))
    mapped = _select_mapped().where(source_accounts.c.token.in_(select(reached.c.token)))
    return select(reached.c.token).union(mapped.with_only_columns(_PERSON)).cte()


def _select_mapped() -> Select[tuple[str, str, str]]:
    """Select the people to whom accounts are mapped, the accounts, and the names of their sources."""
    columns = source_accounts.c
    query = select(_PERSON.label("member"), columns.token, columns.source)
    joined = query.join_from(source_accounts, people, columns.person_id == people.c.id)
    return joined.where(
        columns.token.is_not(None), people.c.disabled_at.is_(None), IS_OF_NOBODY_ELSE
    )


def _select_admitted(
    connection: Connection, clauses: Iterable[Clause], among: Collection[str] | None
) -> Select[tuple[str]]:
    members = (_reach_members(connection, clause) for clause in clauses)
    met = intersect(*(select(each.c.token) for each in members)).subquery()
    people = select(met.c.token).where(~met.c.token.startswith("external:"))
    if among is None:
        return people
    return people.where(met.c.token.in_(select_texts(connection.dialect.name, among)))


def _find_ways(
    connection: Connection, tokens: Sequence[str], clause: Clause
) -> list[AdmittedReader]:
    """Return the readers with the names of the groups from their own up to one of the clause, by the shortest way."""
    mapped = _read_mapped(connection, tokens, clause)
    above = _read_groups_above(connection, {*tokens, *(token for _, token in mapped)}, clause)
    for member, token in mapped:
        above[member].append(token)
    ways = {token: _find_way(token, above, clause) for token in tokens}
    names = _read_names(connection, {one for way in ways.values() for one in way})
    return [
        AdmittedReader(
            token,
            tuple(names[one] for one in ways[token] if not is_account_token(one)),
            _name_account(mapped.get((token, next(iter(ways[token]), ""))), ways[token], names),
        )
        for token in tokens
    ]


def _name_account(source: str | None, way: Sequence[str], names: Mapping[str, str]) -> str | None:
    """Return what to call the account that the way begins with, if it is mapped."""
    if source is None:
        return None
    name = names[way[0]] if names[way[0]] != way[0] else parse_account_token(way[0])
    return f"{name} of {source}"


def _read_mapped(
    connection: Connection, tokens: Iterable[str], clause: Clause
) -> dict[tuple[str, str], str]:
    """Return the sources of the accounts that are mapped to people and lead to the clause, by person and token.

    Where the source itself shows the person's address, that is the way.
    """
    reached = _reach_members(connection, clause)
    columns = source_accounts.c
    shown = select(memberships.c.member).where(
        memberships.c.member == _PERSON,
        memberships.c.token == columns.token,
        memberships.c.pending == 0,
    )
    query = _select_mapped().where(
        _PERSON.in_(select_texts(connection.dialect.name, tokens)),
        columns.token.in_(select(reached.c.token)),
        ~shown.exists(),
    )
    rows = connection.execute(query.order_by(columns.token))
    return {(row.member, row.token): row.source for row in rows}


def _read_groups_above(
    connection: Connection, tokens: Iterable[str], clause: Clause
) -> dict[str, list[str]]:
    """Return the groups of tokens, the groups of these, and so on, as far as they lead to the clause."""
    reached = _reach_members(connection, clause)
    above: dict[str, list[str]] = {}
    while frontier := {one for one in tokens if one not in above}:
        above.update({one: [] for one in frontier})
        rows = select(memberships.c.member, memberships.c.token).where(
            memberships.c.member.in_(select_texts(connection.dialect.name, frontier)),
            memberships.c.token.in_(select(reached.c.token)),
            memberships.c.pending == 0,
        )
        for member, group in connection.execute(rows):
            above[member].append(group)
        tokens = {group for one in frontier for group in above[one]}
    return above


def _find_way(token: str, above: Mapping[str, Sequence[str]], clause: Clause) -> tuple[str, ...]:
    ways: list[tuple[str, ...]] = [()]
    seen = {token}
    for way in ways:
        last = way[-1] if way else token
        if last in clause:
            return way
        ways += [(*way, each) for each in sorted(above.get(last, ())) if each not in seen]
        seen.update(above.get(last, ()))
    return ()


def _read_names(connection: Connection, tokens: Collection[str]) -> dict[str, str]:
    listed = select(source_groups.c.token, source_groups.c.name).where(
        source_groups.c.token.in_(select_texts(connection.dialect.name, tokens))
    )
    names = {token: name for token, name in connection.execute(listed) if name}
    return {token: names.get(token, token) for token in tokens}
