"""From the tokens that an asker has by itself to all that it holds: the right of one request."""

from backend.store import memberships
from backend.store.database import Database
from connectors.access import Readers


def resolve_readers(database: Database, own: Readers) -> Readers:
    """Return what an asker may read as of now: add groups with their groups, scopes and conjunctions met.

    Nothing is remembered: what was withdrawn before this call counts for it.
    """
    return Readers(own.tokens | memberships.find_held_tokens(database, own.tokens))
