"""The columns that filters compare, in memory: a few numbers per document, never its text.

Arrays are indexed by a document's ordinal; the last entry of each belongs to no document, so that index -1
(the owner of an obsolete slot) never matches.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from indexing.local import sql
from indexing.local.database import Connection, State

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


@dataclass(frozen=True, slots=True)
class LabelSets:
    """The labels of each set, as pairs of a set's id and a label."""

    sets: Numbers
    labels: Numbers
    last: int

    def containing(self, labels: Sequence[int]) -> Mask:
        """Whether each set, by id, contains any of `labels`."""
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

    def boosts(self, slots: Numbers) -> NDArray[np.float64]:
        boosts: NDArray[np.float64] = self.documents["boost"][self.owners[slots]]
        return boosts

    def rows(self, slots: Numbers) -> Numbers:
        owner = self.documents[self.owners[slots]]
        rows: Numbers = owner["first_row"] + slots - owner["first_slot"]
        return rows

    def slots(self, rows: Numbers, ordinals: Numbers) -> Numbers:
        owner = self.documents[ordinals]
        slots: Numbers = owner["first_slot"] + rows - owner["first_row"]
        return slots

    def are_current(self, rows: Numbers, ordinals: Numbers) -> Mask:
        """Return which of these rows belong to the current version of their document."""
        known = np.where(ordinals < len(self.documents), ordinals, -1)
        owner = self.documents[known]
        position = rows - owner["first_row"]
        current: Mask = (position >= 0) & (position < owner["count"])
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
