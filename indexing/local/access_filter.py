"""What one asker may see through one filter, in the terms of each leg."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from connectors.access import Readers
from indexing.index.protocols import DateRange, Filters
from indexing.local import label_ids, sql, tantivy_index
from indexing.local.columns import NO_DATE, Columns, Mask
from indexing.local.database import Connection, to_json_list
from indexing.local.row_mapping import to_microseconds
from indexing.local.tantivy_index import Condition


@dataclass(frozen=True, slots=True)
class Scope:
    documents: Mask
    """By ordinal."""
    slots: Mask
    """The same, by slot of the vector files."""
    conditions: tuple[Condition, ...]
    """The same, for the full-text index. It may lag behind a write that has not returned yet."""

    @property
    def is_empty(self) -> bool:
        return not self.documents.any()


@dataclass(frozen=True, slots=True)
class _Sieve:
    documents: Mask
    condition: Condition


def scope(connection: Connection, columns: Columns, readers: Readers, filters: Filters) -> Scope:
    sieves = [_readers(connection, columns, readers), *_filters(connection, columns, filters)]
    documents: Mask = np.logical_and.reduce([sieve.documents for sieve in sieves])
    conditions = tuple(sieve.condition for sieve in sieves)
    return Scope(documents, documents[columns.owners], conditions)


def _readers(connection: Connection, columns: Columns, readers: Readers) -> _Sieve:
    tokens = label_ids.known(connection, "reader", readers.tokens)
    return _Sieve(columns.shown_to(tokens), tantivy_index.any_label(tokens))


def _filters(connection: Connection, columns: Columns, filters: Filters) -> Iterator[_Sieve]:
    documents = columns.documents
    if filters.sources is not None:
        wanted = label_ids.known(connection, "source", filters.sources)
        yield _Sieve(np.isin(documents["source"], wanted), tantivy_index.any_label(wanted))
    if filters.media_types is not None:
        wanted = label_ids.known(connection, "media_type", filters.media_types)
        yield _Sieve(np.isin(documents["media_type"], wanted), tantivy_index.any_label(wanted))
    if filters.sets is not None:
        yield _label_sets(columns, label_ids.known(connection, "set", filters.sets))
    if filters.tags is not None:
        yield _label_sets(columns, label_ids.known(connection, "tag", filters.tags))
    if filters.people is not None:
        yield _people(columns, label_ids.known(connection, "person", filters.people))
    if filters.document_ids is not None:
        yield _document_ids(connection, columns, filters.document_ids)
    yield from _dates(columns, "created", filters.created)
    yield from _dates(columns, "updated", filters.updated)


def _label_sets(columns: Columns, wanted: list[int]) -> _Sieve:
    holding = columns.label_sets.holding(wanted)
    return _Sieve(holding[columns.documents["label_set"]], tantivy_index.any_label(wanted))


def _people(columns: Columns, wanted: list[int]) -> _Sieve:
    holding = columns.people_sets.holding(wanted)
    return _Sieve(holding[columns.documents["people_set"]], tantivy_index.any_label(wanted))


def _document_ids(connection: Connection, columns: Columns, ids: frozenset[str]) -> _Sieve:
    found = connection.execute(sql.ORDINALS_OF, (to_json_list(ids),))
    ordinals = [ordinal for (ordinal,) in found]
    documents = np.zeros(len(columns.documents), dtype=np.bool_)
    documents[ordinals] = True
    return _Sieve(documents, tantivy_index.any_document(ordinals))


def _dates(columns: Columns, field: str, dates: DateRange) -> Iterator[_Sieve]:
    since, until = to_microseconds(dates.since), to_microseconds(dates.until)
    if since is None and until is None:
        return
    moments = columns.documents[field]
    inside = moments != NO_DATE
    if since is not None:
        inside &= moments >= since
    if until is not None:
        inside &= moments < until
    yield _Sieve(inside, tantivy_index.between(field, since, until))
