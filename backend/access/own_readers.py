"""What a person holds by itself: its address, where somebody vouches for it, and its groups."""

from datetime import UTC, datetime, timedelta

from backend.access.people import BY_ADMIN, audit_name
from backend.store import groups, people
from backend.store.database import Database
from backend.store.people import Person
from connectors.access import Readers

STATEMENT_LIFETIME = timedelta(days=30)
"""What an identity provider says of somebody counts for so long; each sign-in through it renews that."""


def find_own_readers(database: Database, person: Person, now: datetime | None = None) -> Readers:
    """Return the tokens of a person as of now."""
    since = (now or datetime.now(UTC)) - STATEMENT_LIFETIME
    valid = groups.list_valid(database, person.id, since)
    is_verified = person.verified == BY_ADMIN or person.verified in valid
    address = [audit_name(person.email)] if is_verified else []
    names = {name for of_origin in valid.values() for name in of_origin}
    return Readers.of(*address, *map(make_group_token, names))


def add_groups_of_accounts(database: Database, own: Readers) -> Readers:
    """Add what the accounts hold whose addresses are among these tokens, as if these people asked themselves."""
    tokens = set(own.tokens)
    for token in own.tokens:
        kind, _, email = token.partition(":")
        person = people.find_by_email(database, email) if kind == "user" else None
        if person is not None and person.disabled_at is None:
            tokens |= find_own_readers(database, person).tokens
    return Readers(frozenset(tokens))


def make_group_token(name: str) -> str:
    """Return the reader token of a group. Tokens hold no blanks."""
    return f"group:{name.replace('%', '%25').replace(' ', '%20')}"
