"""What a person holds by itself: its address, where somebody vouches for it, its groups, and its accounts of sources."""

from datetime import UTC, datetime, timedelta

from backend.access.people import BY_ADMIN, audit_name
from backend.store.accounts import group_members, people
from backend.store.accounts.membership_paths import Membership
from backend.store.accounts.own_holdings import OwnHoldings, find_holdings
from backend.store.accounts.people import Person
from backend.store.database import Database
from connectors.access import Readers

STATEMENT_LIFETIME = timedelta(days=30)
"""What an identity provider says of somebody counts for so long; each sign-in through it renews that."""


def find_own_readers(database: Database, person: Person, now: datetime | None = None) -> Readers:
    """Return the tokens of a person now."""
    held = _find_valid(database, person, now)
    is_verified = person.verified == BY_ADMIN or person.verified in held.groups
    address = [audit_name(person.email)] if is_verified else []
    return Readers.of(*address, *map(make_group_token, _list_names(held)), *held.accounts)


def add_groups_of_accounts(database: Database, own: Readers) -> Readers:
    """Add what the accounts hold whose addresses are among these tokens, as if these people asked themselves."""
    groups_of_accounts = list_groups_of_accounts(database, own)
    return own.holding_also(each.token for each in groups_of_accounts)


def list_groups_of_accounts(database: Database, own: Readers) -> list[Membership]:
    """Return in which groups the people are whose addresses are among these tokens, and which accounts of sources are mapped to them."""
    found: list[Membership] = []
    for token in sorted(own.tokens):
        kind, _, email = token.partition(":")
        person = people.find_by_email(database, email) if kind == "user" else None
        if person is not None and person.disabled_at is None:
            found += _list_groups(database, person, token)
    return found


def _list_groups(database: Database, person: Person, member: str) -> list[Membership]:
    dates, held = group_members.list_dates(database, person.id), _find_valid(database, person)
    of_groups = {make_group_token(name): dates.get(name) for name in sorted(_list_names(held))}
    return [
        Membership(member, token, is_pending=False, since=since)
        for token, since in {**of_groups, **held.accounts}.items()
    ]


def _list_names(held: OwnHoldings) -> set[str]:
    return {name for of_origin in held.groups.values() for name in of_origin}


def _find_valid(database: Database, person: Person, now: datetime | None = None) -> OwnHoldings:
    since = (now or datetime.now(UTC)) - STATEMENT_LIFETIME
    return find_holdings(database, person.id, since)


def make_group_token(name: str) -> str:
    """Return the reader token of a group. Tokens hold no blanks."""
    return f"group:{name.replace('%', '%25').replace(' ', '%20')}"
