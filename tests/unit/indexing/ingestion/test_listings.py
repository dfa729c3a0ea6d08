"""A listing is applied in pages; what came before an error of its source is not lost."""

from collections.abc import Iterator, Sequence
from datetime import timedelta

import pytest

from connectors.access import EVERYBODY
from connectors.connector import Checkpoint, DocumentListing, ListingItem
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.ingestion.listings import ListingPage, group_listing

A, B, C = (DocumentListing(f"desk:{name}", EVERYBODY) for name in "abc")
FIRST, SECOND = Checkpoint("1"), Checkpoint("2")
LATER = 3600.0


def pages(items: Sequence[ListingItem], size: int = 2, seconds: float = LATER) -> list[ListingPage]:
    return list(group_listing(items, size, seconds))


def test_a_page_ends_with_its_last_document_and_knows_the_last_checkpoint() -> None:
    assert pages([A, FIRST, B, C, SECOND]) == [
        ListingPage((A, B), FIRST),
        ListingPage((C,), SECOND),
    ]
    assert pages([]) == []


def test_a_checkpoint_is_not_held_back_for_long() -> None:
    assert pages([A, FIRST, B], size=500, seconds=0.0) == [
        ListingPage((A,), FIRST),
        ListingPage((B,), None),
    ]


@pytest.mark.parametrize(
    "error",
    [
        TemporarilyUnavailableError("Too many requests.", timedelta(hours=1)),
        ActionRequiredError("No."),
    ],
    ids=lambda one: type(one).__name__,
)
def test_an_error_of_the_source_comes_after_what_was_listed_before_it(error: Exception) -> None:
    def listing() -> Iterator[ListingItem]:
        yield from (A, FIRST, B)
        raise error

    found = group_listing(listing(), 500, LATER)
    assert next(found) == ListingPage((A, B), FIRST)
    with pytest.raises(type(error)):
        next(found)


def test_any_other_error_writes_nothing_more() -> None:
    def listing() -> Iterator[ListingItem]:
        yield A
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        next(group_listing(listing(), 500, LATER))
