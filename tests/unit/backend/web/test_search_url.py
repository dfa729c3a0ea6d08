"""The search page's state is its address, and back."""

from datetime import UTC, date, datetime
from urllib.parse import urlsplit

from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import QueryParams

from backend.search.models import FilterKind
from backend.web.pages.ask_page import filters_json
from backend.web.search_url import LIMIT, MOST, Address, read, toggled
from connectors.extraction import registry
from indexing.index.person_keys import person_key
from indexing.index.protocols import DateRange

_WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20).map(str.strip)
_SEVERAL = st.lists(_WORDS.filter(bool), unique=True, max_size=3).map(tuple)
_DAYS = st.none() | st.dates(date(1900, 1, 1), date(2100, 1, 1))


@given(
    st.builds(
        Address,
        text=_WORDS,
        sources=_SEVERAL,
        sets=_SEVERAL.map(lambda names: tuple(name for name in names if name[0] != "#")),
        media_types=st.sampled_from([(), (registry.PDF,), ("x/y", registry.HTML)]),
        people=_SEVERAL.map(
            lambda names: tuple(dict.fromkeys(filter(bool, map(person_key, names))))
        ),
        since=_DAYS,
        until=_DAYS,
        limit=st.integers(1, MOST),
        literal=st.frozensets(st.sampled_from(FilterKind)),
    )
)
def test_what_is_written_is_read_again(address: Address) -> None:
    assert read(QueryParams(urlsplit(address.url).query)) == address


def test_what_is_not_understood_is_left_out() -> None:
    address = read(
        QueryParams("q= a &since=tomorrow&until=9999-12-31&limit=1e9&type=pdf&type=pdf&x=y")
    )
    assert address == Address(text="a", media_types=(registry.PDF,))
    assert read(QueryParams("set=%231&set=a")) == Address(sets=("a",))
    for name in ("source", "set", "type", "person"):
        assert read(QueryParams({name: "a" * 1_001})) == Address()
        assert filters_json(read(QueryParams({name: "a" * 1_000}))) != "{}"
    assert read(QueryParams("limit=99999")).limit == MOST
    assert read(QueryParams("limit=-1")).limit == LIMIT


def test_a_person_is_asked_for_by_key_however_the_address_was_written() -> None:
    address = read(
        QueryParams("person=Ann@Example.com&person=+Ann++LEE&person=ann@example.com&person=")
    )
    assert address.people == ("ann@example.com", "ann lee")
    assert address.url == "/?person=ann%40example.com&person=ann+lee"
    assert address.narrowed
    assert address.filters().people == frozenset(address.people)
    assert Address().filters().people is None


def test_the_last_day_is_within() -> None:
    filters = Address(since=date(2026, 2, 1), until=date(2026, 2, 28)).filters()
    assert filters.updated == DateRange(
        datetime(2026, 2, 1, tzinfo=UTC), datetime(2026, 3, 1, tzinfo=UTC)
    )
    assert (filters.sources, filters.media_types) == (None, None)


def test_more_ends_where_there_is_no_more() -> None:
    assert Address(text="a").more == "/?q=a&limit=60"
    assert Address(text="a", limit=180).more == "/?q=a&limit=200"
    assert Address(text="a", limit=200).more is None


def test_a_choice_is_taken_and_taken_back() -> None:
    assert toggled((), "a") == ("a",)
    assert toggled(("a", "b"), "a") == ("b",)
