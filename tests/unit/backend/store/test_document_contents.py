"""What documents say, as the ledger keeps it."""

from datetime import UTC, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.store.documents.document_contents import decode_document, encode_document
from connectors.access import EVERYBODY
from connectors.document import Document, Person, Place, Section, Span
from tests.support.store import document

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
MAYBE = st.none() | TEXT
PLACES = st.builds(
    Place,
    page=st.none() | st.integers(1, 999),
    heading_path=st.lists(TEXT, max_size=3).map(tuple),
    sheet=MAYBE,
    rows=st.none() | st.tuples(st.integers(1, 99), st.integers(1, 99)),
    span=st.none() | st.tuples(st.integers(0, 9), st.integers(9, 99)).map(lambda p: Span(*p)),
)
SECTIONS = st.builds(
    Section,
    text=TEXT,
    kind=st.sampled_from(["text", "table", "image"]),
    link=MAYBE,
    place=PLACES,
)
MOMENTS = st.none() | st.datetimes(timezones=st.just(UTC) | st.just(timezone(timedelta(hours=9))))
DOCUMENTS = st.builds(
    Document,
    id=TEXT,
    source=TEXT,
    title=TEXT,
    sections=st.lists(SECTIONS, max_size=4).map(tuple),
    link=TEXT,
    media_type=TEXT,
    access=st.just(EVERYBODY),
    version=TEXT,
    metadata=st.dictionaries(TEXT, TEXT | st.lists(TEXT, max_size=3).map(tuple), max_size=3),
    owners=st.lists(st.builds(Person, TEXT, MAYBE), max_size=2).map(tuple),
    created_at=MOMENTS,
    updated_at=MOMENTS,
    parents=st.lists(TEXT, max_size=3).map(tuple),
)


@given(DOCUMENTS)
def test_a_document_comes_back_as_it_went_in(made: Document) -> None:
    assert (
        decode_document(
            encode_document(made),
            document_id=made.id,
            source=made.source,
            version=made.version,
            access=made.access,
        )
        == made
    )


@pytest.mark.parametrize("at", [0, 9, -1])
def test_what_is_damaged_is_as_good_as_gone(at: int) -> None:
    kept = bytearray(encode_document(document("desk:a", text="Leave is 25 days. " * 100)))
    assert len(kept) < 400
    assert restored(bytes(kept)) is not None
    kept[at] ^= 0x40
    assert restored(bytes(kept)) is None
    assert restored(b"") is None
    assert restored(None) is None


def restored(content: bytes | None) -> Document | None:
    return decode_document(
        content, document_id="desk:a", source="desk", version="1", access=EVERYBODY
    )
