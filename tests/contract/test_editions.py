"""What the editions of every index do: one is searched while another is built, and then they change places."""

import secrets
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import pytest

from connectors.errors import ActionRequiredError
from indexing.chunking.chunk import ChunkRange
from indexing.index.protocols import Amend, Filters, Index, Replace
from indexing.index.versions import Edition, Editions, Superseded
from indexing.local import EmbeddedEditions
from indexing.opensearch.client import OpenSearchSettings, connect
from indexing.opensearch.versions import OpenSearchEditions
from tests.support.chunks import IDENTITY, document, query, vectors
from tests.support.index_engines import PUBLIC, soon
from tests.support.opensearch_server import SERVERS, url_of

Opening: TypeAlias = Callable[[], Editions]

OLD = Edition(IDENTITY, "old/model")
NEW = Edition(replace(IDENTITY, model="new", dimension=32), "new/model")
THIRD = Edition(replace(IDENTITY, model="third"), "third/model")


@pytest.fixture(params=["embedded", *SERVERS])
def opening(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opening]:
    """Each kind of index, with no edition yet; opened as often as is liked, as processes do."""
    if request.param == "embedded":
        yield lambda: EmbeddedEditions(tmp_path / "index")
        return
    client = connect(OpenSearchSettings(urls=(url_of(request.param),)))
    prefix = f"t-{secrets.token_hex(6)}"
    yield lambda: OpenSearchEditions(client, prefix)
    client.indices.delete(index=f"{prefix}-*")
    client.close()


@pytest.fixture
def editions(opening: Opening) -> Editions:
    return opening()


def text(edition: Edition, name: str, *texts: str, generation: int = 1) -> Replace:
    """A document with vectors as long as the edition's are."""
    dimension = edition.embedder.dimension
    return document(name, *texts, generation=generation, vectors_of=vectors(texts, dimension))


def found(index: Index, words: str) -> list[str]:
    (ranking,) = index.find([query(words)], PUBLIC, soon()).rankings
    return [hit.chunk.document_id for hit in ranking]


def test_before_the_first_there_is_none(editions: Editions) -> None:
    assert editions.active() is None
    assert editions.building() is None
    assert editions.draft() is None
    editions.abandon()
    with pytest.raises(ValueError, match="no edition is being built"):
        editions.preview()
    with pytest.raises(ValueError, match="neither being built nor active"):
        editions.switch(OLD)


@pytest.mark.parametrize("first", ["index", "keeper"])
def test_whoever_opens_it_first_makes_the_first_edition(opening: Opening, first: str) -> None:
    editions = opening()
    if first == "index":
        assert found(editions.open_index(OLD), "apples") == []
    editions.open_keeper(OLD).write([text(OLD, "a", "apples")])
    assert opening().active() == OLD
    assert opening().building() is None
    assert found(opening().open_index(OLD), "apples") == ["a"]


def test_another_embedder_is_refused_with_both_names_and_the_way_out(editions: Editions) -> None:
    editions.open_keeper(OLD).write([text(OLD, "a", "apples")])
    for opened in (editions.open_index, editions.open_keeper):
        with pytest.raises(ActionRequiredError) as told:
            opened(NEW)
        assert "the model test (1, float32, 64 dimensions)" in str(told.value)
        assert "the model new (1, float32, 32 dimensions)" in str(told.value)
        assert "quarry reindex --model new/model" in str(told.value)
    assert found(editions.open_index(OLD), "apples") == ["a"]


def test_what_a_model_is_called_makes_no_other_edition(editions: Editions) -> None:
    editions.open_keeper(OLD).write([text(OLD, "a", "apples")])
    assert found(editions.open_index(replace(OLD, called="elsewhere")), "apples") == ["a"]
    assert editions.active() == OLD


def test_one_is_searched_and_written_while_another_is_built(editions: Editions) -> None:
    keeper, index = editions.open_keeper(OLD), editions.open_index(OLD)
    keeper.write([text(OLD, "a", "apples")])
    building = editions.begin(NEW)
    building.write([text(NEW, "b", "apples")])
    keeper.write([text(OLD, "c", "apples")])
    assert (editions.active(), editions.building()) == (OLD, NEW)
    assert sorted(found(index, "apples")) == ["a", "c"]
    assert sorted(found(editions.open_index(OLD), "apples")) == ["a", "c"]
    assert found(editions.preview(), "apples") == ["b"]
    draft = editions.draft()
    assert draft is not None
    assert [each.id for each in draft.survey()] == ["b"]


