"""Sources, types, sets, tags, people and reader tokens as small numbers, for columns and conditions."""

import json
from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

import numpy as np

from indexing.local import sql
from indexing.local.database import Connection, to_json_list

Kind: TypeAlias = Literal["source", "media_type", "set", "tag", "person", "name", "reader"]


def known(connection: Connection, kind: Kind, values: Iterable[str]) -> list[int]:
    """Labels of those `values` that the index has seen."""
    found = connection.execute(sql.LABELS_OF, (kind, to_json_list(values)))
    return [label for (label,) in found]


def names(connection: Connection, labels: Iterable[int]) -> dict[int, str]:
    return dict(connection.execute(sql.LABEL_NAMES, (to_json_list(labels),)))


class Interned:
    """Gives each value its label; to be used within one transaction of a writer."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._known: dict[tuple[str, *tuple[str | bytes, ...]], int] = {}
        self._reader_sets: dict[frozenset[str], int] = {}

    def label(self, kind: Kind, value: str) -> int:
        return self._put(sql.ADD_LABEL, sql.LABEL, kind, value)

    def labels(self, kind: Kind, values: Iterable[str]) -> list[int]:
        return [self.label(kind, value) for value in values]

    def label_set(self, labels: Iterable[int]) -> int:
        return self._put(sql.ADD_LABEL_SET, sql.LABEL_SET, packed(labels))

    def people_set(self, people: Mapping[int, int]) -> int:
        """Of the labels of people, by each the label of the name."""
        names = np.array([people[person] for person in sorted(people)], "<i4").tobytes()
        return self._put(sql.ADD_PEOPLE_SET, sql.PEOPLE_SET, packed(people), names)

    def reader_set(self, tokens: frozenset[str]) -> int:
        known = self._reader_sets.get(tokens)
        if known is None:
            known = self._reader_sets[tokens] = self._put_reader_set(sorted(tokens))
        return known

    def _put_reader_set(self, tokens: list[str]) -> int:
        labels = packed(self.labels("reader", tokens))
        self._connection.execute(sql.ADD_READER_SET, (json.dumps(tokens), labels))
        number = self._number(sql.READER_SET, json.dumps(tokens))
        self._connection.executemany(
            sql.ADD_READER_SET_TOKEN, [(number, token) for token in tokens]
        )
        return number

    def _put(self, adding: str, number: str, *values: str | bytes) -> int:
        """The number of these values, which are added where they are new."""
        known = self._known.get((adding, *values))
        if known is None:
            self._connection.execute(adding, values)
            known = self._known[adding, *values] = self._number(number, *values)
        return known

    def _number(self, statement: str, *values: str | bytes) -> int:
        number: int = self._connection.execute(statement, values).fetchone()[0]
        return number


def packed(labels: Iterable[int]) -> bytes:
    return np.array(sorted(labels), "<i4").tobytes()


def unpacked(blob: bytes) -> list[int]:
    found: list[int] = np.frombuffer(blob, "<i4").tolist()
    return found
