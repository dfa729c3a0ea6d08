"""Whom an asker means who names people by hand."""

from collections.abc import Iterable

from connectors.document import Readers
from indexing.index import person_keys
from indexing.index.protocols import Filters, Index
from indexing.runtime.deadline import Deadline


def meant(
    index: Index, said: Iterable[str], readers: Readers, deadline: Deadline
) -> frozenset[str]:
    """The keys of those who are called so, and each text as a key itself.

    A person whose address is known has it for a key, and is still to be found by name: among those whom
    the facets of this asker tell of.

    Raises:
        DeadlineExceededError, TemporarilyUnavailableError, ActionRequiredError: the index did not answer.
    """
    keys = frozenset(filter(None, map(person_keys.key, said)))
    if all("@" in each for each in keys):
        return keys
    known = index.facets(Filters(), readers, deadline).people
    return keys | {own for own, one in known.items() if person_keys.key(one.name) in keys}
