"""Which documents that research has read may be read still."""

from collections.abc import Collection

from backend.chat.events import SEARCH_ERRORS
from backend.chat.readable_ids import find_readable
from backend.research.dependencies import ResearchControl, ResearchDependencies
from backend.research.events import ReportsWithdrawn
from backend.research.record.research_record import ResearchRecord
from connectors.errors import QuarryError
from indexing.runtime.deadline import Deadline

CHECKING_SECONDS = 10.0
UNCHECKED = "Whether the documents may still be read could not be checked."


class RightsUnknownError(QuarryError):
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
    deadline = Deadline.after(CHECKING_SECONDS)
    try:
        readable = find_readable(
            documents, dependencies.index, readers, lambda _: frozenset(), deadline
        )
    except SEARCH_ERRORS as error:
        raise RightsUnknownError(f"{UNCHECKED} {error}") from error
    return frozenset(documents) - readable


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
