"""Where index and ledger differ: what a crash, or a lost folder, left over."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from indexing.index.protocols import IndexedDocument


@dataclass(frozen=True, slots=True)
class Difference:
    """One document of which ledger and index do not hold the same version."""

    id: str
    told: IndexedDocument | None
    """What the ledger says."""
    held: IndexedDocument | None
    """What the index has."""

    @property
    def next_generation(self) -> int:
        return 1 + max(side.generation for side in (self.told, self.held) if side)

    @property
    def is_of_access(self) -> bool:
        """Both hold the same version, and show it to others."""
        return _alike(self.told, self.held, "access")

    @property
    def is_of_count(self) -> bool:
        """Both hold the same version, cut into another number of chunks."""
        return _alike(self.told, self.held, "chunks")


def differences(
    told: Iterator[IndexedDocument], held: Iterator[IndexedDocument]
) -> Iterator[Difference]:
    """Compare two streams in ascending order of ids, a merge with flat memory.

    A document without chunks may be left out by the index, and who finds it says nothing.

    Raises:
        ValueError: a stream is not in order.
    """
    told, held = _ascending(told), _ascending(held)
    left, right = next(told, None), next(held, None)
    while left or right:
        if right is None or (left is not None and left.id < right.id):
            if left is not None and left.chunks:
                yield Difference(left.id, left, None)
            left = next(told, None)
        elif left is None or right.id < left.id:
            yield Difference(right.id, None, right)
            right = next(held, None)
        else:
            if left != right and not _both_empty(left, right):
                yield Difference(left.id, left, right)
            left, right = next(told, None), next(held, None)


def _both_empty(left: IndexedDocument, right: IndexedDocument) -> bool:
    return left.chunks == right.chunks == 0 and _alike(left, right, "access")


def _alike(left: IndexedDocument | None, right: IndexedDocument | None, but_for: str) -> bool:
    """Whether two that differ do so in this one field."""
    if left is None or right is None or left == right:
        return False
    value = getattr(right, but_for)
    return replace(left, **{but_for: value}) == right


def _ascending(documents: Iterator[IndexedDocument]) -> Iterator[IndexedDocument]:
    before: str | None = None
    for document in documents:
        if before is not None and document.id <= before:
            raise ValueError(f"not in order of ids: {document.id!r} after {before!r}")
        before = document.id
        yield document
