"""What the index versions of every index do: one is searched while another is built, and then they change places."""

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest
from opensearchpy import OpenSearch

from connectors.errors import ActionRequiredError
from indexing.chunking.chunk import ChunkRange
from indexing.index.protocols import Amend, Delete, Filters, Index, Replace
from indexing.index.versions import IndexVersion, IndexVersionReplacedError, IndexVersions
from indexing.local import LocalIndexVersions
from indexing.opensearch.client import OpenSearchSettings, connect
from indexing.opensearch.naming import active_alias
from indexing.opensearch.versions import OpenSearchIndexVersions
from indexing.rebuild.copy_index import copy_missing
from indexing.text.analysis import ENGLISH
from tests.support.chunks import IDENTITY, document, query, vectors
from tests.support.former_words import make_former_folder
from tests.support.index_engines import PUBLIC, soon
from tests.support.languages import PASSAGES
from tests.support.opensearch_server import SERVERS, url_of

OLD = IndexVersion(IDENTITY, "old/model")
NEW = IndexVersion(replace(IDENTITY, model="new", dimension=32), "new/model")
THIRD = IndexVersion(replace(IDENTITY, model="third"), "third/model")


@dataclass(frozen=True)
class LocalOpening:
    home: Path

    def __call__(self) -> IndexVersions:
        return LocalIndexVersions(self.home)

    def make_words_former(self) -> None:
        (folder,) = (file.parent for file in self.home.glob("*/index.db"))
        make_former_folder(folder)


@dataclass(frozen=True)
class OpenSearchOpening:
    client: OpenSearch
    prefix: str

    def __call__(self) -> IndexVersions:
        return OpenSearchIndexVersions(self.client, self.prefix)

    def make_words_former(self) -> None:
        (found,) = self.client.indices.get_mapping(index=active_alias(self.prefix)).values()
        meta = found["mappings"]["_meta"] | {"analysis": ENGLISH.fingerprint}
        self.client.indices.put_mapping(index=active_alias(self.prefix), body={"_meta": meta})


Opening: TypeAlias = LocalOpening | OpenSearchOpening
"""Opens the versions of one index, as often as is liked, as processes do."""


@pytest.fixture(params=["embedded", *SERVERS])
def opening(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opening]:
    """Each kind of index, with no version yet."""
    if request.param == "embedded":
        yield LocalOpening(tmp_path / "index")
        return
    client = connect(OpenSearchSettings(urls=(url_of(request.param),)))
    prefix = f"t-{secrets.token_hex(6)}"
    yield OpenSearchOpening(client, prefix)
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
        with pytest.raises(ActionRequiredError) as raised:
            opened(NEW)
        assert "the model test (1, float32, 64 dimensions)" in str(raised.value)
        assert "the model new (1, float32, 32 dimensions)" in str(raised.value)
        assert "quarry reindex --model new/model" in str(raised.value)
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
        ) as raised:
            ask()
        assert raised.value.active == NEW
    assert found(opening().open_index(NEW), "apples pears") == []


def test_an_open_index_follows_a_switch_to_the_same_embedder(opening: Opening) -> None:
    opening().open_writer(OLD).write([text(OLD, "a", "apples")])
    before = opening().open_index(OLD)
    index_versions = opening()
    for number in range(3):
        index_versions.start_build(OLD).write([text(OLD, f"new{number}", "apples")])
        assert found(before, "apples") == [f"new{number - 1}" if number else "a"]
        index_versions.activate(OLD)
        assert found(before, "apples") == [f"new{number}"]
        assert found(opening().open_index(OLD), "apples") == [f"new{number}"]


def test_an_open_writer_loses_one_change_to_a_switch_to_the_same_embedder(
    opening: Opening,
) -> None:
    """What it writes may have been prepared for the former version, so that the change is to be made again."""
    writer = opening().open_writer(OLD)
    writer.write([text(OLD, "a", "apples")])
    index_versions = opening()
    index_versions.start_build(OLD)
    index_versions.activate(OLD)
    with pytest.raises(IndexVersionReplacedError):
        writer.write([text(OLD, "b", "apples")])
    writer.write([text(OLD, "c", "apples")])
    assert [each.id for each in writer.scan()] == ["c"]
    assert found(opening().open_index(OLD), "apples") == ["c"]


def test_words_are_made_again_from_what_the_index_holds(opening: Opening) -> None:
    assert opening().has_current_words()
    opening().open_writer(OLD)
    opening.make_words_former()
    writer, index = opening().open_writer(OLD), opening().open_index(OLD)
    writer.write([text(OLD, "a", PASSAGES["de"]), text(OLD, "b", "apples")])
    writer.write([Delete("b")])
    assert not opening().has_current_words()
    assert found(index, "Mitarbeitern") == []
    index_versions = opening()
    *_, last = copy_missing(index_versions.open_writer(OLD), index_versions.start_build(OLD))
    assert (last.documents, last.total, last.chunks) == (1, 1, 1)
    assert found(index, "Mitarbeitern") == []
    index_versions.activate(OLD)
    assert found(index, "Mitarbeitern") == ["a"]
    assert opening().has_current_words()
    (before,) = [each.vectors for each in opening().open_writer(OLD).export()]
    assert np.allclose(before, text(OLD, "a", PASSAGES["de"]).vectors, atol=1e-3)


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
