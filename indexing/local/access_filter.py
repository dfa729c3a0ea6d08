"""Which documents one asker may see through one filter, in the terms of each leg.

Access is checked three times. The masks below restrict the vector leg, and what the full-text index returns;
the conditions restrict the full-text query itself, so that forbidden documents do not take up places among
its best matches, however many there are. Both depend on columns in memory and on an index that may lag
behind, so the SQL that reads a chunk for an asker (`sql.MAY_READ`) checks again.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from connectors.access import Readers
from indexing.index.protocols import DateRange, Filters
from indexing.local import sql, tantivy_index
from indexing.local.columns import NO_DATE, Columns, Mask
from indexing.local.database import Connection, to_json_list
from indexing.local.row_mapping import to_microseconds
from indexing.local.tantivy_index import Condition

LabelKind: TypeAlias = Literal["source", "media_type", "set", "tag", "person", "name", "reader"]
"""What small numbers stand for in columns and conditions."""


@dataclass(frozen=True, slots=True)
class SearchScope:
    documents: Mask
    """By ordinal."""
    slots: Mask
    """The same, by slot of the vector files."""
    conditions: tuple[Condition, ...]
    """The same, for the full-text index, which may be ahead of or behind the tables."""

    @property
    def is_empty(self) -> bool:
        return not self.documents.any()


@dataclass(frozen=True, slots=True)
class _Restriction:
    documents: Mask
    condition: Condition


def build_scope(
    connection: Connection, columns: Columns, readers: Readers, filters: Filters
) -> SearchScope:
    restrictions = [
        _restrict_readers(connection, columns, readers),
        *_restrict_filters(connection, columns, filters),
    ]
    documents: Mask = np.logical_and.reduce([each.documents for each in restrictions])
    conditions = tuple(each.condition for each in restrictions)
    return SearchScope(documents, documents[columns.owners], conditions)


def find_labels(connection: Connection, kind: LabelKind, values: Iterable[str]) -> list[int]:
    """Return the labels of those values that the index holds."""
    found = connection.execute(sql.LABELS_OF, (kind, to_json_list(values)))
    return [label for (label,) in found]


def _restrict_readers(connection: Connection, columns: Columns, readers: Readers) -> _Restriction:
    tokens = find_labels(connection, "reader", readers.tokens)
    return _Restriction(columns.visible_to(tokens), tantivy_index.match_labels(tokens))


def _restrict_filters(
    connection: Connection, columns: Columns, filters: Filters
) -> Iterator[_Restriction]:
    documents = columns.documents
    if filters.sources is not None:
        labels = find_labels(connection, "source", filters.sources)
        yield _Restriction(np.isin(documents["source"], labels), tantivy_index.match_labels(labels))
    if filters.media_types is not None:
        labels = find_labels(connection, "media_type", filters.media_types)
        yield _Restriction(
            np.isin(documents["media_type"], labels), tantivy_index.match_labels(labels)
        )
    if filters.sets is not None:
        yield _restrict_label_sets(columns, find_labels(connection, "set", filters.sets))
    if filters.tags is not None:
        yield _restrict_label_sets(columns, find_labels(connection, "tag", filters.tags))
    if filters.people is not None:
        yield _restrict_people(columns, find_labels(connection, "person", filters.people))
    if filters.document_ids is not None:
        yield _restrict_ids(connection, columns, filters.document_ids)
    yield from _restrict_dates(columns, "created", filters.created)
    yield from _restrict_dates(columns, "updated", filters.updated)


def _restrict_label_sets(columns: Columns, labels: list[int]) -> _Restriction:
    matching = columns.label_sets.containing(labels)
    return _Restriction(
        matching[columns.documents["label_set"]], tantivy_index.match_labels(labels)
    )


def _restrict_people(columns: Columns, labels: list[int]) -> _Restriction:
    matching = columns.people_sets.containing(labels)
    return _Restriction(
        matching[columns.documents["people_set"]], tantivy_index.match_labels(labels)
    )


def _restrict_ids(connection: Connection, columns: Columns, ids: frozenset[str]) -> _Restriction:
    found = connection.execute(sql.ORDINALS_OF, (to_json_list(ids),))
    ordinals = [ordinal for (ordinal,) in found]
    documents = np.zeros(len(columns.documents), dtype=np.bool_)
    documents[ordinals] = True
    return _Restriction(documents, tantivy_index.match_documents(ordinals))


def _restrict_dates(columns: Columns, field: str, dates: DateRange) -> Iterator[_Restriction]:
    since, until = to_microseconds(dates.since), to_microseconds(dates.until)
    if since is None and until is None:
        return
    moments = columns.documents[field]
    inside = moments != NO_DATE
    if since is not None:
        inside &= moments >= since
    if until is not None:
        inside &= moments < until
    yield _Restriction(inside, tantivy_index.match_date_range(field, since, until))
