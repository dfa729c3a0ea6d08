import pytest

from backend.chat.citations.claim_checks import anchors, is_negated


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("It costs 1,200 euros.", "It costs 1200 euros."),  # thousands are written or not
        ("It costs 1 200.50 euros.", "It costs 1200,5 euros."),  # and decimals either way
        ("Valid since 2025-03-01.", "Valid since 1 March 2025."),  # dates in words
        ("Take two tablets.", "Take 2 tablets."),  # numbers in words
        ("Reset after QX-4031.", "reset after qx-4031."),  # codes are compared folded
        ("We asked Ann's team.", "We asked Ann."),  # a possessive is the same name
        ("Valid since 2025-03-01.", "Valid since 01.03.2025."),  # dates with full stops
        ("Valid since Sept. 3.", "Valid since 3 September."),  # short months beside a number
        ("3月5日に", "On 5 March"),  # dates without spaces
        ("Within thirty-five days.", "Within 35 days."),  # numbers in words below a hundred
        ("It opens at 9:00.", "It opens at nine."),  # a full hour
        ("It costs 0.50 euros.", "It costs 0,5 euros."),  # no thousands after a zero
        ("Ask Ann.", "Please ask Ann."),  # a capital at the start of a sentence is no name
    ],
)
def test_what_says_the_same_has_the_same_anchors(one: str, other: str) -> None:
    assert anchors(one) == anchors(other) != frozenset()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("It costs 120 euros.", "It costs 1200 euros."),
        ("Valid since 1 March 2025.", "Valid since 1 May 2025."),
        ("Reset after QX-4031.", "Reset after QX-4032."),
        ("We asked Ann.", "We asked Bob."),
        ("Take 2.5 litres.", "Take 25 litres."),
        ("It is 0.125 mm.", "It is 125 mm."),
        ("In 2025 600 people came.", "In all 2025600 people came."),  # a year groups nothing
    ],
)
def test_what_says_otherwise_has_others(one: str, other: str) -> None:
    assert not anchors(one) <= anchors(other)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("You may not enter.", True),
        ("You can't enter.", True),
        ("Never enter.", True),
        ("Das ist kein Eingang.", True),
        ("入らないでください。", True),
        ("不可以进入。", True),
        ("You may enter.", False),
        ("Smoking is forbidden.", True),
        ("Pay no later than Friday.", False),  # a limit, no denial
        ("It is not only cheap.", False),
        ("A notable knot.", False),  # "not" inside a word denies nothing
    ],
)
def test_negation_is_seen(text: str, expected: bool) -> None:  # noqa: FBT001 - a column of the table
    assert is_negated(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It opens in June.", {"month:6"}),
        ("It opens in March.", set()),  # a verb, too: a month beside a number only
        ("It opens in March 2025.", {"month:3", "number:2025"}),
        ("It opens in Sept.", set()),
        ("It opens on 5 Sept.", {"month:9", "number:5"}),
        ("It opens as Jan says.", set()),  # a name, too
        ("It opens on 5 Jan.", {"month:1", "number:5"}),
        ("It opens on may 5.", {"number:5"}),
        ("2025年3月1日に開く", {"month:3", "number:2025", "number:1"}),
        ("3月1日に開く", {"month:3", "number:1"}),
        ("It weighs 1.50 kg.", {"number:1.5"}),
        ("It weighs 2.00 kg.", {"number:2"}),
        ("It weighs 0.70 kg.", {"number:0.7"}),
        ("It weighs as much as one van.", set()),
        ("There he met Al and the guests.", {"name:al"}),
        ("It opens on May 5, 2030.", {"month:5", "number:5", "number:2030"}),
        ("There we follow plan B and ask.", set()),  # a letter is no name
        ("The guests of Two Towers are in Berlin.", {"number:2", "name:towers", "name:berlin"}),
    ],
)
def test_anchors_are_normalised(text: str, expected: set[str]) -> None:
    assert anchors(text) == expected
