"""What a question demands by its form, whom and which year it names, and whether a passage has it."""

from datetime import UTC, datetime

import pytest

from backend.chat.extractive.candidate_sentences import Candidate, find_candidates
from backend.chat.extractive.question_checks import (
    asks_nothing,
    fits_numbers,
    fits_years,
    holds_count,
    holds_counted_time,
    holds_every_numbered_name,
    holds_role,
    holds_sum,
    holds_weight,
    is_whole_statement,
    names_unknown_names,
    subject_words,
)
from backend.search.models import InferenceSection
from indexing.chunking.chunk import Chunk
from indexing.index.protocols import Evidence, Hit
from tests.support.candidates import found_in
from tests.support.chunks import chunk

OFFICES = found_in("The office in Graz has a canteen. San Marino has none.")


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


def test_who_asks_how_many_days_wants_a_time() -> None:
    lasts, daily = found_in(
        "The break lasts two weeks. The hotel costs 120 euros, two meals included."
    )
    for question in (
        "How many days is the break?",
        "How many holiday days are there?",
        "有多少天？",
    ):
        assert holds_counted_time(question, lasts)
        assert not holds_counted_time(question, daily)
    assert holds_counted_time("How many rooms are there?", daily)
    assert holds_counted_time("How many days is it?", *found_in("There is no break in winter."))


@pytest.mark.parametrize(
    ("question", "held"),
    [
        ("What is the deposit for a bicycle?", [False, True, True]),
        ("How much does a bicycle cost?", [False, True, True]),
        ("How much are the fees?", [False, True, True]),
        ("What does a bicycle with a bell cost?", [False, True, True]),
        ("Was kostet ein Fahrrad?", [False, True, True]),
        ("What is the price list for?", [True, True, True]),  # no sum is asked for
        ("What is the salary band?", [True, True, True]),
        ("How much time does it take?", [True, True, True]),
    ],
)
def test_who_asks_for_a_sum_wants_one_or_that_there_is_none(
    question: str, held: list[bool]
) -> None:
    sentences = found_in(
        "The bicycle leaves within 48 hours. It comes to 20 euros. The pump is free of charge."
    )
    assert [holds_sum(question, each) for each in sentences] == held


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("How much is the deposit?", "The deposit is two months' rent."),
        ("How much is the meal allowance?", "The meal allowance is 14 a day."),
        ("How much does parking cost?", "Parking costs a third of the usual fare."),
        ("押金多少钱？", "押金为两个月租金。"),
    ],
)
def test_a_sum_may_be_told_by_a_number_without_a_currency(question: str, sentence: str) -> None:
    (told,) = found_in(sentence)
    assert holds_sum(question, told)


def test_a_number_in_a_table_may_have_its_unit_elsewhere() -> None:
    (row,) = found_in(
        "| Part | Price in euros | Days |\n|---|---|---|\n| Bicycle pump | 20.00 | 4 |"
    )
    assert holds_sum("What is the price of a pump?", row)
    assert holds_counted_time("How many days does a pump take?", row)


def test_a_time_in_a_table_is_neither_a_sum_nor_a_weight() -> None:
    warranty, weight = found_in(
        "| Product | Warranty |\n|---|---|\n| Stonesight S3 | 24 months |\n\n"
        "| Property | Value |\n|---|---|\n| Weight with battery | 2.9 |"
    )
    for question in ("What does the S3 weigh?", "How heavy is the S3?", "Was wiegt der S3?"):
        assert (holds_weight(question, warranty), holds_weight(question, weight)) == (False, True)
    assert not holds_sum("How much does the S3 cost?", warranty)
    assert holds_weight("How long is the warranty of the S3?", warranty)


@pytest.mark.parametrize(
    "sentence", ["It comes to 3 kg.", "It weighs two pounds.", "重量为三公斤。"]
)
def test_a_weight_has_a_unit(sentence: str) -> None:
    (told,) = found_in(sentence)
    assert holds_weight("How much does it weigh?", told)
    assert not holds_weight("How much does it weigh?", *found_in("It is one of 3 scanners."))


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How many days of paid leave do I get?", ["paid", "leave"]),
        ("How many vacation days do I have?", ["vacation"]),
        ("How many rooms are there?", ["rooms"]),
        ("Which day is it?", ["day"]),
        ("How many days?", ["many", "days"]),  # else nothing would be left
    ],
)
def test_a_unit_of_time_that_is_counted_is_no_part_of_the_subject(
    question: str, expected: list[str]
) -> None:
    assert subject_words(question) == expected


@pytest.mark.parametrize(
    ("question", "unknown"),
    [
        ("Is there an office in Berlin?", True),
        ("Is there an office in Graz?", False),
        ("Berlin office address", False),  # the first word is capital anyway
        ("Can I eat in San Marino?", False),
        ("Graz API", False),  # keywords
        ("Which form do I need for FMLA?", True),
        ("I am a guest from Mexico, who eats early: when may the canteen be visited?", False),
    ],
)
def test_a_name_that_no_passage_has_speaks_against_an_answer_to_a_short_question(
    question: str,
    unknown: bool,  # noqa: FBT001
) -> None:
    assert names_unknown_names(question, OFFICES) is unknown


