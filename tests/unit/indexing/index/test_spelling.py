from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexing.index.spelling import (
    MAX_CANDIDATES,
    AnyPair,
    NearWord,
    PassageLookup,
    SpellingQuery,
    correct_message,
    edit_distance,
    edit_limit,
    nearest_words,
    spelling_query,
    split_word,
    suggest_corrections,
)
from indexing.text.tokenizer import plain_words


@pytest.mark.parametrize(
    ("message", "words", "prefix"),
    [
        ("warrenty on a used scaner", ("warrenty", "used", "scaner"), "scaner"),
        ("warrenty on a used scaner?", ("warrenty", "used", "scaner"), None),
        ("what is warrenty", ("warrenty",), "warrenty"),
        # Codes, numbers, quoted words, function words, short words and scripts without spaces.
        ('E-2207 pn881 2024 "exakt phrese" where from cat 保修期 ประกัน', (), None),
        ("Où est le camión", ("camion",), "camion"),
        ("the the", (), None),
        ("", (), None),
    ],
)
def test_words_that_may_be_misspelled(
    message: str, words: tuple[str, ...], prefix: str | None
) -> None:
    assert spelling_query(message) == SpellingQuery(words, prefix)


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [
        ("scanner", "scanner", 0),
        ("scaner", "scanner", 1),
        ("warrenty", "warranty", 1),
        ("reveiw", "review", 1),
        ("calibrtaoin", "calibration", 2),
        ("form", "from", 1),
        ("abc", "xyz", None),
        ("short", "much longer", None),
    ],
)
def test_the_distance_of_two_words(one: str, other: str, distance: int | None) -> None:
    assert edit_distance(one, other, 2) == distance


words = st.text(st.sampled_from("abcd"), max_size=7)


@given(words, words)
def test_the_distance_is_symmetric_and_bounded(one: str, other: str) -> None:
    found = edit_distance(one, other, 7)
    assert found == edit_distance(other, one, 7)
    assert found is not None
    assert abs(len(one) - len(other)) <= found <= max(len(one), len(other))
    assert (found == 0) == (one == other)
    for limit in range(7):
        assert edit_distance(one, other, limit) == (found if found <= limit else None)


@given(words, st.integers(0, 6))
def test_a_transposition_is_one_place(word: str, at: int) -> None:
    swapped = word[:at] + word[at : at + 2][::-1] + word[at + 2 :]
    assert edit_distance(word, swapped, 1) in (0, 1)


def test_how_much_a_word_may_differ() -> None:
    assert [edit_limit("x" * length) for length in (4, 5, 6, 7, 8, 20)] == [0, 0, 1, 1, 2, 2]


def test_the_nearest_come_first_and_then_the_most_frequent() -> None:
    texts = ["wart warranty", "Warranty", "warranti", "warrant"]
    assert nearest_words("warrenty", 2, texts) == ("warranty", "warrant", "warranti")


@given(words, words)
def test_no_word_that_is_near_is_left_out(one: str, other: str) -> None:
    for limit in (1, 2):
        is_near = edit_distance(one, other, limit) is not None
        assert nearest_words(one, limit, [other]) == ((other,) if other and is_near else ())


@given(words, st.text(st.sampled_from("abcd ,\nเé"), max_size=40))
def test_only_the_words_of_a_text_are_compared(word: str, text: str) -> None:
    near = {found for found in plain_words(text) if edit_distance(word, found, 1) is not None}
    found = nearest_words(word, 1, [text])
    assert set(found) <= near
    assert len(found) == min(len(near), MAX_CANDIDATES)


@dataclass
class HeldWords:
    """Passages of one word each, which notes what is looked up."""

    words: tuple[str, ...]
    looked_up: list[Sequence[PassageLookup]] = field(default_factory=list)

    def inflections(self, word: str) -> list[str]:
        return [word]

    def find_known(self, words: Sequence[str]) -> frozenset[str]:
        return frozenset(words) & frozenset(self.words)

    def read_texts(self, lookups: Sequence[PassageLookup]) -> list[list[str]]:
        self.looked_up.append(lookups)
        return [[*self.words] for _ in lookups]


def test_less_probable_words_are_looked_up_only_where_nothing_is_nearer() -> None:
    passages = HeldWords(("warranty", "calibration", "laboratory"))
    found = suggest_corrections(spelling_query("warrenty calibrtaoin laboratry"), passages)
    assert found == {
        "warrenty": ("warranty",),
        "calibrtaoin": ("calibration",),
        "laboratry": ("laboratory",),
    }
    one_place, other, two_places = passages.looked_up
    assert one_place == [NearWord(word, 1) for word in ("warrenty", "calibrtaoin", "laboratry")]
    assert [type(lookup) for lookup in other] == [AnyPair]
    assert two_places == [NearWord("calibrtaoin", 2)]


def test_a_word_is_split_where_both_parts_are_long_enough() -> None:
    assert split_word("firewall") == [("fir", "ewall"), ("fire", "wall"), ("firew", "all")]
    assert split_word("abcde") == []


def test_a_message_is_corrected_where_it_is_wrong_and_nowhere_else() -> None:
    corrections = {
        "warrenty": ("warranty", "warrant"),
        "labora tory": ("laboratory",),
        "powersupply": ("power supply",),
    }
    message = "Warrenty of E-warrentyx, the labora-tory: POWERSUPPLY!"
    assert (
        correct_message(message, corrections)
        == "warranty of E-warrentyx, the laboratory: power supply!"
    )
    assert correct_message("nothing to do", {}) == "nothing to do"
