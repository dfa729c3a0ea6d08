"""Which documents one asker may see through one filter, in the terms of each leg.

Access is checked three times. The masks below restrict the vector leg, and what the full-text index returns;
the conditions restrict the full-text query itself, so that forbidden documents do not take up places among
its best matches, however many there are. Both depend on columns in memory and on an index that may lag
behind, so the SQL by which `VisibleChunks` reads a chunk for an asker (`sql.MAY_READ`) checks again.

The columns hold what filters compare: a few numbers per document, never its text. Arrays are indexed by a
document's ordinal; the last entry of each belongs to no document, so that index -1 (the owner of an obsolete
slot) never matches.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from connectors.access import Readers
from indexing.chunking.chunk import Chunk
from indexing.index.protocols import DateRange, Filters
from indexing.local import sql, tantivy_index
from indexing.local.database import (
    Connection,
    FetchedChunk,
    Row,
    State,
    read_chunks,
    to_json_list,
    to_microseconds,
)
from indexing.local.tantivy_index import Condition
from indexing.text.analysis import NO_LANGUAGES, Languages
from indexing.text.normalization import is_storable

Numbers = NDArray[np.int64]
Mask = NDArray[np.bool_]

NO_DATE = np.iinfo(np.int64).min

DOCUMENT = np.dtype(
    [
        ("ordinal", np.int64),
        ("first_row", np.int64),
        ("count", np.int64),
        ("first_slot", np.int64),
        ("reader_set", np.int64),
        ("label_set", np.int64),
        ("source", np.int64),
        ("media_type", np.int64),
        ("people_set", np.int64),
        ("boost", np.float64),
        ("hidden", np.bool_),
        ("created", np.int64),
        ("updated", np.int64),
    ]
)

LabelKind: TypeAlias = Literal[
    "source",
    "media_type",
    "set",
    "project",
    "persona",
    "tag",
    "person",
    "name",
    "reader",
    "language",
]
"""What small numbers mean in columns and conditions."""
CACHED_SCOPES = 64


@dataclass(frozen=True, slots=True)
class LabelSets:
    """The labels of each set, as pairs of a set's id and a label."""

    sets: Numbers
    labels: Numbers
    last: int

    def containing(self, labels: Sequence[int]) -> Mask:
        """Return whether each set, by id, contains any of `labels`."""
        found = np.zeros(self.last + 1, dtype=np.bool_)
        found[self.sets[np.isin(self.labels, labels)]] = True
        return found


NO_SETS = LabelSets(np.empty(0, np.int64), np.empty(0, np.int64), 0)


@dataclass(frozen=True, slots=True)
class Columns:
    counter: int
    vector_epoch: int
    documents: NDArray[np.void]
    """Of dtype DOCUMENT, by ordinal; a free ordinal has 0 chunks."""
    owners: NDArray[np.int32]
    """The ordinal that each slot belongs to; -1 for an obsolete one."""
    reader_sets: LabelSets
    label_sets: LabelSets
    people_sets: LabelSets
    """Keys of people."""
    name_sets: LabelSets
    """Their display names, at the same position."""

    def visible_to(self, tokens: Sequence[int]) -> Mask:
        """Return which documents a holder of one of these reader labels may see."""
        documents = self.documents
        allowed = self.reader_sets.containing(tokens)[documents["reader_set"]]
        visible: Mask = allowed & ~documents["hidden"] & (documents["count"] > 0)
        return visible

    def labels_of(self, documents: Mask) -> frozenset[int]:
        """Return the labels of sets, projects, assistants, tags and languages that any of these documents has."""
        used = np.zeros(self.label_sets.last + 1, dtype=np.bool_)
        used[self.documents["label_set"][documents]] = True
        return frozenset(self.label_sets.labels[used[self.label_sets.sets]].tolist())

    def boosts(self, slots: Numbers) -> NDArray[np.float64]:
        boosts: NDArray[np.float64] = self.documents["boost"][self.owners[slots]]
        return boosts

    def rows(self, slots: Numbers) -> Numbers:
        owner, documents = self.owners[slots], self.documents
        rows: Numbers = documents["first_row"][owner] + slots - documents["first_slot"][owner]
        return rows

    def slots(self, rows: Numbers, ordinals: Numbers) -> Numbers:
        documents = self.documents
        slots: Numbers = documents["first_slot"][ordinals] + rows - documents["first_row"][ordinals]
        return slots

    def are_current(self, rows: Numbers, ordinals: Numbers, among: Mask) -> Mask:
        """Return which of these rows belong to the current version of their document, and that to some documents."""
        documents = self.documents
        known = np.where(ordinals < len(documents), ordinals, -1)
        # Of a field first, then of the rows: copying whole records takes several times as long.
        position = rows - documents["first_row"][known]
        current: Mask = (position >= 0) & (position < documents["count"][known]) & among[known]
        return current


