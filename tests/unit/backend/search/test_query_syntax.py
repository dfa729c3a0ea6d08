from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.search.query_syntax import LONGEST_TYPED_QUERY, OperatorKind, ParsedQuery, parse_query
from indexing.index.protocols import NO_CONDITIONS, DateRange, Filters, TextConditions


def operators(query: str) -> list[tuple[str, str]]:
    return [(one.kind.value, one.value) for one in parse_query(query).operators]


@pytest.mark.parametrize(
    ("query", "found", "text"),
    [
        ("parental leave", [], "parental leave"),
        ('leave "two weeks"', [("phrase", "two weeks")], 'leave "two weeks"'),
        ("leave „zwei Wochen“", [("phrase", "zwei Wochen")], "leave „zwei Wochen“"),
        ("「育児 休業」 日数", [("phrase", "育児 休業")], "「育児 休業」 日数"),
        ("saw -draft", [("excluded", "draft")], "saw"),
        ('saw -"old plan" now', [("excluded", "old plan")], "saw now"),
        ("saw source:handbook", [("source", "handbook")], "saw"),
        ('saw set:"Our rules"', [("set", "Our rules")], "saw"),
        ("saw set:#1", [], "saw set:#1"),
        ('saw Person:"Ines Almqvist"', [("person", "Ines Almqvist")], "saw"),
        ("type:pdf saw", [("type", "pdf")], "saw"),
        ("type:text/plain saw", [("type", "text/plain")], "saw"),
        ("saw after:٢٠٢٦", [("after", "٢٠٢٦")], "saw"),
        ("after:2026-03 before:2027 saw", [("after", "2026-03"), ("before", "2027")], "saw"),
        # Not operators: within a word, before a number or a space, unknown names, no value.
        (
            "well-known e-mail at -5 degrees - or below",
            [],
            "well-known e-mail at -5 degrees - or below",
        ),
        (
            "https://example.com/a see:also source: -",
            [],
            "https://example.com/a see:also source: -",
        ),
        ("my-source:x", [], "my-source:x"),
        ("", [], ""),
    ],
)
def test_operators_and_the_text_that_remains(
    query: str, found: list[tuple[str, str]], text: str
) -> None:
    assert operators(query) == found
    assert parse_query(query).text == text


@pytest.mark.parametrize(
    ("query", "note"),
    [
        (
            "saw before:lunch",
            "“lunch” is no date, so “before:lunch” was searched as text. Use for example before:2026-03-31.",
        ),
        ("saw after:2026-02-30", "“2026-02-30” is no date"),
        # Digits of a script that the standard library does not know.
        (
            "saw after:\U00010d42\U00010d40\U00010d42\U00010d46",
            "“\U00010d42\U00010d40\U00010d42\U00010d46” is no date",
        ),
        ("saw type:scroll", "“type:scroll” names no type"),
    ],
)
def test_what_is_not_understood_is_searched_as_text_and_noted(query: str, note: str) -> None:
    parsed = parse_query(query)
    assert parsed.operators == ()
    assert parsed.text == query
    assert len(parsed.notes) == 1
    assert parsed.notes[0].startswith(note)


def test_quotes_and_dashes_of_a_pasted_text_mean_nothing_and_filters_still_do() -> None:
    written = 'so-called "distances" -all of them "near" source:papers '
    pasted = written + "x" * LONGEST_TYPED_QUERY
    assert operators(pasted) == [("source", "papers")]
    assert parse_query(pasted).conditions == NO_CONDITIONS
    assert '"distances" -all of them "near"' in parse_query(pasted).text
    (note,) = parse_query(pasted).notes
    assert note.startswith("Your search is longer than 500 characters, so quotation marks and")
    at_most = written + "x" * (LONGEST_TYPED_QUERY - len(written))
    assert [kind for kind, _ in operators(at_most)] == ["phrase", "excluded", "phrase", "source"]
    assert parse_query(at_most).notes == ()


def test_operators_become_filters() -> None:
    parsed = parse_query(
        'saw "two weeks" -draft source:a source:b type:pdf person:Ines after:2026-03 before:2026-05-02'
    )
    assert parsed.filters(frozenset({"ines@example.com"})) == Filters(
        sources=frozenset({"a", "b"}),
        media_types=frozenset({"application/pdf"}),
        people=frozenset({"ines@example.com"}),
        updated=DateRange(datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 5, 2, tzinfo=UTC)),
    )
    assert parsed.conditions == TextConditions(required_phrases=("two weeks",), excluded=("draft",))
    assert parse_query("saw").filters(frozenset()) == Filters()
    assert parse_query("saw").conditions == NO_CONDITIONS


def test_an_operator_can_be_taken_away() -> None:
    parsed = parse_query('saw "two weeks" -draft source:handbook')
    without = {one.kind: parsed.without(one) for one in parsed.operators}
    assert without == {
        OperatorKind.PHRASE: "saw -draft source:handbook",
        OperatorKind.EXCLUDED: 'saw "two weeks" source:handbook',
        OperatorKind.SOURCE: 'saw "two weeks" -draft',
    }
    assert parsed.without_quotes == "saw two weeks -draft source:handbook"


queries = st.lists(
    st.sampled_from(
        [
            '"',
            "“",
            "”",
            "-",
            "source:",
            "before:",
            "type:",
            "2026",
            "a",
            "word",
            " ",
            "「",
            "」",
            "\n",
        ]
    )
    | st.characters(),
    max_size=30,
).map("".join)


@given(queries)
def test_any_query_is_parsed_and_each_operator_can_be_removed(query: str) -> None:
    parsed = parse_query(query)
    ends = 0
    for one in parsed.operators:
        assert one.span.start >= ends
        ends = one.span.end
        assert one.value in one.span.of(parsed.query)
        assert len(parse_query(parsed.without(one)).operators) < max(1, len(parsed.operators)) + 1
    assert parsed.filters(frozenset()) is not None
    assert isinstance(parse_query(parsed.text), ParsedQuery)
