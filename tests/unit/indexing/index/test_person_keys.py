"""A person is one, in whatever way the name is written."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from connectors.document import Person
from indexing.index import person_keys
from indexing.index.person_keys import MAX_LENGTH, PersonCount
from indexing.opensearch.record_mapping import person_of, person_value
from indexing.text.normalization import is_storable


def test_the_address_comes_before_the_name() -> None:
    owners = [Person(" Ann  Lee ", " Ann@Example.COM"), Person("Bob", " "), Person("", "c@d.e")]
    assert person_keys.names_by_key(owners) == {
        "ann@example.com": "Ann Lee",
        "bob": "Bob",
        "c@d.e": "c@d.e",
    }


def test_case_blanks_and_composition_make_no_other_person() -> None:
    composed = "Zoë\u00a0 Straße"
    assert person_keys.person_key(composed) == "zoë strasse"
    assert person_keys.person_key(unicodedata.normalize("NFD", composed.upper())) == "zoë strasse"


def test_who_stands_there_twice_counts_once_by_the_first_name() -> None:
    owners = [Person("Ann", "a@b.c"), Person("A. Lee", "A@B.C"), Person("")]
    assert person_keys.names_by_key(owners) == {"a@b.c": "Ann"}


@given(st.text() | st.text("ßİͅΐfi\u0301 \0\ud800aA", max_size=9))
def test_the_key_of_a_key_is_the_key(text: str) -> None:
    key = person_keys.person_key(text)
    assert person_keys.person_key(key) == key
    assert is_storable(key)


@given(st.text(min_size=MAX_LENGTH + 1))
def test_no_key_and_no_name_is_too_long(text: str) -> None:
    assert len(person_keys.person_key(text)) <= MAX_LENGTH
    assert len(person_keys.display_name(Person(text))) <= MAX_LENGTH


def test_what_is_cut_off_leaves_no_blank_at_the_end() -> None:
    text = "a" * (MAX_LENGTH - 1) + " b"
    assert person_keys.person_key(text) == "a" * (MAX_LENGTH - 1)
    assert person_keys.display_name(Person(text)) == "a" * (MAX_LENGTH - 1)


def test_one_without_name_and_address_is_called_nothing() -> None:
    assert person_keys.display_name(Person(" ", None)) == ""
    assert person_keys.names_by_key([Person(" ", None)]) == {}


@given(st.lists(st.builds(Person, st.text(max_size=9), st.none() | st.text(max_size=9))))
def test_keys_and_names_stand_on_one_line(owners: list[Person]) -> None:
    for each in person_keys.names_by_key(owners).items():
        assert all(text and text == " ".join(text.split()) for text in each)
        assert person_of(person_value(*each)) == each


def test_a_person_is_called_as_most_documents_do() -> None:
    names = [
        *[("a", "A. Lee", 2), ("a", "Ann", 3), ("a", "Lee", 1)],
        *[("b", "Z", 1), ("b", "B", 1), ("c", "C", 1)],
    ]
    assert person_keys.count_people({"a": 5, "b": 2, "d@e.f": 1}, names) == {
        "a": PersonCount("Ann", 5),
        "b": PersonCount("B", 2),
        "d@e.f": PersonCount("d@e.f", 1),
    }
