"""Of very many people those with the most documents are returned, as a full count ranks them."""

import random
from collections import Counter
from pathlib import Path

import pytest

from connectors.document import Person
from indexing.index import person_keys
from indexing.index.person_keys import PersonCount
from indexing.index.protocols import Filters
from indexing.local import open_index, open_writer
from tests.support.chunks import IDENTITY, document
from tests.support.index_engines import PUBLIC, soon


@pytest.mark.parametrize("most", [1, 5, 500])
def test_the_foremost_are_those_that_a_count_of_all_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(person_keys, "MAX_PEOPLE", most)
    rng = random.Random(most)
    # Twenty people, some of whom are called by several names.
    owners = [
        tuple(
            Person(f"N{rng.randrange(2)}", f"p{min(map(rng.randrange, (20, 20)))}")
            for _ in range(3)
        )
        for _ in range(60)
    ]
    open_writer(tmp_path, IDENTITY).write(
        document(f"{number}", "x", owners=each) for number, each in enumerate(owners)
    )
    actual = [
        (key, name) for each in owners for key, name in person_keys.names_by_key(each).items()
    ]
    totals, names = Counter(key for key, _ in actual), Counter(actual)
    with open_index(tmp_path, IDENTITY) as index:
        found = index.facets(Filters(), PUBLIC, soon()).people
    assert found == {
        key: PersonCount(max(("N0", "N1"), key=lambda name: names[key, name]), totals[key])
        for key in found
    }
    # Which of equals is returned does not count.
    best = sorted(totals.values(), reverse=True)[:most]
    assert sorted((each.documents for each in found.values()), reverse=True) == best
