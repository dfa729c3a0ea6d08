import pytest

from connectors.mail.quoted_replies import QuoteRemover

FIRST = "Shall we meet at five, in the small room on the second floor?\n\nOr at six?\n\n-- \nAnn"


def without(text: str, *said: str) -> str:
    earlier = QuoteRemover()
    for one in said:
        earlier.add_message(one)
    return earlier.remove_quotes(text)


REPLIES = {
    "marked": "Yes.\n\nOn 5 Jan 2026 Ann Lee wrote:\n> Shall we meet at five, in the small\n> room on the"
    " second floor?\n>\n> Or at six?\n>\n> -- \n> Ann\n",
    "deeper": "Yes.\n\n> > Shall we meet at five, in the small room on the second floor?\n> >\n> > Or at six?",
    "below": "Yes.\n\n-----Original Message-----\nFrom: Ann Lee\nSent: Monday\nTo: Bo\nSubject: Room\n\n"
    "Shall we meet at five, in the small room on the second floor?\n\nOr at six?\n",
    "german": "Yes.\n\nAm 05.01.2026 um 10:00 schrieb Ann Lee:\n\nOr at six?",
    "japanese": "Yes.\n\n2026年1月5日(月) 10:00 Ann Lee <ann@example.com>:\n\nOr at six?",
    "above": "> Or at six?\n\nYes.",
}


@pytest.mark.parametrize("reply", REPLIES.values(), ids=list(REPLIES))
def test_what_the_conversation_holds_is_not_said_again(reply: str) -> None:
    assert without(reply, FIRST) == "Yes."


def test_an_answer_between_the_lines_stays_where_it_was() -> None:
    reply = "On 5 Jan, Ann wrote:\n> Shall we meet at five, in the small room on the second floor?\n\nYes.\n\n> Or at six?\nNo."
    assert without(reply, FIRST) == "Yes.\n\nNo."


@pytest.mark.parametrize("said", [(), ("Something else.",)])
def test_what_is_quoted_from_elsewhere_stays_with_its_introduction(said: tuple[str, ...]) -> None:
    reply = "See below.\n\nOn 5 Jan 2026 Cy wrote:\n> The budget is 90.\n>\n> Regards, Cy"
    kept = "See below.\n\nOn 5 Jan 2026 Cy wrote:\n\n> The budget is 90.\n\n> Regards, Cy"
    assert without(reply, *said) == kept


def test_a_quotation_that_was_changed_stays() -> None:
    assert without("No.\n\n> Or at seven?", FIRST) == "No.\n\n> Or at seven?"


def test_a_part_of_a_word_is_no_repetition() -> None:
    assert without("> Or at s", FIRST) == "> Or at s"


def test_own_words_and_signatures_stay_though_they_were_said_before() -> None:
    assert without("Or at six?\n\n-- \nAnn", FIRST) == "Or at six?\n\n-- \nAnn"


def test_the_quotation_of_a_quotation_was_said_too() -> None:
    second = "Yes.\n\n> The budget is 90."
    assert without("Good.\n\n> Yes.\n>\n> > The budget is 90.", FIRST, second) == "Good."


def test_hostile_text_takes_no_longer_than_its_length_warrants() -> None:
    lines = "\n\n".join(f"> line {number} {'<a@b' * 20}:" for number in range(3_000))
    assert "line 2999" in without(lines, "x" * 400_000)
