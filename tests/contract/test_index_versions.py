"""What the index versions of every index do: one is searched while another is built, and then they change places."""

import secrets
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import pytest

from connectors.errors import ActionRequiredError
from indexing.chunking.chunk import ChunkRange
from indexing.index.protocols import Amend, Filters, Index, Replace
from indexing.index.versions import IndexVersion, IndexVersionReplacedError, IndexVersions
from indexing.local import LocalIndexVersions
from indexing.opensearch.client import OpenSearchSettings, connect
from indexing.opensearch.versions import OpenSearchIndexVersions
from tests.support.chunks import IDENTITY, document, query, vectors
from tests.support.index_engines import PUBLIC, soon
from tests.support.opensearch_server import SERVERS, url_of

Opening: TypeAlias = Callable[[], IndexVersions]

OLD = IndexVersion(IDENTITY, "old/model")
NEW = IndexVersion(replace(IDENTITY, model="new", dimension=32), "new/model")
THIRD = IndexVersion(replace(IDENTITY, model="third"), "third/model")


@pytest.fixture(params=["embedded", *SERVERS])
def opening(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opening]:
    """Each kind of index, with no index version yet; opened as often as is liked, as processes do."""
    if request.param == "embedded":
        yield lambda: LocalIndexVersions(tmp_path / "index")
        return
    client = connect(OpenSearchSettings(urls=(url_of(request.param),)))
    prefix = f"t-{secrets.token_hex(6)}"
    yield lambda: OpenSearchIndexVersions(client, prefix)
    client.indices.delete(index=f"{prefix}-*")
    client.close()


@pytest.fixture
def index_versions(opening: Opening) -> IndexVersions:
    return opening()


def text(index_version: IndexVersion, name: str, *texts: str, generation: int = 1) -> Replace:
    """A document with vectors as long as the index version's are."""
    dimension = index_version.embedder.dimension
    return document(name, *texts, generation=generation, vectors_of=vectors(texts, dimension))


def found(index: Index, words: str) -> list[str]:
    (ranking,) = index.find([query(words)], PUBLIC, soon()).rankings
    return [hit.chunk.document_id for hit in ranking]


def test_before_the_first_there_is_none(index_versions: IndexVersions) -> None:
    assert index_versions.active() is None
    assert index_versions.building() is None
    assert index_versions.open_build_writer() is None
    index_versions.discard_build()
    with pytest.raises(ValueError, match="no index version is being built"):
        index_versions.open_build_index()
    with pytest.raises(ValueError, match="neither being built nor active"):
        index_versions.activate(OLD)


@pytest.mark.parametrize("first", ["index", "writer"])
def test_whoever_opens_it_first_makes_the_first_index_version(opening: Opening, first: str) -> None:
    index_versions = opening()
    if first == "index":
        assert found(index_versions.open_index(OLD), "apples") == []
    index_versions.open_writer(OLD).write([text(OLD, "a", "apples")])
    assert opening().active() == OLD
    assert opening().building() is None
    assert found(opening().open_index(OLD), "apples") == ["a"]


def test_another_embedder_is_refused_with_both_names_and_the_way_out(
    index_versions: IndexVersions,
) -> None:
    index_versions.open_writer(OLD).write([text(OLD, "a", "apples")])
    for opened in (index_versions.open_index, index_versions.open_writer):
        with pytest.raises(ActionRequiredError) as told:
            opened(NEW)
        assert "the model test (1, float32, 64 dimensions)" in str(told.value)
        assert "the model new (1, float32, 32 dimensions)" in str(told.value)
        assert "quarry reindex --model new/model" in str(told.value)
    assert found(index_versions.open_index(OLD), "apples") == ["a"]


def test_what_a_model_is_called_makes_no_other_index_version(index_versions: IndexVersions) -> None:
    index_versions.open_writer(OLD).write([text(OLD, "a", "apples")])
    assert found(index_versions.open_index(replace(OLD, model_name="elsewhere")), "apples") == ["a"]
    assert index_versions.active() == OLD


def test_one_is_searched_and_written_while_another_is_built(index_versions: IndexVersions) -> None:
    writer, index = index_versions.open_writer(OLD), index_versions.open_index(OLD)
    writer.write([text(OLD, "a", "apples")])
    building = index_versions.start_build(NEW)
    building.write([text(NEW, "b", "apples")])
    writer.write([text(OLD, "c", "apples")])
    assert (index_versions.active(), index_versions.building()) == (OLD, NEW)
    assert sorted(found(index, "apples")) == ["a", "c"]
    assert sorted(found(index_versions.open_index(OLD), "apples")) == ["a", "c"]
    assert found(index_versions.open_build_index(), "apples") == ["b"]
    draft = index_versions.open_build_writer()
    assert draft is not None
    assert [each.id for each in draft.scan()] == ["b"]


