"""The words of a query, where they stand in a text."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from backend.web.highlighting import (
    LONGEST_EXCERPT,
    Piece,
    QueryWords,
    excerpt,
    pieces,
    table_as_lines,
    without_markup,
)
from indexing.text.analysis import add_joined_codes, document_words
from tests.support.languages import PASSAGES


def _marked(text: str, query: str) -> list[str]:
    return [piece.text for piece in pieces(text, QueryWords(query)) if piece.marked]


@given(st.text(max_size=80), st.text(max_size=20))
def test_no_character_is_lost(text: str, query: str) -> None:
    assert "".join(piece.text for piece in pieces(text, QueryWords(query))) == text


@example("skies")
@example("Dying")
@example("ugly")
@given(st.from_regex(r"[A-Za-z0-9]{1,12}", fullmatch=True))
def test_every_indexed_word_of_a_plain_token_begins_with_its_first_letter(token: str) -> None:
    """Without which `_choose_candidates` would leave out what is to be marked."""
    initials = {word[0] for word in add_joined_codes(document_words(token, frozenset()))}
    assert initials <= {token[0].lower()}


@pytest.mark.parametrize(
    ("text", "query", "marked"),
    [
        (
            "Parking bikes at Leeds' office",
            "bike park leeds",
            ["Parking", "bikes", "Leeds"],
        ),  # stems
        ("The QX-4031 and QX-4013", "QX-4031", ["QX-4031"]),  # QX is a word of both
        ("E-2207, E_2207, E2207 and E-2208", "E2207", ["E-2207", "E_2207", "E2207"]),
        ("E2207 is E-2207", "e-2207", ["E2207", "E-2207"]),
        ("PN-88-1402-B, pn-88-1420-b", "PN-88-1420-B saw", ["pn-88-1420-b"]),
        ("Ein Café im Haus", "cafe", ["Café"]),  # Latin letters without their marks
        ("在宅勤務は三日", "在宅勤務", ["在宅勤務"]),
        ("家で仕事", "家", ["家"]),
        ("It is not here", "is it", []),  # stop words are not searched
        ("My note from Ann", "my note from Bob", ["note"]),  # and others stand everywhere
        ("Far from here", "from", ["from"]),  # unless nothing else is searched
        ("Far from here", '"from here"', ["from", "here"]),
        ("abc", "", []),
    ],
)
def test_what_the_index_finds_is_marked(text: str, query: str, marked: list[str]) -> None:
    assert _marked(text, query) == marked


@pytest.mark.parametrize(
    ("language", "query", "marked"),
    [
        ("de", "Mitarbeitern Urlaubstag", ["Mitarbeiter", "Urlaubstage"]),
        ("de", "the firms", []),  # an English stem of a German word is none
    ],
)
def test_words_of_a_text_are_compared_in_its_own_language(
    language: str, query: str, marked: list[str]
) -> None:
    assert _marked(PASSAGES[language], query) == marked


@pytest.mark.parametrize("language", sorted(PASSAGES))
def test_a_text_is_marked_by_its_own_words(language: str) -> None:
    text = PASSAGES[language]
    assert _marked(text, text)


def test_an_excerpt_begins_where_most_of_the_words_are() -> None:
    text = "Nothing of note. " * 40 + "The laser interlock is open. " + "More follows. " * 40
    shown = "".join(piece.text for piece in excerpt(text, QueryWords("interlock laser")))
    assert shown.startswith("… The laser interlock is open. More follows.")
    assert len(shown) <= LONGEST_EXCERPT + 4


def test_an_excerpt_marks_what_the_whole_text_does() -> None:
    wanted = "Open\tthe laser\n interlock. "
    text = "Nothing  of\nnote. " * 40 + wanted + "More follows. " * 40
    assert [piece for piece in excerpt(text, QueryWords("interlock laser")) if piece.marked] == [
        Piece("laser", marked=True),
        Piece("interlock", marked=True),
    ]


@given(st.text("aä在家 \n.", min_size=500), st.sampled_from(["a", "ä", "在", "在家", "a 家"]))
def test_an_excerpt_is_a_part_of_the_text_on_one_line(text: str, query: str) -> None:
    shown = "".join(piece.text for piece in excerpt(text, QueryWords(query)))
    assert shown.removeprefix("… ").removesuffix(" …") in " ".join(text.split())
    assert len(shown) <= LONGEST_EXCERPT + 4


def test_a_short_text_is_shown_whole_on_one_line() -> None:
    assert "".join(piece.text for piece in excerpt("One.\n\nTwo.", QueryWords(""))) == "One. Two."
    assert excerpt(" \n ", QueryWords("")) == ()


def test_a_table_is_read_row_by_row() -> None:
    assert table_as_lines("| a | b |\n| --- | :-: |\n| c. |  |\n| d | e |") == "a · b;\nc.\nd · e"


def test_markdown_is_read_without_its_marks() -> None:
    assert (
        without_markup("## H\n- **bold** `code` [here](https://x.example)") == "H\nbold code here"
    )
