import pytest

from backend.chat.citations.facts import FactKind, read_text


def facts(text: str, *kinds: str) -> list[str]:
    """Return the facts of a text, as `kind value`; only those of `kinds`, if any are named."""
    return [
        f"{fact.kind} {fact.value}{f' {fact.measure}' if fact.measure else ''}"
        for fact in read_text(text).facts
        if fact.kind in (kinds or tuple(FactKind)) and fact.kind is not FactKind.FIRST_WORD
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("It costs 1,200 euros.", "It costs 1200 euros."),  # thousands are written or not
        ("It costs 1 200.50 euros.", "It costs 1200,5 euros."),  # and decimals either way
        ("It costs €1,200.", "It costs 1200 EUR."),  # a sign is a unit
        ("It has 2.5 million users.", "It has 2,500,000 users."),
        ("Valid since 2025-03-01.", "Valid since 1 March 2025."),  # dates in words
        ("Valid since 2025-03-01.", "Valid since 01.03.2025."),  # dates with full stops
        ("Valid since Sept. 3.", "Valid since 3 September."),  # short months beside a number
        ("3月5日に", "On 5 March"),  # dates without spaces
        ("On the 5th of May.", "On 5 May."),  # a day of a month is no ordinal
        ("Take two tablets.", "Take 2 tablets."),  # numbers in words
        ("Within thirty-five days.", "Within 35 days."),
        ("It lasts two hundred and fifty days.", "It lasts 250 days."),
        ("A dozen eggs.", "12 eggs."),
        ("Reset after QX-4031.", "reset after qx-4031."),  # codes are compared folded
        ("We asked Ann's team.", "We asked Ann."),  # a possessive is the same name
        ("It opens at 9:00.", "It opens at nine."),  # a full hour
        ("It costs 0.50 euros.", "It costs 0,5 euros."),  # no thousands after a zero
        ("The 3rd floor.", "The third floor."),
        ("Every guest.", "All guests."),
        ("It is doubled.", "It is twice."),
    ],
)
def test_what_says_the_same_has_the_same_facts(one: str, other: str) -> None:
    assert sorted(facts(one)) == sorted(facts(other)) != []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("It costs 120 euros.", "It costs 1200 euros."),
        ("It costs 120 euros.", "It costs 120 dollars."),
        ("It takes 5 weeks.", "It takes 5 months."),
        ("It grew by 5 %.", "It grew by 5 percentage points."),
        ("Valid since 1 March 2025.", "Valid since 1 May 2025."),
        ("Reset after QX-4031.", "Reset after QX-4032."),
        ("We asked Ann.", "We asked Bob."),
        ("Take 2.5 litres.", "Take 25 litres."),
        ("It is 0.125 mm.", "It is 125 mm."),
        ("In 2025 600 people came.", "In all 2025600 people came."),  # a year groups nothing
        ("The first floor.", "The third floor."),
        ("Half pay.", "Full pay."),
    ],
)
def test_what_says_otherwise_has_others(one: str, other: str) -> None:
    assert facts(one) != facts(other)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It opens in June.", ["month 6"]),
        ("It opens in March.", []),  # a verb, too: a month beside a number only
        ("It opens in March 2025.", ["month 3", "number 2025 year"]),
        ("It opens in Sept.", []),
        ("It opens as Jan says.", []),  # a name, too
        ("It opens on 5 Jan.", ["number 5 day of january", "month 1"]),
        ("2025年3月1日に開く", ["number 1 day of march", "month 3", "number 2025 year"]),
        ("It weighs 1.50 kg.", ["number 1.5 mass"]),
        ("It weighs as much as one van.", []),
        ("It lasts one week.", ["number 1 time"]),
        ("It holds 85 newton metres.", ["number 85 force"]),
        ("We asked Newton.", ["name newton"]),  # a unit and a name
        ("It rose by nine per cent.", ["number 9 share"]),
        ("Profit in million euros 4.1 5.2", ["number 4100000 euros", "number 5200000 euros"]),
        ("Profit in thousand 4.1 kg", ["number 4.1 mass"]),  # a unit of its own
        ("It fell in the 1990s.", ["number 1990 decade"]),
        ("It lasts three to six paid months.", ["number 3 months", "number 6 months"]),
        ("A third of them came third.", ["share third", "ordinal 3"]),
        ("It ran 5 seconds, and then a second time.", ["number 5 time", "ordinal 2"]),
        ("There he met Al and the guests.", ["name al"]),
        ("Peyton Manning won.", ["name peyton", "name manning"]),  # two capitals are a name
        ("There we follow plan B and ask.", []),  # a letter is no name
        ("The guests of Two Towers are in Berlin.", ["number 2", "name towers", "name berlin"]),
        ("It took ٣ days.", ["number 3 time"]),
        # Digits of scripts that the standard library does not know.
        ("It took \U00010d43 days.", []),
    ],
)
def test_facts_are_normalised(text: str, expected: list[str]) -> None:
    kinds = ("number", "month", "ordinal", "share", "code", "name")
    assert facts(text, *kinds) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Prices rose.", ["opposite rose"]),
        ("The important position of the department.", ["opposite important"]),
        ("Information and additional authority.", []),  # no forms of "informal", "add", "authorise"
        ("She met Rose Bush.", []),  # a name is no other word
    ],
)
def test_words_with_an_opposite_are_found_by_their_forms(text: str, expected: list[str]) -> None:
    assert facts(text, "opposite") == expected
