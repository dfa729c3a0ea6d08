"""The last condition of access by itself: in a search, the filters before it would hide that a part of it is gone."""

import json
import random
from collections.abc import Iterator, Mapping
from contextlib import closing

import pytest

from connectors.access import Access, Readers
from indexing.index.protocols import Amend
from indexing.local import open_writer, sql
from indexing.local.database import Connection, connect
from tests.support.chunks import IDENTITY, document
from tests.support.rights import may_read

TOKENS = ["public", *(f"group:{name}" for name in "abcde")]
CROWD = [*(f"group:{number:02}" for number in range(40)), "group:e"]
"""Its last reader is not among those that are compared first."""
DRAWN = random.Random(5)
READERS = {"crowd": CROWD} | {
    f"d{number}": DRAWN.sample(TOKENS, number % 4) for number in range(24)
}
OF_ASKER, _ = sql.MAY_READ.split("AND NOT EXISTS")
_, BEHIND_THE_FIRST = OF_ASKER.split("OR EXISTS")
LESS: Mapping[str, str] = {
    "what is hidden": sql.MAY_READ.replace("d.hidden = 0 AND", ""),
    "the audience": OF_ASKER,
    "readers behind the first": sql.MAY_READ.replace(f"OR EXISTS{BEHIND_THE_FIRST}", ") "),
}
"""The condition without one of its parts."""


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    folder = tmp_path_factory.mktemp("index")
    writer = open_writer(folder, IDENTITY)
    writer.write([document(name, "text", readers=readers) for name, readers in READERS.items()])
    writer.write([document("hidden", "text", readers=TOKENS)])
    writer.write([Amend(document_id="hidden", hidden=True)])
    with closing(connect(folder)) as connection:
        yield connection


def _draw_askers() -> Iterator[Readers]:
    drawn = random.Random(7)
    for _ in range(60):
        people = [Readers(frozenset(drawn.sample(TOKENS, drawn.randrange(5)))) for _ in range(3)]
        yield people[0].shown_to(people[1 : drawn.randrange(1, 4)])


def _select(connection: Connection, condition: str, asker: Readers) -> set[str]:
    values = {
        "tokens": json.dumps([*asker.tokens]),
        "audience": json.dumps([[*held] for held in asker.audience]),
    }
    found = connection.execute(f"SELECT d.id FROM documents d WHERE {condition}", values)
    return {name for (name,) in found}


def _list_readable(asker: Readers) -> set[str]:
    return {name for name, held in READERS.items() if may_read(asker, Access.to(held))}


def test_exactly_what_the_asker_and_the_audience_may_read_meets_the_condition(
    connection: Connection,
) -> None:
    for asker in _draw_askers():
        assert _select(connection, sql.MAY_READ, asker) == _list_readable(asker)


@pytest.mark.parametrize("condition", LESS.values(), ids=LESS)
def test_no_part_of_the_condition_is_there_for_nothing(
    connection: Connection, condition: str
) -> None:
    assert any(
        _select(connection, condition, asker) != _list_readable(asker) for asker in _draw_askers()
    )
