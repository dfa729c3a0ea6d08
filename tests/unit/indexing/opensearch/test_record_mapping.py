"""Documents and chunks come back from their records as they were, by way of JSON."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from connectors.access import NOBODY, Access
from connectors.document import Person, Span
from indexing.chunking.chunk import Chunk
from indexing.index.protocols import Replace
from indexing.index.validation import BatchLimits, PreparedReplace, prepare_batches
from indexing.opensearch.mapping import IndexLayout, index_body
from indexing.opensearch.record_mapping import (
    ChunkLabels,
    DocumentRecord,
    Version,
    chunk_of,
    chunk_source,
    document_record,
    document_source,
    record_of,
)
from indexing.text.analysis import BY_LANGUAGE
from tests.support.chunks import DIMENSION, IDENTITY, document, vectors

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
LABELS = st.frozensets(TEXT, max_size=3)
MOMENTS = st.none() | st.datetimes(min_value=datetime(1900, 1, 1), timezones=st.just(UTC))
ACCESS = st.sampled_from(
    [
        NOBODY,
        Access.to(["public"]),
        Access.to(["user:a@b", "group:ü x".replace(" ", "")]),
        Access.all_of([["user:a@b", "group:ü"], ["external:wiki:space"]]),
    ]
)
VERSIONS = st.builds(Version, st.text("0123456789abcdef", max_size=12), st.integers(0, 10**6))
RECORDS = st.builds(
    DocumentRecord,
    id=TEXT,
    state=st.sampled_from(["coming", "document", "gone"]),
    generation=st.integers(0, 2**60),
    content_hash=TEXT,
    version=VERSIONS,
    leaving=st.lists(VERSIONS, max_size=2).map(tuple),
    unfinished=st.booleans(),
    access=ACCESS,
    hidden=st.booleans(),
    boost=st.floats(0, 1e6),
    sets=LABELS,
    projects=LABELS,
    personas=LABELS,
    tags=LABELS,
    source=TEXT,
    media_type=TEXT,
    title=TEXT,
    owners=st.lists(st.builds(Person, TEXT, st.none() | TEXT), max_size=2).map(tuple),
    created_at=MOMENTS,
    updated_at=MOMENTS,
)


def through_json(source: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(source))
    return found


@given(RECORDS)
def test_a_document_record_comes_back_as_it_was(record: DocumentRecord) -> None:
    assert document_record(through_json(document_source(record))) == record


@st.composite
def replaces(draw: st.DrawFn) -> Replace:
    """A document of one or two chunks, with its record."""
    said = draw(RECORDS)
    count = draw(st.integers(1, 2))
    chunks = tuple(
        Chunk(
            document_id="a",
            position=position,
            text=draw(TEXT),
            embedded_text=draw(TEXT),
            section=draw(st.integers(0, 99)),
            span=Span(3, 3 + draw(st.integers(0, 99))),
            title=said.title,
            link=draw(TEXT),
            source=said.source,
            media_type=said.media_type,
            access=said.access,
            page=draw(st.none() | st.integers(1, 99)),
            heading_path=draw(st.lists(TEXT, max_size=2).map(tuple)),
            tags=said.tags,
            sets=said.sets,
            projects=said.projects,
            personas=said.personas,
            owners=said.owners,
            boost=said.boost,
            hidden=said.hidden,
            created_at=said.created_at,
            updated_at=said.updated_at,
        )
        for position in range(count)
    )
    return Replace(
        document_id="a",
        generation=said.generation,
        content_hash=said.content_hash,
        chunks=chunks,
        vectors=vectors([f"{n}" for n in range(count)]),
    )


def prepared(change: Replace) -> PreparedReplace:
    ((item,),) = prepare_batches([change], DIMENSION, BatchLimits(10, 10), BY_LANGUAGE)
    assert isinstance(item, PreparedReplace)
    return item


@given(replaces())
def test_chunks_come_back_as_they_were(change: Replace) -> None:
    item = prepared(change)
    record = record_of(item, Version("v", len(change.chunks)))
    for position, chunk in enumerate(change.chunks):
        source = through_json(chunk_source(record, item, position))
        assert chunk_of(source, through_json(document_source(record))) == chunk


@given(replaces())
def test_every_field_of_a_record_is_in_the_strict_mapping(change: Replace) -> None:
    item = replace(prepared(change), languages=frozenset({"de"}))
    record = record_of(item, Version("v", len(change.chunks)))
    fields = set(index_body("i", IDENTITY, IndexLayout())["mappings"]["properties"])
    assert set(document_source(record)) | set(chunk_source(record, item, 0)) == fields - {"vector"}


def test_a_text_within_the_embedded_text_is_stored_once() -> None:
    change = document("a", "the text", embedded_text="Title\nthe text\ntag")
    place = chunk_source(record_of(prepared(change), Version("v", 1)), prepared(change), 0)["place"]
    assert (place["embedded"], place["text"]) == ("Title\nthe text\ntag", [6, 14])


def test_a_hidden_document_is_shown_to_nobody() -> None:
    record = record_of(prepared(document("a", "text", hidden=True)), Version("v", 1))
    assert ChunkLabels.of(record).to_source()["readers"] == []
    assert document_source(record)["said"]["access"] == ["public"]


def test_a_person_is_filtered_by_key_and_counted_with_a_name() -> None:
    owners = (Person("Ann Lee", "Ann@Example.com"), Person("Bob"))
    change = prepared(document("a", "text", owners=owners))
    record = record_of(change, Version("v", 1))
    assert document_source(record)["person"] == ["ann@example.com\nAnn Lee", "bob\nBob"]
    for source in (document_source(record), chunk_source(record, change, 0)):
        assert source["people"] == ["ann@example.com", "bob"]


def test_months_are_those_of_utc() -> None:
    # Half past midnight on the first of June two hours east of Greenwich is still May there.
    zone = datetime.fromisoformat("2026-01-01T00:00+02:00").tzinfo
    moment = datetime(2026, 6, 1, 0, 30, tzinfo=zone)
    record = record_of(prepared(document("a", "text", updated_at=moment)), Version("v", 1))
    source = document_source(record)
    assert source["month"] == "2026-05"
    assert source["updated"] == (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(
        microseconds=1
    )