def load_columns(connection: Connection, state: State, former: Columns | None) -> Columns:
    """Load the columns of `state`; given the `former` ones, read only what has changed since."""
    if former is None or former.vector_epoch != state.vector_epoch:
        former = _empty(state)
    documents = np.fromiter(
        connection.execute(
            sql.CHANGED_COLUMNS if former.counter >= 0 else sql.ALL_COLUMNS, (former.counter,)
        ),
        DOCUMENT,
    )
    freed = [n for (n,) in connection.execute(sql.CHANGED_TOMBSTONES, (former.counter,))]
    return Columns(
        state.counter,
        state.vector_epoch,
        _merge_documents(former.documents, documents, freed),
        _merge_owners(former, documents, freed, state.slots),
        _merge_sets(
            former.reader_sets,
            connection.execute(sql.READER_SETS_SINCE, (former.reader_sets.last,)),
        ),
        _merge_sets(
            former.label_sets, connection.execute(sql.LABEL_SETS_SINCE, (former.label_sets.last,))
        ),
        _merge_sets(
            former.people_sets,
            connection.execute(sql.PEOPLE_SETS_SINCE, (former.people_sets.last,)),
        ),
        _merge_sets(
            former.name_sets, connection.execute(sql.NAME_SETS_SINCE, (former.name_sets.last,))
        ),
    )


def _empty(state: State) -> Columns:
    return Columns(
        -1,
        state.vector_epoch,
        np.zeros(1, DOCUMENT),
        np.empty(0, np.int32),
        NO_SETS,
        NO_SETS,
        NO_SETS,
        NO_SETS,
    )


def _merge_documents(
    former: NDArray[np.void], changed: NDArray[np.void], freed: Sequence[int]
) -> NDArray[np.void]:
    last = max([len(former) - 2, *freed, int(changed["ordinal"].max(initial=-1))])
    documents = np.zeros(last + 2, DOCUMENT)
    documents[: len(former) - 1] = former[:-1]
    documents[np.array(freed, np.int64)] = np.zeros((), DOCUMENT)
    documents[changed["ordinal"]] = changed
    return documents


def _merge_owners(
    former: Columns, changed: NDArray[np.void], freed: Sequence[int], slots: int
) -> NDArray[np.int32]:
    owners = np.full(slots, -1, np.int32)
    owners[: len(former.owners)] = former.owners[:slots]
    touched = np.concatenate([changed["ordinal"], np.array(freed, np.int64)])
    outdated = former.documents[touched[touched < len(former.documents) - 1]]
    owners[_ranges(outdated["first_slot"], outdated["count"])] = -1
    owners[_ranges(changed["first_slot"], changed["count"])] = np.repeat(
        changed["ordinal"], changed["count"]
    )
    return owners


def _ranges(starts: Numbers, counts: Numbers) -> Numbers:
    """Return the numbers `start … start + count - 1` of every pair, one after the other."""
    before = np.cumsum(counts) - counts
    numbers: Numbers = np.repeat(starts - before, counts) + np.arange(int(counts.sum()))
    return numbers


