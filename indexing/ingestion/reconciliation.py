"""Finds where ledger and index differ, for example after a crash or a lost folder."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from indexing.index.protocols import IndexedDocument


@dataclass(frozen=True, slots=True)
class Difference:
    """One document of which two inventories hold different versions."""

    id: str
    expected: IndexedDocument | None
    """In the inventory that is right: the ledger, or the index that is copied."""
    actual: IndexedDocument | None
    """In the index that is to be brought in line."""

    @property
    def next_generation(self) -> int:
        return 1 + max(side.generation for side in (self.expected, self.actual) if side)

    @property
    def is_access_only(self) -> bool:
        """Whether both hold the same version, with different readers."""
        return _differ_only_in(self.expected, self.actual, "access")

    @property
    def is_chunk_count_only(self) -> bool:
        """Whether both hold the same version, with different numbers of chunks."""
        return _differ_only_in(self.expected, self.actual, "chunks")


def find_differences(
    expected: Iterator[IndexedDocument], actual: Iterator[IndexedDocument]
) -> Iterator[Difference]:
    """Merge two streams in ascending order of ids, in constant memory.

    A document without chunks may be missing from the actual stream; that is no difference.

    Raises:
        ValueError: a stream is not in order.
    """
    expected, actual = _check_order(expected), _check_order(actual)
    left, right = next(expected, None), next(actual, None)
    while left or right:
        if right is None or (left is not None and left.id < right.id):
            if left is not None and left.chunks:
                yield Difference(left.id, left, None)
            left = next(expected, None)
        elif left is None or right.id < left.id:
            yield Difference(right.id, None, right)
            right = next(actual, None)
        else:
            if left != right and not _are_empty(left, right):
                yield Difference(left.id, left, right)
            left, right = next(expected, None), next(actual, None)


def _are_empty(left: IndexedDocument, right: IndexedDocument) -> bool:
    return left.chunks == right.chunks == 0 and _differ_only_in(left, right, "access")


def _differ_only_in(
    left: IndexedDocument | None, right: IndexedDocument | None, field: str
) -> bool:
    if left is None or right is None or left == right:
        return False
    value = getattr(right, field)
    return replace(left, **{field: value}) == right


def _check_order(documents: Iterator[IndexedDocument]) -> Iterator[IndexedDocument]:
    before: str | None = None
    for document in documents:
        if before is not None and document.id <= before:
            raise ValueError(f"ids are not in ascending order: {document.id!r} after {before!r}")
        before = document.id
        yield document
