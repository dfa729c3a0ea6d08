import pytest

from backend.chat.citations.negation import Denial, compare_denials, is_negated, read_clauses


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("You may not enter.", True),
        ("You can't enter.", True),
        ("Never enter.", True),
        ("It lacks a door.", True),
        ("Das ist kein Eingang.", True),
        ("入らないでください。", True),
        ("不可以进入。", True),
        ("You may enter.", False),
        ("Smoking is forbidden.", True),
        ("Pay no later than Friday.", False),  # a limit, no denial
        ("It is not only cheap.", False),
        ("Whether it rains or not.", False),
        ("A notable knot.", False),  # "not" inside a word denies nothing
    ],
)
def test_negation_is_seen(text: str, expected: bool) -> None:  # noqa: FBT001 - a column of the table
    assert is_negated(text) is expected


@pytest.mark.parametrize(
    ("claim", "passage", "expected"),
    [
        ("It is not open.", "", "missing"),
        ("It is open.", "", "matches"),
        ("Lamps shine.", "The gate is closed.", "matches"),
        ("Lamps never shine.", "The gate is closed.", "missing"),
        (
            "The gate is not closed on Sunday.",
            "The gate is closed on Sunday, no shop is.",
            "conflict",
        ),
        ("Pay at once.", "Do not pay at once.", "conflict"),
        ("Do not pay at once.", "Do not pay at once.", "matches"),
        ("Pay at once, but not in cash.", "Pay at once; cash is not taken.", "matches"),
        ("Loan cars wait for guests in Leeds.", "There are no loan cars.", "conflict"),
        ("There are no loan cars.", "There are no loan cars.", "matches"),
        ("At that time guests came to Leeds.", "There was no time.", "matches"),
        ("Smoking is forbidden.", "Smoking is not allowed.", "matches"),  # both deny
        ("Pay no later than Friday.", "Pay by Friday.", "matches"),  # "no later" denies nothing
    ],
)
def test_clauses_deny_where_their_counterparts_do(claim: str, passage: str, expected: str) -> None:
    found = compare_denials([*read_clauses(claim)], [*read_clauses(passage)])
    assert found is Denial(expected)
