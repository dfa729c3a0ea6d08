"""What a person holds by itself: its groups, and the accounts of sources that are mapped to it, in one query."""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import and_, bindparam, null, select, union_all

from backend.store.accounts.groups import OWN
from backend.store.database import Database
from backend.store.schema.source_account_tables import source_accounts
from backend.store.schema.tables import group_members, groups, identities
from backend.store.sync.source_accounts import IS_OF_NOBODY_ELSE


@dataclass(frozen=True, slots=True)
class OwnHoldings:
    groups: Mapping[str, Set[str]]
    """Names by their origin: Quarry's own, and those that an issuer states, which may be none."""
    accounts: Mapping[str, datetime | None]
    """Tokens of mapped accounts, and since when they are mapped."""


# First of the three, so that PostgreSQL knows the types of its columns, which are NULL in the others.
_SELECT_ACCOUNTS = select(
    source_accounts.c.token, source_accounts.c.mapped_at, null(), null()
).where(
    source_accounts.c.person_id == bindparam("person_id"),
    source_accounts.c.token.is_not(None),
    IS_OF_NOBODY_ELSE,
)
_SELECT_STATED = (
    select(null(), null(), identities.c.issuer, groups.c.name)
    .select_from(identities)
    .outerjoin(group_members, group_members.c.person_id == identities.c.person_id)
    .outerjoin(
        groups,
        and_(groups.c.id == group_members.c.group_id, groups.c.origin == identities.c.issuer),
    )
    .where(
        identities.c.person_id == bindparam("person_id"),
        identities.c.stated_at > bindparam("since"),
    )
)
_SELECT_OWN = (
    select(null(), null(), groups.c.origin, groups.c.name)
    .join_from(groups, group_members)
    .where(group_members.c.person_id == bindparam("person_id"), groups.c.origin == OWN)
)
# Built once: every request of a person asks it, and to build it takes as long as to answer it.
_SELECT = union_all(_SELECT_ACCOUNTS, _SELECT_STATED, _SELECT_OWN)


def find_holdings(database: Database, person_id: int, since: datetime) -> OwnHoldings:
    """Return what a person holds, with the groups that an issuer has stated since then.

    An issuer that has said something else of the person alone is included, without groups.
    """
    stated: dict[str, set[str]] = {}
    accounts: dict[str, datetime | None] = {}
    with database.reading() as connection:
        rows = connection.execute(_SELECT, {"person_id": person_id, "since": since})
        for token, mapped_at, origin, name in rows:
            if token is not None:
                accounts[token] = mapped_at
            else:
                stated.setdefault(origin, set()).update([] if name is None else [name])
    return OwnHoldings(stated, accounts)
