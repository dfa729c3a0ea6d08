"""What a question demands by its form, and whether a passage has it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.chat.extractive.question_checks import (
    asks_nothing,
    fits_numbers,
    holds_count,
    is_whole_statement,
    names_unknown_codes,
    respell_codes,
)
from tests.support.candidates import found_in

SAWS = found_in("E-2207 means that the wire is slack. Ask for part PN-88-1402-A.")


@pytest.mark.parametrize(
    "message",
    ["hello", "Why?", "???", "And what about Denver?", "How about lunch?", "", "warranty"],
)
def test_what_has_no_subject_or_asks_nothing_of_it(message: str) -> None:
    assert asks_nothing(message)


@pytest.mark.parametrize(
    "message", ["E-2207", "Who is the director?", "What is SlabBook?", "几点开门", "dress code"]
)
def test_what_asks_something(message: str) -> None:
    assert not asks_nothing(message)


@pytest.mark.parametrize(
    ("question", "respelled"),
    [
        ("What does E2207 mean?", "What does E-2207 mean?"),
        ("What is PN881402A?", "What is PN-88-1402-A?"),
        ("What does E-2207 mean?", "What does E-2207 mean?"),
        ("What does E2270 mean?", "What does E2270 mean?"),
        ("What is slack?", "What is slack?"),
    ],
)
def test_a_code_is_written_as_the_passages_write_it(question: str, respelled: str) -> None:
    assert respell_codes(question, SAWS) == respelled


@given(st.text(max_size=80))
def test_what_has_no_code_of_the_passages_is_left_as_it_is(question: str) -> None:
    assert respell_codes(question, found_in("The wire is slack.")) == question


def test_codes_that_no_passage_has() -> None:
    assert names_unknown_codes("What does E-2270 mean?", SAWS)
    assert not names_unknown_codes("What does E-2207 mean?", SAWS)
    assert not names_unknown_codes("What is slack?", SAWS)


def test_questions_and_cut_snippets_are_no_statements() -> None:
    found = found_in(
        "How long does the battery last? The battery lasts nine hours. The dock charges…"
    )
    assert [is_whole_statement(each) for each in found] == [False, True, False]


def test_a_sentence_on_another_section_does_not_fit() -> None:
    four, five, none = found_in(
        "In lab 4 goggles are worn. In labs 5 to 7 none are worn. Ask the guard of the laboratory."
    )
    question = "What is worn in lab 4?"
    assert [fits_numbers(question, each) for each in (four, five, none)] == [True, False, True]
    assert fits_numbers("What is worn?", five)


def test_who_asks_how_many_wants_a_number_or_none() -> None:
    twelve, no_desk, rules = found_in(
        "The office has 12 desks. The shop has no desk at all. The offices have rules of their own."
    )
    question = "How many desks are in the office?"
    assert [holds_count(question, each) for each in (twelve, no_desk, rules)] == [True, True, False]
    assert holds_count("What rules are there?", rules)


def test_who_asks_for_a_telephone_number_wants_figures() -> None:
    desk, floor = found_in("Ring the desk, extension 4380. The desk is on floor 2 of the tower.")
    assert holds_count("What is the phone number of the desk?", desk)
    assert not holds_count("What is the phone number of the desk?", floor)
