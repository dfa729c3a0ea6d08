"""The guess of a text's language, by passages and of texts that give no evidence."""

import pytest

from indexing.text.languages import LANGUAGES, find_stop_words, guess_languages
from indexing.text.normalization import normalize
from tests.support.languages import PASSAGES


def test_each_language_has_a_passage() -> None:
    assert set(PASSAGES) == set(LANGUAGES)


@pytest.mark.parametrize("code", [code for code in LANGUAGES if code not in {"el", "hy", "ta"}])
def test_a_passage_is_taken_for_its_language(code: str) -> None:
    assert guess_languages(PASSAGES[code]) == {LANGUAGES[code].script: code}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Gesamtbetriebsvereinbarung",
        "Der Spiegel, Die Zeit, La Stampa, El País, Las Vegas, Le Monde, De Standaard",  # names
        "José Núñez, Ángel Muñoz, Inés Cruz, Señora Peña",
        "x = y; de = lambda n: n",
        "東京都の就業規則",
        "ERR-1042 in foo_bar.py",
    ],
)
def test_what_says_too_little_is_undecided(text: str) -> None:
    assert guess_languages(text) == {}


def test_a_long_list_needs_more_than_a_few_words() -> None:
    names = "Ernst van Dyk, Vincent de la Cruz, Jan van der Berg. "
    assert guess_languages(names * 20) == {}


def test_a_text_in_two_scripts_has_a_language_in_each() -> None:
    assert guess_languages(f"{PASSAGES['de']} {PASSAGES['sr']}") == {
        "Latin": "de",
        "Cyrillic": "sr",
    }


@pytest.mark.parametrize(
    ("query", "codes", "dropped", "kept"),
    [
        ("wie hoch ist der Eiffelturm", {"de"}, {"ist", "der"}, {"hoch"}),
        ("what is the height of the tower", {"de"}, {"is", "the", "of"}, {"hat", "die"}),
        ("der Eiffelturm", {"de"}, set(), {"der"}),  # one word may be of any language
        ("ist der", {"fr"}, set(), {"ist", "der"}),  # no document is in German
        ("ist der", set(), set(), {"ist", "der"}),
    ],
)
def test_stop_words_are_those_of_the_language_of_the_query(
    query: str, codes: set[str], dropped: set[str], kept: set[str]
) -> None:
    found = find_stop_words(normalize(query), frozenset(codes))
    assert dropped <= found
    assert not kept & found
