"""The filters that words of a question were read as: shown only where the asker may see now what they name.

A filter tells that a source, a person or a type of file is there; a person who lost the right to its documents does not learn it again.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from backend.search import media_type_labels
from backend.search.models import FilterKind
from backend.search.visible_names import VisibleNames
from connectors.access import Readers
from indexing.index.person_keys import person_key
from indexing.index.protocols import Filters, Index
from indexing.runtime.deadline import Deadline

Inferred = Mapping[str, Any]
"""A filter as it is stored: its kind, and what it means."""


def keep_visible(
    inferred: Sequence[Inferred], index: Index, readers: Readers, deadline: Deadline
) -> list[Inferred]:
    """Return the filters that name nothing but what may be seen, by one call of the index at most."""
    if all(one["kind"] == FilterKind.DATE for one in inferred):
        return list(inferred)
    visible = VisibleNames.of(index.facets(Filters(), readers, deadline))
    return [one for one in inferred if _is_visible(one, visible)]


def _is_visible(one: Inferred, visible: VisibleNames) -> bool:
    match FilterKind(one["kind"]):
        case FilterKind.DATE:
            return True
        case FilterKind.PERSON:
            return person_key(one["meaning"]) in visible.people
        case FilterKind.SOURCE:
            return visible.sources.keys() >= set(_names_in(one))
        case FilterKind.TYPE:
            return set(map(media_type_labels.display_name, visible.media_types)) >= set(
                _names_in(one)
            )


def _names_in(one: Inferred) -> Iterator[str]:
    yield from one["meaning"].split(", ")
