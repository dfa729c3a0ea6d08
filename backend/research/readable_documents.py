"""Which documents that research has read may be read still."""

import time
from collections.abc import Collection
from datetime import timedelta

from backend.chat.events import SEARCH_ERRORS
from backend.chat.readable_ids import find_readable
from backend.research.dependencies import ResearchControl, ResearchDependencies
from backend.research.events import ReportsWithdrawn
from backend.research.record.research_record import ResearchRecord
from connectors.access import Readers
from connectors.errors import TemporarilyUnavailableError
from indexing.index.protocols import Index
from indexing.runtime.deadline import Deadline

CHECKING_SECONDS = 10.0
TRIES = 3
PAUSE_SECONDS = 1.0
"""Between two tries."""
_RETRY_AFTER = timedelta(seconds=30)
UNCHECKED = "Whether the documents may still be read could not be checked."


class RightsUnknownError(TemporarilyUnavailableError):
    """The index did not say what may be read."""


def list_withdrawn(
    documents: Collection[str], dependencies: ResearchDependencies
) -> frozenset[str]:
    """Return those of the documents that were deleted, or that the person may not read now.

    All of them are where the person is not recognized any more.

    Raises:
        RightsUnknownError: nothing of what was read may be shown then.
    """
    if not documents:
        return frozenset()
    readers = dependencies.resolve_readers()
    if readers is None:
        return frozenset(documents)
    return frozenset(documents) - _find_readable(documents, readers, dependencies.index)


def _find_readable(
    documents: Collection[str], readers: Readers, index: Index, tries: int = TRIES
) -> frozenset[str]:
    """Return those that may be read; an index that does not answer is asked again."""
    deadline = Deadline.after(CHECKING_SECONDS)
    try:
        return find_readable(documents, index, readers, lambda _: frozenset(), deadline)
    except SEARCH_ERRORS as error:
        if tries < 2:
            raise RightsUnknownError(f"{UNCHECKED} {error}", _RETRY_AFTER) from error
    time.sleep(PAUSE_SECONDS)
    return _find_readable(documents, readers, index, tries - 1)


def drop_withdrawn(
    record: ResearchRecord, dependencies: ResearchDependencies, control: ResearchControl
) -> ResearchRecord:
    """Leave out all that rests on documents that may not be read any more; emits ReportsWithdrawn where anything does.

    Raises:
        RightsUnknownError: as `list_withdrawn`.
    """
    withdrawn = list_withdrawn(record.documents, dependencies)
    if not withdrawn:
        return record
    left = record.without_documents(withdrawn)
    kept = {one.task.number for one in left.reports}
    gone = (one.task.number for one in record.reports if one.task.number not in kept)
    control.emit(ReportsWithdrawn(tuple(gone)))
    return left
