"""An index is made, refused or mended when it is opened."""

import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from connectors.document import Person
from connectors.errors import ActionRequiredError
from indexing.index.protocols import Filters
from indexing.local import open_index, open_writer
from indexing.local.database import connect_writer, read_state, transaction, write_meta
from tests.support.chunks import IDENTITY, document, query, vector
from tests.support.index_engines import PUBLIC, soon


def fill(folder: Path) -> None:
    open_writer(folder, IDENTITY).write(
        [
            document("a", "apples", "see ERR-1042", owners=(Person("Ann"),)),
            document("b", "pears"),
            document("gone", "plums"),
        ]
    )
    open_writer(folder, IDENTITY).write([document("gone", "cherries", generation=2)])


def answers(folder: Path) -> list[list[tuple[str, int]]]:
    asked = [
        query("apples pears", filters=Filters(people=frozenset({"ann"}))),
        query("", vector=vector("pears"), alpha=1.0, size=1),
        query("?", exact=("ERR-1042",)),
        query("plums"),
    ]
    with open_index(folder, IDENTITY) as index:
        found = index.find(asked, PUBLIC, soon())
    return [[hit.chunk.key for hit in ranking] for ranking in found.rankings]


RIGHT = [[("a", 0)], [("b", 0)], [("a", 1)], []]


def remove_fulltext(folder: Path) -> None:
    shutil.rmtree(folder / "fts-0")


def empty_fulltext(folder: Path) -> None:
    for file in (folder / "fts-0").iterdir():
        file.unlink()


def remove_a_segment_file(folder: Path) -> None:
    max((folder / "fts-0").glob("*.term")).unlink()


def spoil_the_list_of_segments(folder: Path) -> None:
    (folder / "fts-0" / "meta.json").write_text("{")


def remove_vectors(folder: Path) -> None:
    (folder / "vectors-0.i8").unlink()


def cut_vectors(folder: Path) -> None:
    with (folder / "vectors-0.f16").open("rb+") as file:
        file.truncate(10)


def remove_all_but_the_tables(folder: Path) -> None:
    remove_fulltext(folder)
    for file in folder.glob("vectors-*"):
        file.unlink()


@pytest.mark.parametrize(
    "damage",
    [
        remove_fulltext,
        empty_fulltext,
        remove_a_segment_file,
        spoil_the_list_of_segments,
        remove_vectors,
        cut_vectors,
        remove_all_but_the_tables,
    ],
    ids=lambda damage: damage.__name__,
)
def test_what_the_tables_hold_is_built_again(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    fill(tmp_path)
    assert answers(tmp_path) == RIGHT
    damage(tmp_path)
    assert answers(tmp_path) == RIGHT
    open_writer(tmp_path, IDENTITY).write([document("c", "plums")])
    assert answers(tmp_path) == [*RIGHT[:3], [("c", 0)]]


def test_an_open_index_follows_to_what_was_built_again(tmp_path: Path) -> None:
    fill(tmp_path)
    with open_index(tmp_path, IDENTITY) as index:
        assert len(index.find([query("apples")], PUBLIC, soon()).rankings[0]) == 1
        remove_all_but_the_tables(tmp_path)
        open_writer(tmp_path, IDENTITY).write([document("c", "more apples")])
        assert len(index.find([query("apples")], PUBLIC, soon()).rankings[0]) == 2


def test_an_index_of_another_format_is_refused_and_left_alone(tmp_path: Path) -> None:
    fill(tmp_path)
    with closing(connect_writer(tmp_path)) as connection, transaction(connection):
        write_meta(connection, "version", "1")
    with pytest.raises(
        ActionRequiredError, match=r"has format 1; .* reads format 2\. .* --rebuild"
    ):
        open_index(tmp_path, IDENTITY)
    with closing(connect_writer(tmp_path)) as connection, transaction(connection):
        write_meta(connection, "version", "2")
    assert answers(tmp_path) == RIGHT


def test_a_file_lost_while_open_is_reported(tmp_path: Path) -> None:
    fill(tmp_path)
    with open_index(tmp_path, IDENTITY) as index:
        remove_vectors(tmp_path)
        with pytest.raises(ActionRequiredError, match="Start again"):
            index.find([query("apples")], PUBLIC, soon())
    assert answers(tmp_path) == RIGHT


@pytest.mark.parametrize(
    "other",
    [
        replace(IDENTITY, model="another"),
        replace(IDENTITY, version="2"),
        replace(IDENTITY, dimension=32),
    ],
)
@pytest.mark.parametrize("opening", [open_index, open_writer], ids=["index", "writer"])
def test_another_embedder_is_refused(
    tmp_path: Path, other: object, opening: Callable[..., object]
) -> None:
    fill(tmp_path)
    with pytest.raises(ActionRequiredError, match="was made with the model test"):
        opening(tmp_path, other)
    assert answers(tmp_path) == RIGHT


def test_an_index_moves_to_a_processor_of_another_precision(tmp_path: Path) -> None:
    fill(tmp_path)
    with open_index(tmp_path, replace(IDENTITY, precision="bf16")) as index:
        (ranking,) = index.find([query("apples")], PUBLIC, soon()).rankings
    assert ranking


def test_another_format_is_refused(tmp_path: Path) -> None:
    fill(tmp_path)
    with closing(connect_writer(tmp_path)) as connection, transaction(connection):
        write_meta(connection, "version", "999")
    with pytest.raises(ActionRequiredError, match="format 999"):
        open_index(tmp_path, IDENTITY)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "index.db").write_bytes(
        b"no database at all, but long enough to be taken for one" * 9
    )
    with pytest.raises(ActionRequiredError, match="damaged"):
        open_index(tmp_path, IDENTITY)


def test_remains_of_a_former_index_do_not_come_back(tmp_path: Path) -> None:
    fill(tmp_path)
    for file in tmp_path.glob("index.db*"):
        file.unlink()
    assert answers(tmp_path) == [[], [], [], []]
    open_writer(tmp_path, IDENTITY).write([document("b", "pears")])
    assert answers(tmp_path) == [[], [("b", 0)], [], []]


def test_opening_a_whole_index_writes_nothing(tmp_path: Path) -> None:
    fill(tmp_path)
    with closing(connect_writer(tmp_path)) as connection:
        before = read_state(connection)
        open_writer(tmp_path, IDENTITY)
        answers(tmp_path)
        assert read_state(connection) == before
