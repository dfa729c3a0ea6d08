"""What a question asks for by its words, and whether a text has anything of it."""

import pytest

from backend.chat.extractive.question_checks import (
    AnswerType,
    answer_type,
    counted_things,
    holds_answer,
    mentions_count,
)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How much does a night in the guest house cost?", AnswerType.MONEY),
        ("What is the price of a spare key?", AnswerType.MONEY),
        ("What does a key for the side entrance cost?", AnswerType.MONEY),
        ("What allowance do I get for meals?", AnswerType.MONEY),
        ("How many weeks of leave are there?", AnswerType.DURATION),  # a unit of time follows
        ("How many chairs are there?", AnswerType.AMOUNT),
        ("How long is the guarantee?", AnswerType.DURATION),
        ("How often is it cleaned?", AnswerType.FREQUENCY),
        ("Wie oft wird geputzt?", AnswerType.FREQUENCY),
        ("多久检查一次？", AnswerType.FREQUENCY),
        ("年假有多少天？", AnswerType.DURATION),
        ("By when must it be handed in?", AnswerType.TIME),
        ("Whom do I call?", AnswerType.PERSON),
        ("Wie lange gilt der Ausweis?", AnswerType.DURATION),
        ("Wann schließt die Kantine?", AnswerType.TIME),
        ("Wer leitet das Labor?", AnswerType.PERSON),
        ("一张票多少钱？", AnswerType.MONEY),
        ("什么时候开门？", AnswerType.TIME),
        ("会議は何人までですか。", AnswerType.AMOUNT),
        ("締め切りはいつですか。", AnswerType.TIME),
        ("What should I do?", None),
        ("Is it done when the light is green?", None),  # "when" asks for nothing here
        ("", None),
    ],
)
def test_a_question_reports_what_it_asks_for(question: str, expected: AnswerType | None) -> None:
    assert answer_type(question) is expected


@pytest.mark.parametrize(
    ("kind", "holding", "lacking"),
    [
        (AnswerType.AMOUNT, "There are twelve of them.", "There are some of them."),
        (AnswerType.MONEY, "It comes to 45 euros a day.", "It comes to 45 pieces a day."),
        (AnswerType.MONEY, "費用は5000円です。", "費用がかかります。"),
        (AnswerType.DURATION, "Within fifteen working days.", "Within five kilometres."),
        (AnswerType.DURATION, "十五个工作日内提交。", "请在系统中提交。"),
        (
            AnswerType.FREQUENCY,
            "It leaves every second Tuesday.",
            "It can be undone for two weeks.",
        ),
        (AnswerType.FREQUENCY, "Twice a year it is oiled.", "Every cup is oiled for an hour."),
        (AnswerType.FREQUENCY, "每月检查一次。", "检查需要三天。"),
        (AnswerType.TIME, "It takes place in September.", "It takes place in Graz."),
        (AnswerType.TIME, "The doors close at 18:30.", "The doors close by themselves."),
        (AnswerType.PERSON, "Ask the head of your team.", "Press the green button."),
        (AnswerType.PERSON, "It belongs to Ann Lee.", "It belongs there."),
    ],
)
def test_a_text_holds_it_or_not(kind: AnswerType, holding: str, lacking: str) -> None:
    assert holds_answer(kind, holding)
    assert not holds_answer(kind, lacking)


@pytest.mark.parametrize(
    ("question", "things"),
    [
        ("How many days is it?", {"day"}),  # "is" says nothing
        ("For how many working days do I get it?", {"work", "day"}),
        ("Wie viele Tage sind das?", {"tage", "sind"}),
        ("How much is it?", set()),
    ],
)
def test_a_question_reports_what_is_to_be_counted(question: str, things: set[str]) -> None:
    assert counted_things(question) == things


@pytest.mark.parametrize(
    ("counting", "not_counting"),
    [
        ("It lasts fourteen days.", "It lasts until the day of rest."),
        (
            "At most 20 working days a year.",
            "At most 20 euros a day.",
        ),  # one word may stand between
        ("It takes a week or two days.", "Come one hour before the day begins."),
    ],
)
def test_a_number_counts_what_stands_right_behind_it(counting: str, not_counting: str) -> None:
    assert mentions_count(frozenset({"day"}), counting)
    assert not mentions_count(frozenset({"day"}), not_counting)
