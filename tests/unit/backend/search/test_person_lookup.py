"""Whom an asker means: by address, or by the name of somebody in documents that the asker may read."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from backend.search.person_lookup import resolve_people
from connectors.access import Readers
from connectors.document import Person
from indexing.index.protocols import Index
from indexing.local import open_index, open_writer
from indexing.local.searcher import LocalIndex
from tests.support.chunks import IDENTITY, document
from tests.support.index_engines import PUBLIC, soon

FINANCE = Readers.of("group:finance")


@pytest.fixture
def index(tmp_path: Path) -> Iterator[LocalIndex]:
    open_writer(tmp_path, IDENTITY).write(
        [
            document("a", "x", owners=(Person("Ann Lee", "ann@example.com"), Person("Bob"))),
            document("b", "x", owners=(Person("Ann Lee"),)),
            document("c", "x", owners=(Person("Bob", "bob@x.y"),), readers=["group:finance"]),
        ]
    )
    with open_index(tmp_path, IDENTITY) as opened:
        yield opened


def whom(index: Index, *said: str, readers: Readers = PUBLIC) -> frozenset[str]:
    return resolve_people(index, said, readers, soon())


def test_a_name_means_all_who_are_called_so(index: LocalIndex) -> None:
    assert whom(index, " ANN  lee") == {"ann lee", "ann@example.com"}
    assert whom(index, "Bob", readers=FINANCE) == {"bob", "bob@x.y"}


def test_whom_only_others_may_know_of_is_not_looked_up(index: LocalIndex) -> None:
    assert whom(index, "Bob") == {"bob"}


def test_an_address_means_itself_known_or_not(index: LocalIndex) -> None:
    assert whom(index, "Eve@Example.com") == {"eve@example.com"}
    assert whom(index, "Ann@Example.com", "nobody") == {"ann@example.com", "nobody"}


def test_nobody_named_is_nobody(index: LocalIndex) -> None:
    assert whom(index, " ") == frozenset()
