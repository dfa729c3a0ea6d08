"""Count the documents that an asker may see, by source, type, person, month and set."""

from collections.abc import Iterable

import numpy as np

from indexing.index import person_keys
from indexing.index.person_keys import PersonCount
from indexing.index.protocols import Facets
from indexing.local import sql
from indexing.local.access_filter import NO_DATE, Columns, Mask, Numbers
from indexing.local.database import Connection, to_json_list

_BITS = 32
"""Of a label; sets store it in four bytes."""
_LOWER = (1 << _BITS) - 1


def count_facets(connection: Connection, columns: Columns, visible: Mask) -> Facets:
    """Count by facet the documents that are `visible`, by ordinal."""
    documents = columns.documents
    return Facets(
        sources=_count_labels(connection, documents["source"][visible]),
        media_types=_count_labels(connection, documents["media_type"][visible]),
        people=_count_people(connection, columns, documents["people_set"][visible]),
        months=_count_months(documents["updated"][visible]),
        sets=_count_sets(connection, columns, documents["label_set"][visible]),
    )


def _count_labels(connection: Connection, found: Numbers) -> dict[str, int]:
    values, counts = np.unique(found, return_counts=True)
    names = _label_names(connection, values.tolist())
    return {
        names[label]: count for label, count in zip(values.tolist(), counts.tolist(), strict=True)
    }


def _label_names(connection: Connection, labels: Iterable[int]) -> dict[int, str]:
    return dict(connection.execute(sql.LABEL_NAMES, (to_json_list(labels),)))


def _count_people(
    connection: Connection, columns: Columns, found: Numbers
) -> dict[str, PersonCount]:
    pairs, counts = _count_pairs(columns, found)
    owners, places = np.unique(pairs >> _BITS, return_inverse=True)
    totals = np.bincount(places, counts, len(owners)).astype(np.int64)
    # The names of all others need not be read.
    top = np.sort(np.argsort(-totals, kind="stable")[: person_keys.MAX_PEOPLE])
    owners, totals = owners[top], totals[top]
    shown = np.isin(pairs >> _BITS, owners)
    pairs, counts = pairs[shown], counts[shown]
    names = _label_names(connection, np.union1d(owners, pairs & _LOWER).tolist())
    return person_keys.count_people(
        {names[key]: count for key, count in zip(owners.tolist(), totals.tolist(), strict=True)},
        (
            (names[pair >> _BITS], names[pair & _LOWER], count)
            for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True)
        ),
    )


def _count_pairs(columns: Columns, found: Numbers) -> tuple[Numbers, Numbers]:
    """Return pairs of a person's label and a name's label, packed in one number, with document counts."""
    owners, names = columns.people_sets, columns.name_sets
    times = np.bincount(found, minlength=owners.last + 1)[owners.sets]
    held = times > 0
    pairs, places = np.unique(
        (owners.labels[held] << _BITS) | names.labels[held], return_inverse=True
    )
    return pairs, np.bincount(places, times[held]).astype(np.int64)


def _count_sets(connection: Connection, columns: Columns, found: Numbers) -> dict[str, int]:
    names = dict(connection.execute(sql.LABELS_OF_KIND, ("set",)))
    if not names:
        return {}
    held = columns.label_sets
    times = np.bincount(found, minlength=held.last + 1)[held.sets]
    totals = np.bincount(held.labels, times).astype(np.int64)
    counts = {name: int(totals[label]) for label, name in names.items() if label < len(totals)}
    return {name: count for name, count in counts.items() if count}


def _count_months(updated: Numbers) -> dict[str, int]:
    months = updated[updated != NO_DATE].astype("datetime64[us]").astype("datetime64[M]")
    values, counts = np.unique(months, return_counts=True)
    return {str(month): count for month, count in zip(values, counts.tolist(), strict=True)}
