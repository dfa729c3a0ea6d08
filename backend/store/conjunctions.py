"""Conjunctions: several clauses that an asker must all meet, known to documents by one derived token.

A conjunction is saved before anything carries its token, and is never changed: the token is derived from the
clauses. It is kept when no document carries it any more, since the next one may, and an index may still hold it.
"""

from collections.abc import Iterable, Mapping

from sqlalchemy import Connection, select

from backend.store.database import inserting
from backend.store.tables import conjunction_readers, conjunctions
from connectors.access import CONJUNCTION_PREFIX, NOBODY, Access


def save(connection: Connection, granted: Iterable[Access]) -> None:
    """Save the conjunctions among these that are not saved yet, with their derived tokens."""
    # In the order of tokens, so that two transactions that save the same ones do not deadlock.
    found = sorted(
        (token, each) for each in set(granted) if each.is_conjunction for token in each.readers
    )
    rows = [{"token": token, "clauses": len(each.clauses)} for token, each in found]
    readers = [
        {"reader": reader, "conjunction": token, "clause": number}
        for token, each in found
        for number, clause in enumerate(each.to_json())
        for reader in clause
    ]
    for table, values in ((conjunctions, rows), (conjunction_readers, readers)):
        if values:
            connection.execute(inserting(connection, table).on_conflict_do_nothing(), values)


def resolve_access(connection: Connection, readers: Mapping[str, set[str]]) -> dict[str, Access]:
    """Return the access of each document from its flat tokens; nobody's where a conjunction is unknown."""
    derived = {token for tokens in readers.values() for token in tokens if _is_derived(token)}
    known = _read(connection, derived) if derived else {}
    return {document: _to_access(tokens, known) for document, tokens in readers.items()}


def _to_access(tokens: set[str], known: Mapping[str, Access]) -> Access:
    derived = next(filter(_is_derived, tokens), None)
    return Access.to(tokens) if derived is None else known.get(derived, NOBODY)


def _read(connection: Connection, tokens: Iterable[str]) -> dict[str, Access]:
    query = select(conjunction_readers).where(conjunction_readers.c.conjunction.in_(sorted(tokens)))
    clauses: dict[str, dict[int, set[str]]] = {}
    for reader, token, number in connection.execute(query):
        clauses.setdefault(token, {}).setdefault(number, set()).add(reader)
    return {token: Access.all_of(each.values()) for token, each in clauses.items()}


def _is_derived(token: str) -> bool:
    return token.startswith(CONJUNCTION_PREFIX)
