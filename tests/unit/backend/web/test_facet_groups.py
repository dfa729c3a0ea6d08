"""What a search can be narrowed by."""

from dataclasses import replace
from datetime import date

from backend.web import facet_groups
from backend.web.search_url import Address
from connectors.extraction import registry
from indexing.index.person_keys import PersonCount
from indexing.index.protocols import Facets

COUNTS = Facets(
    sources={"b": 2, "a": 2, "c": 5},
    media_types={registry.PDF: 1, "x/strange": 3},
    people={
        "ann@example.com": PersonCount("Ann Lee", 3),
        "bob": PersonCount("Bob", 2),
        "ann lee": PersonCount("Ann Lee", 1),
    },
    months={"2025-12": 1, "2024-02": 2, "2025-03": 4},
)


def test_most_documents_first_and_years_newest_first() -> None:
    source, kind, _, updated = facet_groups.groups(COUNTS, Address(text="q"))
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
    taken = facet_groups.groups(COUNTS, asked)[1].choices[1]
    assert (taken.href, taken.chosen) == ("/?q=q&type=pdf", False)
    back = facet_groups.groups(COUNTS, Address(text="q", media_types=(registry.PDF,)))[1].choices[1]
    assert (back.href, back.chosen) == ("/?q=q", True)


def test_a_month_is_from_its_first_to_its_last_day() -> None:
    asked = Address(since=date(2024, 2, 1), until=date(2024, 2, 29))
    shown = facet_groups.groups(COUNTS, asked)
    assert [(name, choice.name) for name, choice in facet_groups.chosen(shown, asked)] == [
        ("Updated", "February 2024")
    ]
    assert shown[3].choices[1].open
    assert not shown[3].choices[0].open
    assert shown[3].choices[0].href == "/?since=2025-01-01&until=2025-12-31"


def test_what_is_chosen_stays_where_nothing_is_left_of_it() -> None:
    source = facet_groups.groups(COUNTS, Address(sources=("gone",)))[0]
    assert [(choice.name, choice.count) for choice in source.choices if choice.chosen] == [
        ("gone", 0)
    ]


def test_chosen_dates_can_be_taken_back_where_nothing_of_them_is_counted() -> None:
    asked = Address(text="q", since=date(2023, 1, 1), until=date(2023, 12, 31))
    ((name, choice),) = facet_groups.chosen(facet_groups.groups(COUNTS, asked), asked)
    assert (name, choice.name, choice.href) == ("Updated", "2023-01-01 to 2023-12-31", "/?q=q")


def test_who_are_called_alike_are_distinguished() -> None:
    person = facet_groups.groups(COUNTS, Address(text="q", people=("bob",)))[2]
    assert [(choice.name, choice.count, choice.chosen) for choice in person.choices] == [
        ("Ann Lee (ann@example.com)", 3, False),
        ("Bob", 2, True),
        ("Ann Lee", 1, False),
    ]
    assert person.choices[0].href == "/?q=q&person=bob&person=ann%40example.com"
    assert person.choices[1].href == "/?q=q"


def test_of_very_many_people_the_foremost_are_shown_and_who_is_chosen() -> None:
    many = {f"p{n}": PersonCount(f"P {n}", 99 - n) for n in range(60)}
    counts = replace(COUNTS, people=many)
    person = facet_groups.groups(counts, Address(people=("p50", "gone@example.com")))[2]
    assert [(choice.name, choice.count) for choice in person.choices] == [
        *((one.name, one.documents) for one in [*many.values()][: facet_groups.MOST_PEOPLE]),
        ("P 50", 49),
        ("gone@example.com", 0),
    ]
    assert [choice.name for choice in person.choices if choice.chosen] == [
        "P 50",
        "gone@example.com",
    ]


def test_of_many_choices_the_first_are_seen_at_once_and_who_is_chosen() -> None:
    many = {f"p{n}": PersonCount(f"P {n}", 99 - n) for n in range(1, 12)}
    counts = replace(COUNTS, people=many)
    person = facet_groups.groups(counts, Address(people=("p10",)))[2]
    assert [number for number, _ in person.first] == [1, 2, 3, 4, 5, 6, 7, 8, 10]
    assert [(number, choice.name) for number, choice in person.further] == [
        (9, "P 9"),
        (11, "P 11"),
    ]
    # Two more are not worth a fold.
    ten = facet_groups.groups(replace(counts, people=dict([*many.items()][:10])), Address())[2]
    assert (len(ten.first), ten.further) == (10, ())


def test_a_group_without_choices_is_left_out() -> None:
    nothing = Facets(sources={}, media_types={}, people={}, months={})
    assert facet_groups.groups(nothing, Address()) == ()
