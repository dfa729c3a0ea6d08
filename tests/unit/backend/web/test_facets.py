"""What a search can be narrowed by."""

from datetime import date

from backend.web import facets
from backend.web.address import Address
from backend.wire import FacetsWire
from connectors.extraction import media_types

COUNTS = FacetsWire(
    sources={"b": 2, "a": 2, "c": 5},
    media_types={media_types.PDF: 1, "x/strange": 3},
    months={"2025-12": 1, "2024-02": 2, "2025-03": 4},
)


def test_most_documents_first_and_years_newest_first() -> None:
    source, kind, updated = facets.groups(COUNTS, Address(text="q"))
    assert [(choice.name, choice.count) for choice in source.choices] == [
        ("c", 5),
        ("a", 2),
        ("b", 2),
    ]
    assert [choice.name for choice in kind.choices] == ["x/strange", "PDF"]
    assert [(choice.name, choice.count) for choice in updated.choices] == [("2025", 5), ("2024", 2)]
    months = [(month.name, month.count) for month in updated.choices[0].under]
    assert months == [("December 2025", 1), ("March 2025", 4)]


def test_a_choice_leads_to_the_search_with_it_and_back() -> None:
    asked = Address(text="q", limit=60)
    taken = facets.groups(COUNTS, asked)[1].choices[1]
    assert (taken.href, taken.chosen) == ("/?q=q&type=pdf", False)
    back = facets.groups(COUNTS, Address(text="q", media_types=(media_types.PDF,)))[1].choices[1]
    assert (back.href, back.chosen) == ("/?q=q", True)


def test_a_month_is_from_its_first_to_its_last_day() -> None:
    asked = Address(since=date(2024, 2, 1), until=date(2024, 2, 29))
    shown = facets.groups(COUNTS, asked)
    assert [(name, choice.name) for name, choice in facets.chosen(shown)] == [
        ("Updated", "February 2024")
    ]
    assert shown[2].choices[1].open
    assert not shown[2].choices[0].open
    assert shown[2].choices[0].href == "/?since=2025-01-01&until=2025-12-31"


def test_what_is_chosen_stays_where_nothing_is_left_of_it() -> None:
    source = facets.groups(COUNTS, Address(sources=("gone",)))[0]
    assert [(choice.name, choice.count) for choice in source.choices if choice.chosen] == [
        ("gone", 0)
    ]


def test_a_group_without_choices_is_left_out() -> None:
    assert facets.groups(FacetsWire(sources={}, media_types={}, months={}), Address()) == ()
