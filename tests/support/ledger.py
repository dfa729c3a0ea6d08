"""A ledger in memory, stricter than the stored one: it refuses changes that a caller should never save."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from connectors.access import NOBODY, Access
from connectors.connector import Checkpoint
from connectors.document import Document
from indexing.index.protocols import IndexedDocument, SelectedDocument
from indexing.ingestion.ledger import (
    AccessAmended,
    BatchFinished,
    CheckpointReset,
    ContentLost,
    Entry,
    Failed,
    LedgerChange,
    Removed,
    Restored,
    SetAssignment,
    Stored,
    Touched,
    Unlisted,
    Unread,
    VersionSeen,
)

Content: TypeAlias = Literal["there", "damaged", "gone"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    document: Document
    content_hash: str
    generation: int
    chunks: int
    kept: bool = True
    """It is not marked as lost."""
    content: Content = "there"
    access_is_pending: bool = False
    listing: int = 0
    unlisted_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class FailureRow:
    failed: Failed
    tries: int
    listing: int = 0


class MemoryLedger:
    """Implements `indexing.ingestion.ledger.Ledger`."""

    def __init__(self, *sources: str) -> None:
        self.rows: dict[str, Row] = {}
        self.failures: dict[str, FailureRow] = {}
        self.checkpoints: dict[str, Checkpoint | None] = dict.fromkeys(sources)
        self.saves = 0
        self.conjunctions: set[Access] = set()
        """Those saved before a write of the index."""
        self.finished: list[BatchFinished] = []

    def sources(self) -> frozenset[str]:
        return frozenset(self.checkpoints)

    def count(self, source: str) -> int:
        return len(self._rows_of(source))

    def versions(self, ids: Sequence[str]) -> Mapping[str, str]:
        held = {each: self.rows[each].document.version for each in ids if each in self.rows}
        failed = {each: self.failures[each].failed.version for each in ids if each in self.failures}
        return held | {each: version for each, version in failed.items() if version is not None}

    def entries(self, ids: Sequence[str]) -> Mapping[str, Entry]:
        return {each: _to_entry(self.rows[each]) for each in ids if each in self.rows}

    def document(self, document_id: str) -> Document | None:
        row = self.rows.get(document_id)
        return row.document if row and row.kept and row.content == "there" else None

    def save(self, changes: Sequence[LedgerChange]) -> None:
        if not changes:
            raise ValueError("nothing to save")
        self._check(changes)
        self.saves += 1
        for change in changes:
            self._save(change)

    def save_conjunctions(self, granted: Collection[Access]) -> None:
        self.conjunctions |= set(granted)

    def mark_access_pending(self, ids: Sequence[str]) -> None:
        self._update(ids, access_is_pending=True)

    def assign_sets(self, documents: Sequence[SelectedDocument]) -> SetAssignment:
        return SetAssignment(0, {each.id: frozenset() for each in documents})

    def sets_version(self) -> int:
        return 0

    def access_pending(self, source: str) -> list[str]:
        return [each for each, row in self._rows_of(source).items() if row.access_is_pending]

    def lost_contents(self, source: str) -> Iterator[str]:
        rows = self._rows_of(source)
        return iter([key for key, row in rows.items() if row.kept and row.content == "gone"])

    def scan(self, source: str, after: str) -> Iterator[IndexedDocument]:
        for each, row in self._rows_of(source).items():
            if each > after:
                access = row.document.access if row.chunks else NOBODY
                yield IndexedDocument(each, row.generation, row.chunks, row.content_hash, access)

    def list_ungrouped(self, source: str) -> Iterator[str]:
        for each, row in list(self._rows_of(source).items()):
            if not any(one.startswith("external:1:") for one in row.document.access.readers):
                yield each

    def mark_seen(
        self, source: str, listing: int, ids: Sequence[str], reached: Checkpoint | None = None
    ) -> None:
        del reached
        self._check_source(source)
        self._update(ids, listing=listing, unlisted_since=None)
        for each in ids:
            if each in self.failures:
                self.failures[each] = replace(self.failures[each], listing=listing)

    def count_seen(self, source: str, listing: int) -> int:
        unseen = set(self.unseen(source, listing))
        failed = {
            each for each, failure in self.failures.items() if failure.failed.source == source
        }
        return len((failed | self._rows_of(source).keys()) - unseen)

    def unseen(self, source: str, listing: int) -> Iterator[str]:
        rows = {each for each, row in self._rows_of(source).items() if row.listing != listing}
        failures = {
            each
            for each, failure in self.failures.items()
            if failure.failed.source == source and failure.listing != listing
        }
        return iter(sorted(rows | failures))

    def lose_content(self, document_id: str) -> None:
        """Lose the kept content of a document."""
        self._update([document_id], content="gone")

    def damage_content(self, document_id: str) -> None:
        """Damage the kept content of a document, as a disk may."""
        self._update([document_id], content="damaged")

    def _rows_of(self, source: str) -> dict[str, Row]:
        self._check_source(source)
        rows = sorted(self.rows.items())
        return {each: row for each, row in rows if row.document.source == source}

    def _check(self, changes: Iterable[LedgerChange]) -> None:
        for change in changes:
            match change:
                case Stored(document=document, generation=generation):
                    self._check_source(document.source)
                    before = self.rows.get(document.id)
                    if before and generation <= before.generation:
                        raise ValueError(f"{document.id} is at {before.generation} already")
                case Failed(source=source) | Unread(source=source) | CheckpointReset(source=source):
                    self._check_source(source)
                case _:
                    pass

    def _check_source(self, source: str) -> None:
        if source not in self.checkpoints:
            raise ValueError(f"no such source in the ledger: {source}")

    def _save(self, change: LedgerChange) -> None:
        match change:
            case Stored():
                self._add_row(change)
            case Restored(document_id=each):
                self._update(
                    [each],
                    content_hash=change.content_hash,
                    generation=change.generation,
                    chunks=change.chunks,
                    access_is_pending=False,
                )
            case VersionSeen(each, version):
                self._set_version(each, version)
                self.failures.pop(each, None)
            case Touched(each, version):
                self._touch(each, version)
            case AccessAmended(each, access):
                self._set_access(each, access)
            case Removed(each):
                self.rows.pop(each, None)
                self.failures.pop(each, None)
            case Unlisted(each):
                if each in self.rows and self.rows[each].unlisted_since is None:
                    self._update([each], unlisted_since=datetime.now(UTC))
                self.failures.pop(each, None)
            case Failed():
                self._add_failure(change)
            case Unread(source, each):
                if each in self.rows:
                    raise ValueError(f"{each} was read")
                unread = Failed(source=source, document_id=each, item=each, reason="not read yet")
                self.failures.setdefault(each, FailureRow(unread, 0))
            case ContentLost(each):
                self._set_version(each, "")
                self._update([each], kept=False)
            case BatchFinished():
                self.finished.append(change)
            case CheckpointReset(source):
                self.checkpoints[source] = None

    def _add_row(self, change: Stored) -> None:
        before = self.rows.get(change.document.id)
        self.rows[change.document.id] = Row(
            document=change.document,
            content_hash=change.content_hash,
            generation=change.generation,
            chunks=change.chunks,
            listing=before.listing if before else 0,
        )
        self.failures.pop(change.document.id, None)

    def _touch(self, each: str, version: str) -> None:
        row = self.failures.get(each)
        if row is None or row.failed.version is None:
            self._save(VersionSeen(each, version))
        else:
            self.failures[each] = replace(row, failed=replace(row.failed, version=version))

    def _set_access(self, each: str, access: Access) -> None:
        if each in self.rows:
            document = replace(self.rows[each].document, access=access)
            self._update([each], document=document, access_is_pending=False)

    def _add_failure(self, change: Failed) -> None:
        before = self.failures.get(change.document_id)
        self.failures[change.document_id] = FailureRow(change, before.tries + 1 if before else 1)
        self._set_version(change.document_id, "")

    def _set_version(self, each: str, version: str) -> None:
        if each in self.rows:
            document = replace(self.rows[each].document, version=version)
            self._update([each], document=document)

    def _update(self, ids: Iterable[str], **values: object) -> None:
        for each in ids:
            if each in self.rows:
                self.rows[each] = replace(self.rows[each], **values)  # type: ignore[arg-type]


def _to_entry(row: Row) -> Entry:
    return Entry(
        version=row.document.version,
        content_hash=row.content_hash,
        generation=row.generation,
        access=row.document.access,
        kept=row.kept and row.content != "gone",
        unlisted_since=row.unlisted_since,
    )