def test_building_goes_on_with_what_was_built(opening: Opening) -> None:
    opening().open_writer(OLD)
    opening().start_build(NEW).write([text(NEW, "b", "pears")])
    opening().start_build(NEW).write([text(NEW, "c", "plums")])
    assert [each.id for each in opening().start_build(NEW).scan()] == ["b", "c"]


def test_a_second_one_cannot_be_begun(index_versions: IndexVersions) -> None:
    index_versions.open_writer(OLD)
    index_versions.start_build(NEW).write([text(NEW, "b", "pears")])
    with pytest.raises(ActionRequiredError, match=r"the model new .* quarry reindex --abandon"):
        index_versions.start_build(THIRD)
    assert index_versions.building() == NEW
    assert [each.id for each in index_versions.start_build(NEW).scan()] == ["b"]


def test_after_the_switch_the_new_one_is_searched(opening: Opening) -> None:
    opening().open_writer(OLD).write([text(OLD, "a", "apples")])
    index_versions = opening()
    index_versions.start_build(NEW).write([text(NEW, "b", "pears")])
    for _ in range(2):
        index_versions.activate(NEW)
        assert (opening().active(), opening().building()) == (NEW, None)
        index = opening().open_index(NEW)
        assert (found(index, "apples"), found(index, "pears")) == ([], ["b"])
    with pytest.raises(ActionRequiredError, match="quarry reindex --model old/model"):
        opening().open_index(OLD)
    with pytest.raises(ValueError, match="neither"):
        index_versions.activate(OLD)


def test_the_writer_that_built_an_index_version_keeps_it(index_versions: IndexVersions) -> None:
    index_versions.open_writer(OLD)
    writer = index_versions.start_build(NEW)
    preview = index_versions.open_build_index()
    index_versions.activate(NEW)
    writer.write([text(NEW, "b", "pears")])
    assert found(index_versions.open_index(NEW), "pears") == ["b"]
    assert found(preview, "pears") == ["b"]


def test_what_was_opened_before_says_that_it_is_superseded(opening: Opening) -> None:
    """Above all it does not answer from what is gone: access may have been taken away since."""
    writer, index = opening().open_writer(OLD), opening().open_index(OLD)
    writer.write([text(OLD, "a", "apples")])
    assert found(index, "apples") == ["a"]
    index_versions = opening()
    index_versions.start_build(NEW)
    assert found(index, "apples") == ["a"]
    index_versions.activate(NEW)
    asked: list[Callable[[], object]] = [
        lambda: index.find([query("apples")], PUBLIC, soon()),
        lambda: index.chunks([ChunkRange("a", 0, 1)], PUBLIC, soon()),
        lambda: index.facets(Filters(), PUBLIC, soon()),
        lambda: writer.write([text(OLD, "a", "pears", generation=2)]),
        lambda: writer.write([Amend(document_id="a", boost=2.0)]),
        lambda: list(writer.scan()),
        lambda: list(writer.export()),
    ]
    for ask in asked:
        with pytest.raises(
            IndexVersionReplacedError, match="rebuilt with the model new/model"
        ) as told:
            ask()
        assert told.value.active == NEW
    assert found(opening().open_index(NEW), "apples pears") == []


def test_the_same_embedder_may_be_built_anew(opening: Opening) -> None:
    opening().open_writer(OLD).write([text(OLD, "a", "apples")])
    before = opening().open_index(OLD)
    index_versions = opening()
    for number in range(3):
        index_versions.start_build(OLD).write([text(OLD, f"new{number}", "apples")])
        assert found(opening().open_index(OLD), "apples") == [f"new{number - 1}" if number else "a"]
        index_versions.activate(OLD)
        assert found(opening().open_index(OLD), "apples") == [f"new{number}"]
        with pytest.raises(IndexVersionReplacedError):
            found(before, "apples")


def test_what_is_abandoned_is_gone_and_the_active_one_goes_on(opening: Opening) -> None:
    writer, index = opening().open_writer(OLD), opening().open_index(OLD)
    writer.write([text(OLD, "a", "apples")])
    index_versions = opening()
    building = index_versions.start_build(NEW)
    building.write([text(NEW, "b", "pears")])
    preview = index_versions.open_build_index()
    for _ in range(2):
        opening().discard_build()
        assert (
            index_versions.active(),
            index_versions.building(),
            index_versions.open_build_writer(),
        ) == (OLD, None, None)
    with pytest.raises(IndexVersionReplacedError):
        building.write([text(NEW, "c", "pears")])
    with pytest.raises(IndexVersionReplacedError):
        found(preview, "pears")
    assert list(index_versions.start_build(NEW).scan()) == []
    writer.write([text(OLD, "c", "apples")])
    assert sorted(found(index, "apples")) == ["a", "c"]


def test_the_first_index_version_may_be_built_before_any_is_active(
    index_versions: IndexVersions,
) -> None:
    index_versions.start_build(NEW).write([text(NEW, "b", "pears")])
    assert index_versions.active() is None
    index_versions.activate(NEW)
    assert found(index_versions.open_index(NEW), "pears") == ["b"]