INDIA = found_in(
    "The private schools of India are called independent. Geelong votes for Labor. The United Nations met there."
)


@pytest.mark.parametrize(
    ("question", "unknown"),
    [
        ("What is the term for an Indian school?", False),
        ("What party wins in Bedigo and Geelong?", False),
        ("Which party wins in Ballarat?", True),
        ("Where did the UN meet?", False),
        ("Where did the EU meet?", True),
        ('What is "The Labor" about?', False),
    ],
)
def test_a_name_may_be_inflected_abbreviated_or_known_in_part(
    question: str,
    unknown: bool,  # noqa: FBT001
) -> None:
    assert names_unknown_names(question, INDIA) is unknown


STAFF = found_in("""\
| Name | Role |
|---|---|
| Ines Almqvist | Chief financial officer |
| Ottoline Brandauer | Chief executive |
| Tadhg Mulvenna | Head of support |
""")


@pytest.mark.parametrize(
    ("question", "held"),
    [
        ("Who is the chief operating officer?", [False, False, False]),
        ("Who is the chief financial officer?", [True, False, False]),
        ("Who is the finance director?", [True, False, False]),
        ("Who is our CEO?", [False, True, False]),
        ("Who is the CTO?", [False, False, False]),
        ("Who is the head of support?", [False, False, True]),
        ("Who was the first head of support?", [False, False, True]),
        ("Who is the head of marketing?", [False, False, False]),
        ("Who is the head?", [True, True, True]),
        ("Who may approve it?", [True, True, True]),
    ],
)
def test_who_holds_another_role_is_no_answer(question: str, held: list[bool]) -> None:
    assert [holds_role(question, each) for each in STAFF] == held


def test_in_prose_a_role_may_stand_beside_the_sentence() -> None:
    (first, second) = found_in("Ann leads it. The head of sales has an office in Graz.")
    assert holds_role("Who is the head of sales?", first)
    assert holds_role("Who is the head of sales?", second)


def test_where_no_person_is_named_nobody_has_the_role() -> None:
    (ticket,) = found_in("The ticket for a stand is paid from the budget for sales.")
    assert not holds_role("Who is the head of sales?", ticket)


@pytest.mark.parametrize(
    ("question", "held"),
    [
        ("What does PEP 8 say on tabs?", True),
        ("What does PEP 88 say on tabs?", False),
        ("PEP 8 on tabs?", True),
        ("Are tabs used on Apollo 11?", True),
        ("Are tabs used on Apollo 12?", False),
        ("Are tabs used on Soyuz 11?", False),
        ("Are tabs used in July 2012?", True),  # a date
        ("Within 30 days?", True),  # no name
        ("Are there 5 tabs?", True),
    ],
)
def test_a_name_with_another_number_is_another_thing(
    question: str,
    held: bool,  # noqa: FBT001
) -> None:
    (tabs,) = found_in("Apollo-11 was written with tabs, as in PEP: 0008, not with blanks.")
    assert holds_every_numbered_name(question, tabs) is held


def test_the_file_name_may_have_the_name_with_its_number() -> None:
    (tabs,) = found_in("Tabs are not used here.", "python:peps/pep-0008.rst")
    assert holds_every_numbered_name("What does PEP 8 say on tabs?", tabs)
    assert not holds_every_numbered_name("What does PEP 80 say on tabs?", tabs)


def candidate(held: Chunk) -> Candidate:
    best = Hit(held, 1.0, Evidence(cosine=0.5), ())
    (found,) = find_candidates([InferenceSection((held,), best, (best,))])
    return found


def policy(document_id: str, title: str, year: int | None) -> Candidate:
    changed = datetime(year, 5, 1, tzinfo=UTC) if year else None
    text = "For meals you receive 45 euros a day."
    return candidate(chunk(document_id, 0, text, title=title, updated_at=changed))


OLD = policy("old", "Travel (old)", 2023)
NEW = policy("new", "Travel", 2025)
UNDATED = policy("undated", "Meals", None)
FOUND = (OLD, NEW, UNDATED)


@pytest.mark.parametrize(
    ("year", "fitting"),
    [
        (2022, []),
        (2023, [OLD]),
        (2024, [OLD]),  # until its successor
        (2025, [OLD, NEW]),
        (2026, [NEW]),
    ],
)
def test_a_document_is_valid_from_its_date_to_that_of_its_successor(
    year: int, fitting: list[Candidate]
) -> None:
    question = f"How much did I get for meals in {year}?"
    assert [each for each in FOUND if fits_years(question, each, FOUND)] == fitting


def test_a_year_that_stands_there_fits_whatever_the_date() -> None:
    report = candidate(chunk("report", 0, "The revenue was 61 million euros.", title="Report 2019"))
    assert fits_years("What was the revenue in 2019?", report, [report])
    assert not fits_years("What was the revenue in 2018?", report, [report])


def test_without_a_year_everything_fits() -> None:
    assert all(fits_years("How much do I get?", each, FOUND) for each in FOUND)
