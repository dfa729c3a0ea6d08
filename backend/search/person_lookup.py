"""Resolve people whom an asker names by hand to the keys that the index filters by."""

from collections.abc import Iterable

from connectors.access import Readers
from indexing.index import person_keys
from indexing.index.protocols import Filters, Index
from indexing.runtime.deadline import Deadline


def resolve_people(
    index: Index, names: Iterable[str], readers: Readers, deadline: Deadline
) -> frozenset[str]:
    """Return each name as a key, and the keys of the people who have that name.

    The key of a person whose address is known is the address, and the person must still be found by
    name: among the people in the facets of this asker.

    Raises:
        DeadlineExceededError, TemporarilyUnavailableError, ActionRequiredError: the index did not answer.
    """
    keys = frozenset(filter(None, map(person_keys.person_key, names)))
    if all("@" in each for each in keys):
        return keys
    known = index.facets(Filters(), readers, deadline).people
    return keys | {own for own, one in known.items() if person_keys.person_key(one.name) in keys}
