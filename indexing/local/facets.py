"""Documents that an asker may see, counted."""

import numpy as np

from indexing.index import person_keys
from indexing.index.person_keys import PersonCount
from indexing.index.protocols import Facets
from indexing.local import label_ids
from indexing.local.columns import NO_DATE, Columns, Mask, Numbers
from indexing.local.database import Connection

_BITS = 32
"""A label is smaller than what these hold: sets keep it in four bytes."""
_LOWER = (1 << _BITS) - 1


def counted(connection: Connection, columns: Columns, seen: Mask) -> Facets:
    """`seen` is by ordinal."""
    documents = columns.documents
    return Facets(
        sources=_by_label(connection, documents["source"][seen]),
        media_types=_by_label(connection, documents["media_type"][seen]),
        people=_by_person(connection, columns, documents["people_set"][seen]),
        months=_by_month(documents["updated"][seen]),
    )


def _by_label(connection: Connection, found: Numbers) -> dict[str, int]:
    values, counts = np.unique(found, return_counts=True)
    names = label_ids.names(connection, values.tolist())
    return {
        names[label]: count for label, count in zip(values.tolist(), counts.tolist(), strict=True)
    }


def _by_person(connection: Connection, columns: Columns, found: Numbers) -> dict[str, PersonCount]:
    pairs, counts = _by_pair(columns, found)
    owners, places = np.unique(pairs >> _BITS, return_inverse=True)
    totals = np.bincount(places, counts, len(owners)).astype(np.int64)
    # The names of all others need not be read.
    foremost = np.sort(np.argsort(-totals, kind="stable")[: person_keys.MAX_PEOPLE])
    owners, totals = owners[foremost], totals[foremost]
    told = np.isin(pairs >> _BITS, owners)
    pairs, counts = pairs[told], counts[told]
    names = label_ids.names(connection, np.union1d(owners, pairs & _LOWER).tolist())
    return person_keys.count_people(
        {names[key]: count for key, count in zip(owners.tolist(), totals.tolist(), strict=True)},
        (
            (names[pair >> _BITS], names[pair & _LOWER], count)
            for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True)
        ),
    )


def _by_pair(columns: Columns, found: Numbers) -> tuple[Numbers, Numbers]:
    """Labels of a person and of a name in one number, and how many documents of these sets hold both."""
    owners, called = columns.people_sets, columns.name_sets
    times = np.bincount(found, minlength=owners.last + 1)[owners.sets]
    held = times > 0
    pairs, places = np.unique(
        (owners.labels[held] << _BITS) | called.labels[held], return_inverse=True
    )
    return pairs, np.bincount(places, times[held]).astype(np.int64)


def _by_month(updated: Numbers) -> dict[str, int]:
    months = updated[updated != NO_DATE].astype("datetime64[us]").astype("datetime64[M]")
    values, counts = np.unique(months, return_counts=True)
    return {str(month): count for month, count in zip(values, counts.tolist(), strict=True)}
