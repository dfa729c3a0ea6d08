"""Columns that follow changes are those that a fresh start would load."""

import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from connectors.document import Person
from indexing.index.protocols import Amend, Delete, IndexChange
from indexing.local import open_writer
from indexing.local.access_filter import Columns, load_columns
from indexing.local.database import connect, read_state, read_transaction
from tests.support.chunks import IDENTITY, document


def changes(rng: random.Random) -> Iterator[IndexChange]:
    generation = 1
    while True:
        generation += 1
        name = f"{rng.randrange(12)}"
        possible: list[IndexChange] = [
            document(name, *["text"] * rng.randrange(5), generation=generation),
            document(name, "text", generation=generation, tags=frozenset({f"k={generation}"})),
            document(name, "text", generation=generation, owners=(Person(f"p{generation % 5}"),)),
            Delete(name),
            Amend(document_id=name, boost=rng.random(), hidden=rng.random() < 0.5),
        ]
        yield rng.choice(possible)


def load(folder: Path, former: Columns | None) -> Columns:
    with closing(connect(folder)) as connection, read_transaction(connection):
        return load_columns(connection, read_state(connection), former)


@pytest.mark.parametrize("seed", range(3))
def test_columns_that_follow_are_those_loaded_anew(tmp_path: Path, seed: int) -> None:
    writer, rng = open_writer(tmp_path, IDENTITY), random.Random(seed)
    stream = changes(rng)
    following: Columns | None = None
    for _ in range(12):
        writer.write([next(stream) for _ in range(rng.randrange(1, 4))])
        following, fresh = load(tmp_path, following), load(tmp_path, None)
        assert following.counter == fresh.counter
        assert np.array_equal(following.owners, fresh.owners)
        # What follows may know free ordinals beyond the last that is used.
        size = len(fresh.documents) - 1
        assert np.array_equal(following.documents[:size], fresh.documents[:size])
        assert not following.documents[size:]["count"].any()
        for known, loaded in (
            (following.label_sets, fresh.label_sets),
            (following.reader_sets, fresh.reader_sets),
            (following.people_sets, fresh.people_sets),
            (following.name_sets, fresh.name_sets),
        ):
            assert np.array_equal(known.sets, loaded.sets)
            assert np.array_equal(known.labels, loaded.labels)


def test_rows_and_slots_name_each_other(tmp_path: Path) -> None:
    writer = open_writer(tmp_path, IDENTITY)
    writer.write([document("a", "1", "2"), document("b", "3", "4", "5")])
    writer.write([document("a", "6", generation=2)])
    loaded = load(tmp_path, None)
    slots = np.flatnonzero(loaded.owners >= 0)
    assert slots.tolist() == [2, 3, 4, 5]
    rows = loaded.rows(slots)
    ordinals = loaded.owners[slots].astype(np.int64)
    assert rows.tolist() == [2, 3, 4, 5]
    assert loaded.slots(rows, ordinals).tolist() == slots.tolist()
    everything = np.ones(len(loaded.documents), np.bool_)
    assert loaded.are_current(rows, ordinals, everything).all()
    assert not loaded.are_current(rows, ordinals, ~everything).any()
    # An old row of a document, rows of the other, one beyond the last, a document that is not there.
    assert not loaded.are_current(
        np.array([0, 2, 5, 6, 3]), np.array([0, 0, 1, 0, 99]), everything
    ).any()
    assert not loaded.are_current(
        np.array([2]), np.array([len(loaded.documents)]), everything
    ).any()


def test_an_ordinal_is_used_again(tmp_path: Path) -> None:
    writer = open_writer(tmp_path, IDENTITY)
    for n in range(4):
        writer.write([document(f"{n}", "text"), document("stays", "text")])
        writer.write([Delete(f"{n}")])
    assert len(load(tmp_path, None).documents) == 3


def test_a_slot_has_the_boost_of_its_document(tmp_path: Path) -> None:
    writer = open_writer(tmp_path, IDENTITY)
    writer.write([document("a", "1", "2", boost=0.5), document("b", "3", boost=2.0)])
    assert load(tmp_path, None).boosts(np.array([0, 1, 2])).tolist() == [0.5, 0.5, 2.0]
    writer.write([Amend(document_id="a", boost=3.0)])
    assert load(tmp_path, None).boosts(np.array([2, 0])).tolist() == [2.0, 3.0]


def test_a_slot_of_a_version_that_was_replaced_belongs_to_no_document(tmp_path: Path) -> None:
    writer = open_writer(tmp_path, IDENTITY)
    writer.write([document("a", "1"), document("b", "2", "3")])
    first = load(tmp_path, None)
    writer.write([document("b", "4", generation=2)])
    following = load(tmp_path, first)
    assert first.owners.tolist() == [0, 1, 1]
    assert following.owners.tolist() == [0, -1, -1, 1]
    assert following.owners.dtype == np.int32
    writer.write([Delete("b")])
    assert load(tmp_path, following).owners.tolist() == [0, -1, -1, -1]


def test_what_did_not_change_is_not_read_again(tmp_path: Path) -> None:
    writer = open_writer(tmp_path, IDENTITY)
    writer.write([document("a", "1", tags=frozenset({"k=v"})), document("b", "2")])
    first = load(tmp_path, None)
    writer.write([document("b", "3", generation=2)])
    following = load(tmp_path, first)
    assert following.label_sets is first.label_sets
    assert following.reader_sets is first.reader_sets
    assert following.people_sets is first.people_sets
    assert following.name_sets is first.name_sets
    assert following.documents[0] == first.documents[0]
    assert following.counter > first.counter
