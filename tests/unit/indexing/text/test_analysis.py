"""The words of texts and queries, by language."""

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexing.text.analysis import (
    BY_LANGUAGE,
    ENGLISH,
    NO_LANGUAGES,
    add_joined_codes,
    find_analysis,
    find_stop_words,
    guess_languages,
)
from indexing.text.languages import LANGUAGES
from indexing.text.normalization import normalize
from tests.support.languages import PASSAGES

TEXTS = st.text(alphabet="aZéßİı 12.-_:@'/国のไทยКо ع\u0301ăề", max_size=40)


def _forms(query: str, *languages: str) -> set[str]:
    return {*chain.from_iterable(BY_LANGUAGE.query_words(query, frozenset(languages)))}


def _words(text: str) -> list[str]:
    return BY_LANGUAGE.analyze([text]).words[0].split()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The cats are sleeping", ["cat", "sleep"]),
        ("CAFÉ résumé Łódź", ["cafe", "resum", "lodz"]),  # undecided is English
        (
            "ERR-1042 in Report.PDF",
            ["err-1042", "err", "1042", "report.pdf", "report", "pdf", "err1042"],
        ),
        ("PN-88-1420-B", ["pn-88-1420-b", "pn", "88", "1420", "b", "pn881420b"]),
        ("работников", ["работник"]),
        ("東京都", ["東", "東京", "京", "京都", "都"]),
        ("ไทย", ["ไท", "ทย", "ไทย"]),  # pairs, then triples
        ("ไ", ["ไ"]),
        ("ไทย東京", ["ไท", "ทย", "ไทย", "東", "東京", "京"]),
        ("", []),
    ],
)
def test_words_of_a_text_whose_language_is_the_default_one(text: str, words: list[str]) -> None:
    assert _words(text) == words


@pytest.mark.parametrize(
    ("language", "held", "absent"),
    [
        ("de", {"de/urlaubstag", "de/mitarbeit"}, {"urlaubstag", "de/die", "die"}),
        ("es", {"es/vacacion", "es/empres"}, {"es/los"}),
        ("tr", {"tr/yil", "tr/yilda"}, {"tr/bu"}),  # without its diacritics, yılda has another stem
        ("vi", {"vi/nhan", "nhan·vien", "vi/cua"}, {"vien·cua·cong"}),
        ("uk", {"uk/працівники"}, {"uk/на"}),  # without a stemmer
    ],
)
def test_words_are_tagged_and_without_stop_words(
    language: str, held: set[str], absent: set[str]
) -> None:
    words = {*_words(PASSAGES[language])}
    assert held <= words
    assert not absent & words
    assert BY_LANGUAGE.analyze([PASSAGES[language]]).languages == {language}


def test_a_short_text_has_the_language_of_its_document() -> None:
    texts = [PASSAGES["de"], "Urlaubstage", "and that is the use of it"]
    german, short, english = BY_LANGUAGE.analyze(texts).words
    assert short == "de/urlaubstag"
    assert english == "use"
    assert german == BY_LANGUAGE.analyze(texts[:1]).words[0]


def test_codes_and_numbers_are_the_same_in_all_languages() -> None:
    words = _words(f"{PASSAGES['de']} PX-4410/B 2026 foo_bar.py")
    assert {"px-4410", "4410", "2026", "foo_bar.py"} <= {*words}
    assert _forms("PX-4410", "de") == {"px-4410", "px4410", "px", "de/px", "4410"}


def test_a_query_is_stemmed_in_every_language_and_loses_the_stop_words_of_each() -> None:
    asked = BY_LANGUAGE.query_words("das Haus am Meer", frozenset({"de", "it"}))
    assert asked == [
        ("haus", "de/haus", "it/haus"),
        ("meer", "de/meer", "it/meer"),
    ]
    # One function word identifies no language: each leaves out its own.
    asked = BY_LANGUAGE.query_words("Häuser in Rom", frozenset({"de", "it"}))
    assert asked == [("hauser", "de/haus", "it/hauser"), ("rom", "de/rom", "it/rom")]
    asked = BY_LANGUAGE.query_words("la casa", frozenset({"de", "it"}))
    assert asked == [("la", "de/la"), ("casa", "de/casa", "it/cas")]
    assert BY_LANGUAGE.query_words("in", NO_LANGUAGES) == []


def test_neighboring_syllables_are_a_form_of_the_second_one() -> None:
    asked = BY_LANGUAGE.query_words("nhân viên, ERR-1042 nghỉ", frozenset({"vi"}))
    assert [[form for form in word if "·" in form] for word in asked] == [
        [],
        ["nhan·vien"],
        [],
        ["vien·err"],
        [],
        [],
    ]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_text_holds_each_word_of_a_query_that_it_says(language: str) -> None:
    words = {*_words(PASSAGES[language])}
    languages = BY_LANGUAGE.analyze([PASSAGES[language]]).languages
    asked = BY_LANGUAGE.query_words(PASSAGES[language], languages)
    assert len(asked) > 5
    assert all(words & {*forms} for forms in asked)


@given(TEXTS)
def test_a_text_holds_its_own_words(text: str) -> None:
    analyzed = BY_LANGUAGE.analyze([text])
    words = {*analyzed.words[0].split()}
    asked = BY_LANGUAGE.query_words(text, analyzed.languages)
    assert all(words & {*forms} for forms in asked)


@given(TEXTS)
def test_english_texts_have_the_words_that_they_had(text: str) -> None:
    ascii_text = text.encode("ascii", "ignore").decode()
    (words,) = ENGLISH.analyze([ascii_text]).words
    assert BY_LANGUAGE.analyze([ascii_text]).words == (" ".join(add_joined_codes(words.split())),)
    asked = BY_LANGUAGE.query_words(ascii_text, NO_LANGUAGES)
    assert [word[:1] for word in asked] == ENGLISH.query_words(ascii_text, NO_LANGUAGES)


def test_an_index_is_searched_by_the_analysis_that_made_its_words() -> None:
    assert ENGLISH.fingerprint != BY_LANGUAGE.fingerprint
    assert find_analysis(ENGLISH.fingerprint) is ENGLISH
    assert find_analysis(BY_LANGUAGE.fingerprint) is BY_LANGUAGE
    assert find_analysis("of a later version") is BY_LANGUAGE


@pytest.mark.parametrize(
    "code", ["E-2207", "e-2207", "E_2207", "E2207", "E 2207", "e 2207", "E.2207"]
)
def test_a_code_is_found_however_it_is_joined(code: str) -> None:
    assert {"e2207"} <= _forms(code)
    assert {"e2207"} <= set(_words("the code E-2207")) & set(_words("the code E_2207"))


@pytest.mark.parametrize("text", ["page 2207", "in 2024", "the 10 people", "well-known", "3.14"])
def test_words_and_numbers_are_no_codes(text: str) -> None:
    assert not any(
        form.isalnum() and not form.isalpha() and not form.isdigit() for form in _forms(text)
    )


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