def test_building_goes_on_with_what_was_built(opening: Opening) -> None:
    opening().open_keeper(OLD)
    opening().begin(NEW).write([text(NEW, "b", "pears")])
    opening().begin(NEW).write([text(NEW, "c", "plums")])
    assert [each.id for each in opening().begin(NEW).survey()] == ["b", "c"]


def test_a_second_one_cannot_be_begun(editions: Editions) -> None:
    editions.open_keeper(OLD)
    editions.begin(NEW).write([text(NEW, "b", "pears")])
    with pytest.raises(ActionRequiredError, match=r"the model new .* quarry reindex --abandon"):
        editions.begin(THIRD)
    assert editions.building() == NEW
    assert [each.id for each in editions.begin(NEW).survey()] == ["b"]


def test_after_the_switch_the_new_one_is_searched(opening: Opening) -> None:
    opening().open_keeper(OLD).write([text(OLD, "a", "apples")])
    editions = opening()
    editions.begin(NEW).write([text(NEW, "b", "pears")])
    for _ in range(2):
        editions.switch(NEW)
        assert (opening().active(), opening().building()) == (NEW, None)
        index = opening().open_index(NEW)
        assert (found(index, "apples"), found(index, "pears")) == ([], ["b"])
    with pytest.raises(ActionRequiredError, match="quarry reindex --model old/model"):
        opening().open_index(OLD)
    with pytest.raises(ValueError, match="neither"):
        editions.switch(OLD)


def test_the_keeper_that_built_an_edition_keeps_it(editions: Editions) -> None:
    editions.open_keeper(OLD)
    keeper = editions.begin(NEW)
    preview = editions.preview()
    editions.switch(NEW)
    keeper.write([text(NEW, "b", "pears")])
    assert found(editions.open_index(NEW), "pears") == ["b"]
    assert found(preview, "pears") == ["b"]


def test_what_was_opened_before_says_that_it_is_superseded(opening: Opening) -> None:
    """Above all it does not answer from what is gone: access may have been taken away since."""
    keeper, index = opening().open_keeper(OLD), opening().open_index(OLD)
    keeper.write([text(OLD, "a", "apples")])
    assert found(index, "apples") == ["a"]
    editions = opening()
    editions.begin(NEW)
    assert found(index, "apples") == ["a"]
    editions.switch(NEW)
    asked: list[Callable[[], object]] = [
        lambda: index.find([query("apples")], PUBLIC, soon()),
        lambda: index.chunks([ChunkRange("a", 0, 1)], PUBLIC, soon()),
        lambda: index.facets(Filters(), PUBLIC, soon()),
        lambda: keeper.write([text(OLD, "a", "pears", generation=2)]),
        lambda: keeper.write([Amend(document_id="a", boost=2.0)]),
        lambda: list(keeper.survey()),
        lambda: list(keeper.export()),
    ]
    for ask in asked:
        with pytest.raises(Superseded, match="built anew with the model new/model") as told:
            ask()
        assert told.value.now == NEW
    assert found(opening().open_index(NEW), "apples pears") == []


def test_the_same_embedder_may_be_built_anew(opening: Opening) -> None:
    opening().open_keeper(OLD).write([text(OLD, "a", "apples")])
    before = opening().open_index(OLD)
    editions = opening()
    for number in range(3):
        editions.begin(OLD).write([text(OLD, f"new{number}", "apples")])
        assert found(opening().open_index(OLD), "apples") == [f"new{number - 1}" if number else "a"]
        editions.switch(OLD)
        assert found(opening().open_index(OLD), "apples") == [f"new{number}"]
        with pytest.raises(Superseded):
            found(before, "apples")


def test_what_is_abandoned_is_gone_and_the_active_one_goes_on(opening: Opening) -> None:
    keeper, index = opening().open_keeper(OLD), opening().open_index(OLD)
    keeper.write([text(OLD, "a", "apples")])
    editions = opening()
    building = editions.begin(NEW)
    building.write([text(NEW, "b", "pears")])
    preview = editions.preview()
    for _ in range(2):
        opening().abandon()
        assert (editions.active(), editions.building(), editions.draft()) == (OLD, None, None)
    with pytest.raises(Superseded):
        building.write([text(NEW, "c", "pears")])
    with pytest.raises(Superseded):
        found(preview, "pears")
    assert list(editions.begin(NEW).survey()) == []
    keeper.write([text(OLD, "c", "apples")])
    assert sorted(found(index, "apples")) == ["a", "c"]


def test_the_first_edition_may_be_built_before_any_is_active(editions: Editions) -> None:
    editions.begin(NEW).write([text(NEW, "b", "pears")])
    assert editions.active() is None
    editions.switch(NEW)
    assert found(editions.open_index(NEW), "pears") == ["b"]
