import pytest

from backend.chat.citations.claim_units import find_claimed_words, split_units


@pytest.mark.parametrize(
    "sentence",
    [
        "",
        "[1]",
        "- [1]",
        "Sources: [1] [2]",
        "See also pages [1].",
        "Yes.",
        "How long is the leave?",
        "The following rules apply:",
        "参考资料：[1]",
        "来源 [1]",
    ],
)
def test_what_states_nothing_claims_no_words(sentence: str) -> None:
    assert find_claimed_words(sentence) == frozenset()


@pytest.mark.parametrize(
    "sentence", ["It is paid.", "25 days [1].", "See the desk.", "年假为25天。"]
)
def test_what_states_something_claims_its_words(sentence: str) -> None:
    assert find_claimed_words(sentence)


@pytest.mark.parametrize(
    ("sentence", "units"),
    [
        ("The desk opens at nine.", ["The desk opens at nine"]),
        (
            "The desk opens at nine, and lunch is served outside.",
            ["The desk opens at nine", "lunch is served outside"],
        ),
        (
            "The desk opens early, which was caused by a strike of the drivers.",
            ["The desk opens early", "a strike of the drivers"],
        ),
        # a single word goes with the part before
        ("Bring boots, gloves and a warm coat.", ["Bring boots gloves", "a warm coat"]),
        # what leads to the claim says nothing
        ("According to the page, the desk opens early.", ["the desk opens early"]),
        # a long part ends where something may be added
        (
            "A new van costs forty euros with the help of an auditor from outside Graz",
            ["A new van costs forty euros", "with the help of an auditor from outside Graz"],
        ),
        ("Doctor Who plays on Sunday.", ["Doctor Who plays on Sunday"]),  # a name joins nothing
    ],
)
def test_units_may_be_borne_out_each_by_itself(sentence: str, units: list[str]) -> None:
    assert split_units(sentence) == units
