"""Who may read what, said once for all tests: engines and sources say it in their own ways, and are compared with this."""

from connectors.access import Access, Readers


def may_read(readers: Readers, access: Access) -> bool:
    """Return whether the asker, and everybody in the audience, meets every clause, whatever derived tokens they were given."""
    return bool(access.clauses) and all(map(readers.hold_any, access.clauses))
