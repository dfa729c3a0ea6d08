"""The ledger of `indexing.ingestion.ledger`, stored in the database."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from types import MappingProxyType
from typing import Any, ClassVar

from sqlalchemy import (
    Connection,
    LargeBinary,
    and_,
    bindparam,
    cast,
    delete,
    exists,
    func,
    insert,
    null,
    select,
    union,
    update,
)

from backend.store.database import Database, exclusive, inserting, upsert
from backend.store.documents import batches, document_sets
from backend.store.documents.document_contents import encode_document
from backend.store.documents.documents import read_access, read_document, save_conjunctions
from backend.store.files import file_labels
from backend.store.schema.tables import contents, document_readers, documents, sources
from backend.store.schema.tables import failures as failure_rows
from backend.store.sync import failures, listings, runs
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

_PAGE = 1000


@dataclass(frozen=True, slots=True)
class StoredLedger:
    """Implements `indexing.ingestion.ledger.Ledger`."""

    database: Database

    def sources(self) -> frozenset[str]:
        with self.database.reading() as connection:
            return frozenset(connection.scalars(select(sources.c.name)))

    def count(self, source: str) -> int:
        query = select(func.count()).select_from(documents.join(sources))
        with self.database.reading() as connection:
            return connection.scalar(query.where(sources.c.name == source)) or 0

    def versions(self, ids: Sequence[str]) -> Mapping[str, str]:
        held = select(documents.c.id, documents.c.version).where(documents.c.id.in_(ids))
        failed = select(failure_rows.c.document_id, failure_rows.c.version).where(
            failure_rows.c.document_id.in_(ids), failure_rows.c.version.is_not(None)
        )
        with self.database.reading() as connection:
            return dict(connection.execute(held).all()) | dict(connection.execute(failed).all())

    def entries(self, ids: Sequence[str]) -> Mapping[str, Entry]:
        with self.database.reading() as connection:
            rows = connection.execute(_ENTRIES.where(documents.c.id.in_(ids))).all()
            access = read_access(connection, [row.id for row in rows])
        return {
            row.id: Entry(
                version=row.version,
                content_hash=row.content_hash,
                generation=row.generation,
                access=access.get(row.id, NOBODY),
                kept=row.kept,
                unlisted_since=row.unlisted_since,
            )
            for row in rows
        }

    def document(self, document_id: str) -> Document | None:
        with self.database.reading() as connection:
            return read_document(connection, document_id)

    def save(self, changes: Sequence[LedgerChange]) -> None:
        now = datetime.now(UTC)
        encoded = encode_contents(changes)
        with self.database.writing() as connection:
            exclusive(connection)
            run = batches.find_run(connection, changes)
            LedgerWriter(connection, read_source_ids(connection), encoded, now, run).save(changes)

    def save_conjunctions(self, granted: Collection[Access]) -> None:
        with self.database.writing() as connection:
            save_conjunctions(connection, granted)

    def mark_access_pending(self, ids: Sequence[str]) -> None:
        with self.database.writing() as connection:
            connection.execute(update(documents).where(documents.c.id.in_(ids)).values(unsettled=1))

    def assign_sets(self, documents: Sequence[SelectedDocument]) -> SetAssignment:
        assigned = document_sets.assign(self.database, documents)
        held = file_labels.find_of_files(self.database, [one.id for one in documents])
        return replace(
            assigned,
            projects={each: labels.projects for each, labels in held.items()},
            personas={each: labels.assistants for each, labels in held.items()},
        )

    def sets_version(self) -> int:
        return document_sets.read_version(self.database)

    def access_pending(self, source: str) -> list[str]:
        query = (
            select(documents.c.id)
            .join(sources)
            .where(sources.c.name == source, documents.c.unsettled == 1)
        )
        with self.database.reading() as connection:
            return sorted(connection.scalars(query))

    def lost_contents(self, source: str) -> Iterator[str]:
        after = ""
        while page := self._read_lost_page(source, after):
            yield from page
            after = page[-1]

    def scan(self, source: str, after: str) -> Iterator[IndexedDocument]:
        while page := self._read_scan_page(source, after):
            yield from page
            after = page[-1].id

    def list_ungrouped(self, source: str) -> Iterator[str]:
        after = ""
        while page := self._read_ungrouped_page(source, after):
            yield from page
            after = page[-1]

    def mark_seen(
        self, source: str, listing: int, ids: Sequence[str], reached: Checkpoint | None = None
    ) -> None:
        with self.database.writing() as connection:
            exclusive(connection)
            source_id = read_source_ids(connection)[source]
            listings.mark_listed(connection, source_id, listing, ids)
            if reached is not None:
                listings.save_reached(connection, source_id, listing, reached)

    def count_seen(self, source: str, listing: int) -> int:
        with self.database.reading() as connection:
            source_id = read_source_ids(connection)[source]
            seen = union(
                *(
                    select(key).where(table.c.source_id == source_id, table.c.listing == listing)
                    for table, key in listings.BY_DOCUMENT
                )
            )
            return connection.scalar(select(func.count()).select_from(seen.subquery())) or 0

    def unseen(self, source: str, listing: int) -> Iterator[str]:
        after = ""
        while page := self._read_unseen_page(source, listing, after):
            yield from page
            after = page[-1]

    def _read_lost_page(self, source: str, after: str) -> list[str]:
        query = (
            select(documents.c.id)
            .join(sources)
            .outerjoin(contents)
            .where(sources.c.name == source, documents.c.id > after)
            .where(contents.c.document_id.is_(None))
            .order_by(documents.c.id)
            .limit(_PAGE)
        )
        with self.database.reading() as connection:
            return list(connection.scalars(query))

    def _read_ungrouped_page(self, source: str, after: str) -> list[str]:
        with self.database.reading() as connection:
            source_id = read_source_ids(connection)[source]
            is_grouped = exists().where(
                document_readers.c.document_id == documents.c.id,
                document_readers.c.reader.startswith(f"external:{source_id}:"),
            )
            query = (
                select(documents.c.id)
                .where(documents.c.source_id == source_id, documents.c.id > after, ~is_grouped)
                .order_by(documents.c.id)
                .limit(_PAGE)
            )
            return list(connection.scalars(query))

    def _read_scan_page(self, source: str, after: str) -> list[IndexedDocument]:
        query = (
            select(documents)
            .join(sources)
            .where(sources.c.name == source, documents.c.id > after)
            .order_by(documents.c.id)
            .limit(_PAGE)
        )
        with self.database.reading() as connection:
            rows = connection.execute(query).all()
            access = read_access(connection, [row.id for row in rows if row.chunks])
        return [
            IndexedDocument(
                row.id,
                row.generation,
                row.chunks,
                row.content_hash,
                access.get(row.id, NOBODY),
            )
            for row in rows
        ]

    def _read_unseen_page(self, source: str, listing: int, after: str) -> list[str]:
        with self.database.reading() as connection:
            source_id = read_source_ids(connection)[source]
            unseen = union(
                *(
                    select(key.label("id")).where(
                        table.c.source_id == source_id, table.c.listing != listing, key > after
                    )
                    for table, key in listings.BY_DOCUMENT
                )
            )
            return list(connection.scalars(unseen.order_by("id").limit(_PAGE)))


# The test for NULL is part of the join: there SQLite looks at the type of the value only, while as a
# selected column it would read all of the content.
_ENTRIES = select(documents, contents.c.document_id.is_not(None).label("kept")).outerjoin(
    contents, and_(contents.c.document_id == documents.c.id, contents.c.content.is_not(None))
)


def read_source_ids(connection: Connection) -> dict[str, int]:
    rows = connection.execute(select(sources.c.name, sources.c.id))
    return dict(rows.all())


def encode_contents(changes: Iterable[LedgerChange]) -> dict[str, bytes]:
    """Encode the stored documents, by id: done before the lock is taken that blocks other writers."""
    return {
        change.document.id: encode_document(change.document)
        for change in changes
        if isinstance(change, Stored)
    }


@dataclass(frozen=True, slots=True)
class LedgerWriter:
    connection: Connection
    source_ids: Mapping[str, int]
    contents: Mapping[str, bytes]
    """What `encode_contents` returns for these changes."""
    now: datetime
    run: int | None
    """The run of the batch that the changes finish, if they finish one."""

    def save(self, changes: Sequence[LedgerChange]) -> None:
        """Save changes of any kinds. Raises ValueError, LeaseLostError: as `Ledger.save`."""
        names = {source for change in changes if (source := _source_name(change)) is not None}
        if unknown := names - self.source_ids.keys():
            raise ValueError(f"no such source in the ledger: {', '.join(sorted(unknown))}")
        for kind, group in groupby(changes, type):
            self._savers[kind](self, list(group))
        present = {read for change in changes if (read := _read_id(change)) is not None}
        listings.mark_present(self.connection, sorted(present))

    def _save_stored(self, group: Sequence[Stored]) -> None:
        latest = {change.document.id: change for change in group}
        upsert(self.connection, documents, [self._row(change) for change in latest.values()])
        upsert(
            self.connection,
            contents,
            [{"document_id": key, "content": self.contents[key]} for key in latest],
        )
        self._replace_readers({key: change.document.access for key, change in latest.items()})
        self._delete_failures(list(latest))

    def _row(self, change: Stored) -> dict[str, object]:
        document = change.document
        return {
            "id": document.id,
            "source_id": self.source_ids[document.source],
            "title": document.title,
            "link": document.link,
            "media_type": document.media_type,
            "version": document.version,
            "content_hash": change.content_hash,
            "generation": change.generation,
            "chunks": change.chunks,
            "updated_at": document.updated_at,
            "indexed_at": self.now,
            "unsettled": 0,
            "unlisted_since": None,
        }

    def _save_restored(self, group: Sequence[Restored]) -> None:
        self._update_documents(
            {
                "key": change.document_id,
                "content_hash": change.content_hash,
                "generation": change.generation,
                "chunks": change.chunks,
                "indexed_at": self.now,
                "unsettled": 0,
            }
            for change in group
        )

    def _save_versions(self, group: Sequence[VersionSeen]) -> None:
        self._update_documents(
            {"key": change.document_id, "version": change.version} for change in group
        )
        self._delete_failures([change.document_id for change in group])

    def _save_touched(self, group: Sequence[Touched]) -> None:
        versions = {change.document_id: change.version for change in group}
        lasting = select(failure_rows.c.document_id).where(
            failure_rows.c.document_id.in_(versions), failure_rows.c.version.is_not(None)
        )
        failed = {each: versions.pop(each) for each in self.connection.scalars(lasting)}
        for each, version in failed.items():
            same = update(failure_rows).where(failure_rows.c.document_id == each)
            self.connection.execute(same.values(version=version))
        self._save_versions([VersionSeen(each, version) for each, version in versions.items()])

    def _save_access(self, group: Sequence[AccessAmended]) -> None:
        latest = {change.document_id: change.access for change in group}
        query = select(documents.c.id).where(documents.c.id.in_(latest))
        held = list(self.connection.scalars(query))
        self._replace_readers({key: latest[key] for key in held})
        self._update_documents({"key": key, "unsettled": 0} for key in held)

    def _delete_documents(self, group: Sequence[Removed]) -> None:
        ids = [change.document_id for change in group]
        self.connection.execute(delete(documents).where(documents.c.id.in_(ids)))
        self._delete_failures(ids)

    def _save_unlisted(self, group: Sequence[Unlisted]) -> None:
        ids = [change.document_id for change in group]
        first = documents.c.id.in_(ids), documents.c.unlisted_since.is_(None)
        self.connection.execute(update(documents).where(*first).values(unlisted_since=self.now))
        self._delete_failures(ids)

    def _save_failures(self, group: Sequence[Failed]) -> None:
        fresh = failures.record(self.connection, group, self.source_ids, self.now, self.run)
        if self.run is not None:
            runs.add_counts(self.connection, self.run, {"unreadable": fresh})
        self._update_documents({"key": change.document_id, "version": ""} for change in group)

    def _save_unread(self, group: Sequence[Unread]) -> None:
        failures.record_pending(self.connection, group, self.source_ids, self.now)

    def _mark_lost(self, group: Sequence[ContentLost]) -> None:
        self._update_documents({"key": change.document_id, "version": ""} for change in group)
        held = select(documents.c.id, cast(null(), LargeBinary)).where(
            documents.c.id.in_([change.document_id for change in group])
        )
        statement = inserting(self.connection, contents).from_select(
            ["document_id", "content"], held
        )
        self.connection.execute(
            statement.on_conflict_do_update(index_elements=["document_id"], set_={"content": None})
        )

    def _reset_checkpoints(self, group: Sequence[CheckpointReset]) -> None:
        names = [change.source for change in group]
        reset = update(sources).where(sources.c.name.in_(names))
        self.connection.execute(reset.values(checkpoint=None))

    def _finish_batches(self, group: Sequence[BatchFinished]) -> None:
        for change in group:
            batches.finish(self.connection, change)

    def _replace_readers(self, access: Mapping[str, Access]) -> None:
        condition = document_readers.c.document_id.in_(list(access))
        self.connection.execute(delete(document_readers).where(condition))
        save_conjunctions(self.connection, access.values())
        rows = [
            {"document_id": document_id, "reader": reader}
            for document_id, granted in access.items()
            for reader in sorted(granted.readers)
        ]
        if rows:
            self.connection.execute(insert(document_readers), rows)

    def _delete_failures(self, ids: Sequence[str]) -> None:
        condition = failure_rows.c.document_id.in_(ids)
        self.connection.execute(delete(failure_rows).where(condition))

    def _update_documents(self, values: Iterable[Mapping[str, object]]) -> None:
        """Set the same columns of many documents, each named by `key`."""
        rows = [dict(row) for row in values]
        if rows:
            named: dict[str, object] = {name: bindparam(name) for name in rows[0] if name != "key"}
            self.connection.execute(
                update(documents).where(documents.c.id == bindparam("key")).values(named), rows
            )

    _savers: ClassVar[Mapping[type[LedgerChange], Callable[["LedgerWriter", Any], None]]] = (
        MappingProxyType(
            {
                Stored: _save_stored,
                Restored: _save_restored,
                VersionSeen: _save_versions,
                Touched: _save_touched,
                AccessAmended: _save_access,
                Removed: _delete_documents,
                Unlisted: _save_unlisted,
                Failed: _save_failures,
                Unread: _save_unread,
                ContentLost: _mark_lost,
                CheckpointReset: _reset_checkpoints,
                BatchFinished: _finish_batches,
            }
        )
    )
    """What saves a group of changes of each type."""


def _source_name(change: LedgerChange) -> str | None:
    match change:
        case Stored(document=document):
            return document.source
        case Failed(source=source) | Unread(source=source) | CheckpointReset(source=source):
            return source
        case _:
            return None


def _read_id(change: LedgerChange) -> str | None:
    """Return the document that the source has just been found to hold."""
    match change:
        case Stored(document=document):
            return document.id
        case VersionSeen(document_id=each) | Touched(document_id=each) | Failed(document_id=each):
            return each
        case _:
            return None
