"""The page that asks: filters are kept from the search, and examples are of what the asker may read."""

import json
from datetime import UTC, date, datetime

from backend.container import Container
from backend.search.query_syntax import parse_query
from backend.web.pages.ask_page import filters_json, list_chips, list_examples
from backend.web.search_url import Address, of_filters
from connectors.access import Readers
from connectors.extraction import registry
from indexing.index.protocols import DateRange, Filters

CHOSEN = Address(
    text="who pays?",
    sources=("mail", "wiki"),
    media_types=(registry.PDF,),
    people=("ann@example.com",),
    since=date(2025, 1, 1),
)


def test_the_filters_of_a_query_are_asked_under() -> None:
    parsed = parse_query("who pays? source:wiki type:pdf before:2026")
    address = of_filters(parsed.text, parsed.filters(frozenset()))
    assert address.question_url == "/ask?q=who+pays%3F&source=wiki&type=pdf&until=2025-12-31"


def test_filters_are_those_of_the_address() -> None:
    updated = DateRange(datetime(2025, 1, 1, tzinfo=UTC), None)
    filters = Filters(
        sources=frozenset({"mail", "wiki"}),
        media_types=frozenset({registry.PDF}),
        people=frozenset({"ann@example.com"}),
        updated=updated,
    )
    assert of_filters("who pays?", filters) == CHOSEN


def test_each_filter_is_a_chip_that_takes_it_away() -> None:
    chips = {(chip.name, chip.value): chip.href for chip in list_chips(CHOSEN)}
    assert set(chips) == {
        ("Source", "mail"),
        ("Source", "wiki"),
        ("Type", "PDF"),
        ("Person", "ann@example.com"),
        ("From", "2025-01-01"),
    }
    assert "source=mail" not in chips["Source", "mail"]
    assert "source=wiki" in chips["Source", "mail"]


def test_the_api_takes_what_is_chosen() -> None:
    assert json.loads(filters_json(CHOSEN)) == {
        "sources": ["mail", "wiki"],
        "media_types": [registry.PDF],
        "people": ["ann@example.com"],
        "since": "2025-01-01",
    }
    assert filters_json(Address()) == "{}"


def test_examples_are_of_documents_that_the_asker_may_read(container: Container) -> None:
    shown = list_examples(container.database, Readers.of())
    assert "What does “Parental leave” say?" in shown
    assert all("Salary" not in one for one in shown)
    assert "What does “Salary bands” say?" in list_examples(
        container.database, container.home_database.resolve_readers(Readers.of("group:finance"))
    )
