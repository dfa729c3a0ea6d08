"""Selects documents by id, tag and set for the writer, regardless of who may read them."""

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np

from connectors.batched import batched
from indexing.index.protocols import SelectedDocument, Selection
from indexing.local import sql
from indexing.local.access_filter import LabelKind, find_labels
from indexing.local.database import (
    Connection,
    connect,
    connect_writer,
    to_json_list,
    transaction,
    writer_lock,
)
from indexing.text.normalization import is_storable

PAGE_SIZE = 1_000
_SURROGATES = range(0xD800, 0xE000)


def select_documents(folder: Path, selection: Selection) -> Iterator[SelectedDocument]:
    """Yield the selected documents as they are when each page of them is read."""
    with closing(connect(folder)) as connection:
        ordinals = sorted(_find_ordinals(folder, connection, _without_sets(selection)))
        for page in batched(ordinals, PAGE_SIZE):
            rows = connection.execute(sql.SELECTED_DOCUMENTS, (to_json_list(page),)).fetchall()
            for document_id, encoded in rows:
                document = _to_selected(document_id, encoded)
                # An ordinal may belong to another document by now.
                if selection.accepts(document):
                    yield document


def count_documents(folder: Path, selections: Sequence[Selection]) -> int:
    with closing(connect(folder)) as connection:
        found: set[int] = set()
        for selection in selections:
            found |= _find_ordinals(folder, connection, selection)
        return len(found)


def _without_sets(selection: Selection) -> Selection:
    """Leave the sets to be seen when a page is read, where few documents are selected without them.

    To find all documents of a set takes a look at all label sets.
    """
    is_narrow = selection.prefix or selection.tag is not None or selection.document_ids is not None
    in_set = None if is_narrow else selection.in_set
    return replace(selection, in_set=in_set, outside_set=None)


def _to_selected(document_id: str, encoded: str) -> SelectedDocument:
    details = json.loads(encoded)
    return SelectedDocument(document_id, frozenset(details["tags"]), frozenset(details["sets"]))


def _find_ordinals(folder: Path, connection: Connection, selection: Selection) -> set[int]:
    if not is_storable(selection.prefix):
        return set()
    conditions = list(_conditions(folder, connection, selection))
    query = " AND ".join([sql.SELECTED_ORDINALS, *(condition for condition, _ in conditions)])
    values = [value for _, values in conditions for value in values]
    return {ordinal for (ordinal,) in connection.execute(query, values)}


def _conditions(
    folder: Path, connection: Connection, selection: Selection
) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield conditions of SQL, each with the values of its parameters."""
    if selection.prefix:
        end = _end_of_prefix(selection.prefix)
        yield (
            (sql.SELECTED_PREFIX, [selection.prefix, end])
            if end
            else ("id >= ?", [selection.prefix])
        )
    if selection.document_ids is not None:
        yield sql.SELECTED_IDS, [to_json_list(selection.document_ids)]
    has_ids = selection.prefix or selection.document_ids is not None
    in_set = sql.CHECKED_LABEL_SETS if has_ids or selection.tag else sql.SELECTED_LABEL_SETS
    by_label: tuple[tuple[str, LabelKind, str | None], ...] = (
        (sql.SELECTED_LABEL_SETS, "tag", selection.tag),
        (in_set, "set", selection.in_set),
        (sql.UNSELECTED_LABEL_SETS, "set", selection.outside_set),
    )
    for condition, kind, value in by_label:
        if value is not None:
            _ensure_index(folder, connection)
            yield condition, [_find_label_sets(connection, kind, value)]


def _end_of_prefix(prefix: str) -> str:
    """Return the first text behind all that begin with the prefix; an empty one if there is none."""
    kept = prefix.rstrip("\U0010ffff")
    if not kept:
        return ""
    following = ord(kept[-1]) + 1
    return kept[:-1] + chr(_SURROGATES.stop if following in _SURROGATES else following)


def _find_label_sets(connection: Connection, kind: LabelKind, value: str) -> str:
    """Return the label sets that contain a label, as a JSON list."""
    labels = find_labels(connection, kind, [value])
    if not labels:
        return "[]"
    found = connection.execute(sql.ALL_LABEL_SETS).fetchall()
    sizes = [len(blob) // 4 for _, blob in found]
    held = np.frombuffer(b"".join(blob for _, blob in found), "<i4")
    numbers = np.repeat(np.array([number for number, _ in found], np.int64), sizes)
    return to_json_list(numbers[held == labels[0]].tolist())


def _ensure_index(folder: Path, connection: Connection) -> None:
    if connection.execute(sql.HAS_LABEL_SET_INDEX).fetchone()[0]:
        return
    with writer_lock(folder), closing(connect_writer(folder)) as writer, transaction(writer):
        writer.execute(sql.INDEX_LABEL_SETS)