def _merge_sets(former: LabelSets, added: Iterable[tuple[int, bytes]]) -> LabelSets:
    found = list(added)
    if not found:
        return former
    labels = np.frombuffer(b"".join(blob for _, blob in found), "<i4").astype(np.int64)
    lengths = [len(blob) // 4 for _, blob in found]
    sets = np.repeat(np.array([number for number, _ in found], np.int64), lengths)
    return LabelSets(
        np.concatenate([former.sets, sets]), np.concatenate([former.labels, labels]), found[-1][0]
    )


@dataclass(frozen=True, slots=True)
class SearchScope:
    documents: Mask
    """By ordinal."""
    slots: Mask
    """The same, by slot of the vector files."""
    conditions: tuple[Condition, ...]
    """The same, for the full-text index, which may be ahead of or behind the tables."""
    languages: Languages
    """Of these documents."""
    known_words: set[str] = field(default_factory=set, compare=False)
    """Words that were found in these documents. As the scope, they are those of one snapshot."""

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
    return SearchScope(
        documents,
        documents[columns.owners],
        tuple(each.condition for each in restrictions),
        _find_languages(connection, columns, documents),
    )


def _find_languages(connection: Connection, columns: Columns, documents: Mask) -> Languages:
    """Return the languages of these documents only: how a query is stemmed must reveal nothing of others."""
    found = dict(connection.execute(sql.LABELS_OF_KIND, ("language",)))
    if not found:
        return NO_LANGUAGES
    held = columns.labels_of(documents)
    return frozenset(code for label, code in found.items() if label in held)


def find_labels(connection: Connection, kind: LabelKind, values: Iterable[str]) -> list[int]:
    """Return the labels of those values that are in the index."""
    found = connection.execute(sql.LABELS_OF, (kind, to_json_list(values)))
    return [label for (label,) in found]


def _restrict_readers(connection: Connection, columns: Columns, readers: Readers) -> _Restriction:
    """Require one token of each set. Sets that hold the same tokens of those in the index are one."""
    held = {
        tuple(sorted(find_labels(connection, "reader", tokens))) for tokens in readers.token_sets
    }
    documents: Mask = np.logical_and.reduce([columns.visible_to(labels) for labels in held])
    conditions = [tantivy_index.match_labels(labels) for labels in sorted(held)]
    return _Restriction(documents, _match_each(conditions))


def _match_each(conditions: Sequence[Condition]) -> Condition:
    return conditions[0] if len(conditions) == 1 else tantivy_index.match_all(conditions)


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
    for kind, values in _shared_values(filters):
        if values is not None:
            yield _restrict_label_sets(columns, find_labels(connection, kind, values))
    if filters.people is not None:
        yield _restrict_people(columns, find_labels(connection, "person", filters.people))
    if filters.document_ids is not None:
        yield _restrict_ids(connection, columns, filters.document_ids)
    yield from _restrict_dates(columns, "created", filters.created)
    yield from _restrict_dates(columns, "updated", filters.updated)
    if filters.any_of:
        yield _restrict_any(connection, columns, filters.any_of)


def _restrict_any(
    connection: Connection, columns: Columns, alternatives: Sequence[Filters]
) -> _Restriction:
    accepted = [_combine(connection, columns, each) for each in alternatives]
    documents: Mask = np.logical_or.reduce([each.documents for each in accepted])
    return _Restriction(documents, tantivy_index.match_any([each.condition for each in accepted]))


def _combine(connection: Connection, columns: Columns, filters: Filters) -> _Restriction:
    """Return what all of the filters accept."""
    restrictions = list(_restrict_filters(connection, columns, filters))
    everything: Mask = np.ones(len(columns.documents), dtype=np.bool_)
    if not restrictions:
        return _Restriction(everything, tantivy_index.match_everything())
    documents: Mask = np.logical_and.reduce([each.documents for each in restrictions])
    return _Restriction(
        documents, tantivy_index.match_all([each.condition for each in restrictions])
    )


def _shared_values(filters: Filters) -> Iterator[tuple[LabelKind, frozenset[str] | None]]:
    yield "set", filters.sets
    yield "tag", filters.tags
    yield "project", filters.project_id_filter
    yield "persona", filters.persona_id_filter


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


class ScopeCache:
    """Recently used scopes of one snapshot: people ask more than once, with the same filters."""

    def __init__(self) -> None:
        self._scopes: dict[tuple[Readers, Filters], SearchScope] = {}

    def get(
        self, connection: Connection, columns: Columns, readers: Readers, filters: Filters
    ) -> SearchScope:
        scope = self._scopes.get((readers, filters))
        if scope is None:
            scope = build_scope(connection, columns, readers, filters)
            if len(self._scopes) >= CACHED_SCOPES:
                self._scopes.clear()
            self._scopes[readers, filters] = scope
        return scope


class VisibleChunks:
    """Reads chunks for one asker: a chunk that the asker may not read is not found.

    All chunks that leave the local index go through here, and each of its statements checks access.
    """

    def __init__(self, connection: Connection, readers: Readers) -> None:
        """Use `connection`, which is in a read transaction for as long as this is used."""
        self._connection = connection
        self._readers = readers

    @cached_property
    def _tokens(self) -> str:
        return to_json_list(self._readers.tokens)

    @cached_property
    def _audience(self) -> str:
        return f"[{','.join(map(to_json_list, self._readers.audience))}]"

    def fetch(self, rows: Iterable[int]) -> dict[int, FetchedChunk]:
        """Return the visible ones of these rows."""
        found = self._select(sql.CHUNKS_TO_SHOW, rows=to_json_list(rows))
        return {fetched.row: fetched for fetched in read_chunks(found)}

    def texts(self, rows: Sequence[int]) -> Mapping[int, str]:
        """Return the embedded texts of the visible ones of these rows."""
        return dict(self._select(sql.TEXTS_TO_CHECK, rows=to_json_list(rows)))

    def range(self, document_id: str, start: int, end: int) -> list[Chunk]:
        """Return the chunks `[start, end)` of a document, if it is visible."""
        if not is_storable(document_id):
            return []
        found = self._select(sql.CHUNKS_OF_RANGE, id=document_id, start=start, end=end)
        return [fetched.chunk for fetched in read_chunks(found)]

    def _select(self, statement: str, **values: str | int) -> list[Row]:
        return self._connection.execute(
            statement, {"tokens": self._tokens, "audience": self._audience, **values}
        ).fetchall()
