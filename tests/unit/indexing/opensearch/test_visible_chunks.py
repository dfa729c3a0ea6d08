"""What of an answer may be shown."""

from typing import Any

from connectors.document import Readers
from indexing.index.protocols import Filters
from indexing.index.validation import BatchLimits, PreparedReplace, prepare_batches
from indexing.opensearch import visible_chunks
from indexing.opensearch.query_bodies import LARGEST
from indexing.opensearch.record_mapping import Version, chunk_source, document_source, record_of
from indexing.opensearch.search_requests import Answer
from tests.support.chunks import DIMENSION, chunk, document


def _prepared(name: str, **fields: Any) -> PreparedReplace:
    ((item,),) = prepare_batches(
        [document(name, "one", "two", **fields)], DIMENSION, BatchLimits(1, 9)
    )
    assert isinstance(item, PreparedReplace)
    return item


def _answer(*sources: dict[str, Any]) -> Answer:
    return Answer(
        [{"_id": source.get("chunk", source["key"]), "_source": source} for source in sources],
        0,
        partial=False,
        facets={},
    )


def test_a_chunk_counts_if_its_document_came_and_names_its_version() -> None:
    item = _prepared("a")
    old, new = record_of(item, Version("old", 2)), record_of(item, Version("new", 2))
    other = record_of(_prepared("b"), Version("new", 2))
    chunks = [chunk_source(record, item, 0) for record in (old, new)]
    shown = dict(visible_chunks.shown([_answer(*chunks, document_source(new))]))
    assert list(shown) == [f"{new.key}.new.0"]
    assert dict(visible_chunks.shown([_answer(*chunks)])) == {}
    assert dict(visible_chunks.shown([_answer(*chunks, document_source(other))])) == {}


def test_a_chunk_is_told_as_its_document_says_now() -> None:
    item = _prepared("a", boost=1.0)
    record = record_of(item, Version("v", 2))
    amended = record_of(_prepared("a", boost=3.0, sets=frozenset({"hr"})), Version("v", 2))
    answer = _answer(document_source(amended), chunk_source(record, item, 1))
    ((_, shown),) = visible_chunks.shown([answer])
    assert shown.chunk == chunk("a", 1, "two", boost=3.0, sets=frozenset({"hr"}))
    assert shown.words == "two"


def test_a_filter_of_sets_holds_for_what_the_document_says() -> None:
    record = record_of(_prepared("a", sets=frozenset({"hr", "it"})), Version("v", 2))
    known, name = {record.key: document_source(record)}, f"{record.key}.v.0"
    assert visible_chunks.counts(name, known, Filters())
    assert visible_chunks.counts(name, known, Filters(sets=frozenset({"it", "x"})))
    assert not visible_chunks.counts(name, known, Filters(sets=frozenset({"x"})))
    assert not visible_chunks.counts(name, known, Filters(sets=frozenset()))
    assert not visible_chunks.counts(f"{record.key}.w.0", known, Filters())
    assert not visible_chunks.counts("other.v.0", known, Filters())


def test_no_document_is_divided_between_searches() -> None:
    ids = [f"key{n % 7}.v.{n}" for n in range(2 * LARGEST)]
    bodies = visible_chunks.bodies(ids, Readers.of())
    asked = [body["query"]["bool"]["filter"][0]["bool"]["should"] for body in bodies]
    chunks = [part[0]["ids"]["values"] for part in asked]
    keys = [{each.partition(".")[0] for each in group} for group in chunks]
    assert sorted(each for group in chunks for each in group) == sorted(ids)
    assert sum(map(len, keys)) == 7
    assert all(body["size"] <= LARGEST for body in bodies)
    assert visible_chunks.bodies([], Readers.of()) == []
