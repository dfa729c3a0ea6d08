"""The accounts that people have at sources: those they ask for, and those that are mapped to them.

By a mapped account a person holds the reader token of the account, and what follows from it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from sqlalchemy import Select, and_, delete, exists, func, insert, or_, select

from backend.store.database import Database, select_texts
from backend.store.random_ids import make_random_id
from backend.store.schema.source_account_tables import source_accounts
from backend.store.schema.tables import memberships, people, source_groups, sources
from backend.store.sync.sources import IS_CONNECTED, EverySource, SourceChoice, SourcesOf
from connectors.access import make_account_token, parse_account_token
from connectors.errors import NotFoundError
from indexing.text.normalization import is_storable

AccountState: TypeAlias = Literal["asked", "mapped"]
AccountKey: TypeAlias = tuple[int, str]
"""The id of a source, and of an account at it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceAccount:
    id: str
    person_id: int
    email: str
    """Of the person."""
    source_id: int | None
    """None: there was no source of this name when the person asked."""
    source: str
    account: str
    """Its id at the source; as the person wrote it, until it is mapped."""
    token: str | None
    """What the person holds by it; None: it is asked for."""
    asked_at: datetime
    mapped_at: datetime | None
    mapped_by: str | None
    name: str | None = None
    """Of the account, as people at the source know it."""

    @property
    def state(self) -> AccountState:
        return "asked" if self.token is None else "mapped"

    def describe(self) -> str:
        """Return what the audit calls it."""
        return f"{self.account} of {self.source}"


@dataclass(frozen=True, slots=True)
class ListedAccount:
    """An account of a source, as its last permission sync listed it."""

    account: str
    name: str
    token: str


_SELECT = (
    select(
        source_accounts,
        people.c.email,
        source_groups.c.name.label("shown_name"),
    )
    .join_from(source_accounts, people, source_accounts.c.person_id == people.c.id)
    .outerjoin(source_groups, source_groups.c.token == source_accounts.c.token)
)
_other = people.alias("other")
_ADDRESS = "user:"
IS_OF_NOBODY_ELSE = ~exists().where(
    # The few members of the account are looked at, not all people.
    memberships.c.source_id == source_accounts.c.source_id,
    memberships.c.token == source_accounts.c.token,
    memberships.c.member.startswith(_ADDRESS),
    _other.c.email == func.substr(memberships.c.member, len(_ADDRESS) + 1),
    _other.c.disabled_at.is_(None),
    _other.c.id != source_accounts.c.person_id,
)
"""The source shows the address of no other person for a mapped account: where it begins to, the mapping gives no right."""


def list_of_person(database: Database, person_id: int) -> list[SourceAccount]:
    """Return what a person has and asks for, by source and account."""
    ordered = _SELECT.order_by(source_accounts.c.source, source_accounts.c.id)
    return _read(database, ordered.where(source_accounts.c.person_id == person_id))


def list_chosen(
    database: Database,
    choice: SourceChoice,
    state: AccountState | None,
    after: str,
    limit: int | None,
) -> list[SourceAccount]:
    """Return the accounts of the sources of a choice by their ids, from past `after`."""
    if not is_storable(after):
        return []
    chosen = _where_chosen(_SELECT, choice).where(source_accounts.c.id > after)
    if state is not None:
        is_asked = source_accounts.c.token.is_(None)
        chosen = chosen.where(is_asked if state == "asked" else ~is_asked)
    return _read(database, chosen.order_by(source_accounts.c.id).limit(limit))


def find(database: Database, account_id: str, choice: SourceChoice) -> SourceAccount:
    """Return the account of an id. Raises NotFoundError: there is none of this id at the sources of the choice."""
    if is_storable(account_id):
        chosen = _where_chosen(_SELECT, choice).where(source_accounts.c.id == account_id)
        for found in _read(database, chosen):
            return found
    raise _not_found()


def find_of_person(database: Database, account_id: str, person_id: int) -> SourceAccount:
    """Return an account of a person. Raises NotFoundError: the person neither has nor asks for one of this id."""
    of_person = {one.id: one for one in list_of_person(database, person_id)}
    if account_id not in of_person:
        raise _not_found()
    return of_person[account_id]


def find_by_token(database: Database, token: str) -> SourceAccount | None:
    """Return to whom an account is mapped, if it is."""
    found = _read(database, _SELECT.where(source_accounts.c.token == token))
    return next(iter(found), None)


def add(database: Database, account: SourceAccount) -> None:
    row = {name: getattr(account, name) for name in source_accounts.c.keys()}  # noqa: SIM118
    with database.writing() as connection:
        connection.execute(insert(source_accounts).values(row))


