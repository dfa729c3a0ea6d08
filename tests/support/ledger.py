"""A ledger in memory, stricter than the stored one: it refuses what a caller should never say."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from connectors.access import NOBODY, Access
from connectors.connector import Checkpoint
from connectors.document import Document
from indexing.index.protocols import IndexedDocument
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
    Stored,
    Unread,
    VersionSeen,
)

Content: TypeAlias = Literal["there", "damaged", "gone"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    document: Document
    content_hash: str
    generation: int
    chunks: int
    kept: bool = True
    """It is not known to be lost."""
    content: Content = "there"
    unsettled: bool = False
    listing: int = 0


@dataclass(frozen=True, slots=True)
class Trouble:
    failed: Failed
    tries: int
    listing: int = 0


class MemoryLedger:
    """Implements `indexing.ingestion.ledger.Ledger`."""

    def __init__(self, *sources: str) -> None:
        self.lines: dict[str, Line] = {}
        self.troubles: dict[str, Trouble] = {}
        self.checkpoints: dict[str, Checkpoint | None] = dict.fromkeys(sources)
        self.saves = 0
        self.finished: list[BatchFinished] = []

    def sources(self) -> frozenset[str]:
        return frozenset(self.checkpoints)

    def count(self, source: str) -> int:
        return len(self._of(source))

    def versions(self, ids: Sequence[str]) -> Mapping[str, str]:
        return {each: self.lines[each].document.version for each in ids if each in self.lines}

    def entries(self, ids: Sequence[str]) -> Mapping[str, Entry]:
        return {each: _entry(self.lines[each]) for each in ids if each in self.lines}

    def document(self, document_id: str) -> Document | None:
        line = self.lines.get(document_id)
        return line.document if line and line.kept and line.content == "there" else None

    def save(self, changes: Sequence[LedgerChange]) -> None:
        if not changes:
            raise ValueError("nothing to save")
        self._check(changes)
        self.saves += 1
        for change in changes:
            self._save(change)

    def mark_access_pending(self, ids: Sequence[str]) -> None:
        self._change(ids, unsettled=True)

    def access_pending(self, source: str) -> list[str]:
        return [each for each, line in self._of(source).items() if line.unsettled]

    def lost_contents(self, source: str) -> Iterator[str]:
        lines = self._of(source)
        return iter([key for key, line in lines.items() if line.kept and line.content == "gone"])

    def scan(self, source: str, after: str) -> Iterator[IndexedDocument]:
        for each, line in self._of(source).items():
            if each > after:
                access = line.document.access if line.chunks else NOBODY
                yield IndexedDocument(each, line.generation, line.chunks, line.content_hash, access)

    def mark_seen(self, source: str, listing: int, ids: Sequence[str]) -> None:
        self._check_source(source)
        self._change(ids, listing=listing)
        for each in ids:
            if each in self.troubles:
                self.troubles[each] = replace(self.troubles[each], listing=listing)

    def unseen(self, source: str, listing: int) -> Iterator[str]:
        lines = {each for each, line in self._of(source).items() if line.listing != listing}
        troubles = {
            each
            for each, trouble in self.troubles.items()
            if trouble.failed.source == source and trouble.listing != listing
        }
        return iter(sorted(lines | troubles))

    def lose(self, document_id: str) -> None:
        """As if what is kept of a document had never been."""
        self._change([document_id], content="gone")

    def damage(self, document_id: str) -> None:
        """As a disk may."""
        self._change([document_id], content="damaged")

    def _of(self, source: str) -> dict[str, Line]:
        self._check_source(source)
        lines = sorted(self.lines.items())
        return {each: line for each, line in lines if line.document.source == source}

    def _check(self, changes: Iterable[LedgerChange]) -> None:
        for change in changes:
            match change:
                case Stored(document=document, generation=generation):
                    self._check_source(document.source)
                    before = self.lines.get(document.id)
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
                self._store(change)
            case Restored(document_id=each):
                self._change(
                    [each],
                    content_hash=change.content_hash,
                    generation=change.generation,
                    chunks=change.chunks,
                    unsettled=False,
                )
            case VersionSeen(each, version):
                self._version(each, version)
                self.troubles.pop(each, None)
            case AccessAmended(each, access):
                self._amend(each, access)
            case Removed(each):
                self.lines.pop(each, None)
                self.troubles.pop(each, None)
            case Failed():
                self._fail(change)
            case Unread(source, each):
                if each in self.lines:
                    raise ValueError(f"{each} was read")
                unread = Failed(source=source, document_id=each, item=each, reason="not read yet")
                self.troubles.setdefault(each, Trouble(unread, 0))
            case ContentLost(each):
                self._version(each, "")
                self._change([each], kept=False)
            case BatchFinished():
                self.finished.append(change)
            case CheckpointReset(source):
                self.checkpoints[source] = None

    def _store(self, change: Stored) -> None:
        before = self.lines.get(change.document.id)
        self.lines[change.document.id] = Line(
            document=change.document,
            content_hash=change.content_hash,
            generation=change.generation,
            chunks=change.chunks,
            listing=before.listing if before else 0,
        )
        self.troubles.pop(change.document.id, None)

    def _amend(self, each: str, access: Access) -> None:
        if each in self.lines:
            document = replace(self.lines[each].document, access=access)
            self._change([each], document=document, unsettled=False)

    def _fail(self, change: Failed) -> None:
        before = self.troubles.get(change.document_id)
        self.troubles[change.document_id] = Trouble(change, before.tries + 1 if before else 1)
        self._version(change.document_id, "")

    def _version(self, each: str, version: str) -> None:
        if each in self.lines:
            document = replace(self.lines[each].document, version=version)
            self._change([each], document=document)

    def _change(self, ids: Iterable[str], **values: object) -> None:
        for each in ids:
            if each in self.lines:
                self.lines[each] = replace(self.lines[each], **values)  # type: ignore[arg-type]


def _entry(line: Line) -> Entry:
    return Entry(
        version=line.document.version,
        content_hash=line.content_hash,
        generation=line.generation,
        access=line.document.access,
        kept=line.kept and line.content != "gone",
    )
