from backend.search.no_results import Suggestion, suggest_queries
from backend.search.query_syntax import parse_query


def test_each_operator_is_named_with_a_query_that_does_without_it() -> None:
    parsed = parse_query('saw "two weeks" -draft type:pdf after:2026-03 person:"Ines Almqvist"')
    assert suggest_queries(parsed) == (
        Suggestion(
            "Every result must contain “two weeks”.",
            "Search without quotes",
            'saw two weeks -draft type:pdf after:2026-03 person:"Ines Almqvist"',
        ),
        Suggestion(
            "Passages with “draft” are left out.",
            "Search with them",
            'saw "two weeks" type:pdf after:2026-03 person:"Ines Almqvist"',
        ),
        Suggestion(
            "Only the type pdf is searched.",
            "Search without this filter",
            'saw "two weeks" -draft after:2026-03 person:"Ines Almqvist"',
        ),
        Suggestion(
            "Only what was updated in or after 2026-03 is searched.",
            "Search without this filter",
            'saw "two weeks" -draft type:pdf person:"Ines Almqvist"',
        ),
        Suggestion(
            "Only what is by Ines Almqvist is searched.",
            "Search without this filter",
            'saw "two weeks" -draft type:pdf after:2026-03',
        ),
    )


def test_plain_words_suggest_nothing() -> None:
    assert suggest_queries(parse_query("zzzqqq xyzzy")) == ()