def remove(database: Database, ids: Iterable[str]) -> None:
    with database.writing() as connection:
        which = source_accounts.c.id.in_(select_texts(connection.dialect.name, ids))
        connection.execute(delete(source_accounts).where(which))


def find_source_id(database: Database, name: str) -> int | None:
    """Return the id of the source of this name, if there is one; one question whether there is or not."""
    named = select(sources.c.id).where(sources.c.name == name, IS_CONNECTED)
    with database.reading() as connection:
        return connection.scalar(named)


def find_listed(
    database: Database, named: Collection[AccountKey]
) -> Mapping[AccountKey, ListedAccount]:
    """Return those of these accounts that their sources list, in one query.

    Of an id in ASCII, capital letters matter only where two differ by them alone.
    """
    tokens = {key: make_account_token(*key) for key in named}
    folded = func.lower(source_groups.c.token)
    with database.reading() as connection:
        among = select_texts(connection.dialect.name, {each.lower() for each in tokens.values()})
        query = select(source_groups.c.token, source_groups.c.name, folded.label("folded")).where(
            source_groups.c.source_id.in_({source_id for source_id, _ in tokens}),
            folded.in_(among),
        )
        rows = list(connection.execute(query)) if tokens else []
    alike: dict[str, list[ListedAccount]] = {}
    for row in rows:
        alike.setdefault(row.folded, []).append(_to_listed(row.token, row.name))
    chosen = {
        key: _choose(alike.get(token.lower(), []), token, key[1]) for key, token in tokens.items()
    }
    return {key: listed for key, listed in chosen.items() if listed is not None}


def _choose(alike: Sequence[ListedAccount], token: str, account: str) -> ListedAccount | None:
    exact = next((one for one in alike if one.token == token), None)
    return exact or (alike[0] if account.isascii() and len(alike) == 1 else None)


def list_unmatched(
    database: Database, source_id: int, begin: str, limit: int
) -> list[ListedAccount]:
    """Return accounts of a source that belong to nobody yet, whose id or name begins with this, by their ids.

    They are neither mapped, nor does the source show an address of them.
    """
    if not is_storable(begin):
        return []
    prefix = make_account_token(source_id, "")
    token, name = source_groups.c.token, source_groups.c.name
    addressed = and_(memberships.c.token == token, memberships.c.member.startswith(_ADDRESS))
    query = select(token, name).where(
        source_groups.c.source_id == source_id,
        token.startswith(prefix, autoescape=True),
        or_(
            token.istartswith(make_account_token(source_id, begin), autoescape=True),
            name.istartswith(begin, autoescape=True),
        ),
        ~exists().where(addressed),
        ~exists().where(source_accounts.c.token == token),
    )
    with database.reading() as connection:
        rows = connection.execute(query.order_by(token).limit(limit))
        return [_to_listed(row.token, row.name) for row in rows]


def list_addresses(database: Database, token: str) -> list[str]:
    """Return the addresses that the source shows of an account."""
    query = select(memberships.c.member).where(
        memberships.c.token == token, memberships.c.member.startswith(_ADDRESS)
    )
    with database.reading() as connection:
        return [member.removeprefix(_ADDRESS) for member in connection.scalars(query)]


def name_sources(database: Database, tokens: Iterable[str]) -> Mapping[str, str]:
    """Return the names of the sources of mapped accounts, by their tokens; of others nothing."""
    among = source_accounts.c.token.in_(select_texts(database.engine.name, tokens))
    query = select(source_accounts.c.token, source_accounts.c.source).where(among)
    with database.reading() as connection:
        return dict(connection.execute(query).all())


def make_new(person_id: int, email: str, source: str, account: str, at: datetime) -> SourceAccount:
    """Return what a person begins to ask for."""
    return SourceAccount(
        id=make_random_id(),
        person_id=person_id,
        email=email,
        source_id=None,
        source=source,
        account=account,
        token=None,
        asked_at=at,
        mapped_at=None,
        mapped_by=None,
    )


def _where_chosen(
    query: Select[tuple[object, ...]], choice: SourceChoice
) -> Select[tuple[object, ...]]:
    match choice:
        case EverySource():
            return query
        case SourcesOf(person_id):
            owned = select(sources.c.id).where(sources.c.owner_id == person_id)
            return query.where(source_accounts.c.source_id.in_(owned))


def _read(database: Database, query: Select[tuple[object, ...]]) -> list[SourceAccount]:
    with database.reading() as connection:
        rows = [dict(row) for row in connection.execute(query).mappings()]
    return [SourceAccount(name=row.pop("shown_name"), **row) for row in rows]


def _to_listed(token: str, name: str) -> ListedAccount:
    return ListedAccount(parse_account_token(token), name, token)


def _not_found() -> NotFoundError:
    return NotFoundError("There is no such source account.")
