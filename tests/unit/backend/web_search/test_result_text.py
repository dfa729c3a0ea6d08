"""Results as a model reads them: short, numbered, and unable to pass for anything else."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.web_search.result_text import (
    CITATION_RULES,
    MAX_SUMMARY_CHARACTERS,
    NO_SEARCH_NEEDED,
    NOTHING_FOUND,
    NumberedResult,
    announce_sources,
    format_results,
    shorten_summary,
)
from backend.web_search.results import WebResult
from backend.web_search.tool_texts import (
    USING_WEB_SEARCH,
    WEB_SEARCH,
    WEB_SEARCH_TEXTS,
    web_search_parameters,
)

RESULT = WebResult("Leave in Spain", "https://example.com/leave", "30 days.", None, "local")


def numbered(count: int) -> list[NumberedResult]:
    return [NumberedResult(n, RESULT) for n in range(1, count + 1)]


def test_results_are_numbered_between_how_to_cite_and_the_rules() -> None:
    dated = replace(RESULT, published=datetime(2026, 3, 2, tzinfo=UTC), summary="")
    text = format_results([NumberedResult(3, RESULT), NumberedResult(1, dated)])
    assert text == (
        "Each source has a number, by which the sentences that rest on it cite it.\n"
        "Found 2 relevant sources. Use [number] format to cite specific information.\n\n"
        "[3] Leave in Spain\nAddress: https://example.com/leave\nSummary: 30 days.\n\n"
        "[1] Leave in Spain\nAddress: https://example.com/leave\nPublished: 2026-03-02\n\n"
        + CITATION_RULES
    )


def test_there_are_five_results_at_most() -> None:
    text = format_results(numbered(9))
    assert text.startswith(announce_sources(5))
    assert "[5] " in text
    assert "[6] " not in text


def test_it_is_said_that_nothing_was_found_or_needed() -> None:
    assert format_results([]) == NOTHING_FOUND
    assert NO_SEARCH_NEEDED == "No search needed based on the query analysis."


hostile = st.text(st.one_of(st.characters(), st.sampled_from("\n\r\u2028\x0b\x85[]1 ")))


@given(hostile, hostile, hostile)
def test_no_text_of_a_result_begins_a_line(title: str, url: str, summary: str) -> None:
    text = format_results([NumberedResult(1, WebResult(title, url, summary, None, "local"))])
    body = text.removeprefix(announce_sources(1)).removesuffix(CITATION_RULES).strip("\n")
    lines = body.splitlines()
    assert lines[0].startswith("[1] ")
    assert [line.partition(": ")[0] for line in lines[1:]] in (["Address"], ["Address", "Summary"])
    text.encode()


@pytest.mark.parametrize(
    ("summary", "shortened"),
    [
        ("word " * 40 + "end", "word " * 39 + "word…"),
        ("word, " * 40, ("word, " * 33).rstrip(", ") + "…"),
        ("年" * 201, "年" * 199 + "…"),
        ("年" * 190 + "international organisation", "年" * 190 + "…"),
        ("x" * 300, "x" * 199 + "…"),
        ("a" * 198 + "e\u0301\u0301 end", "a" * 198 + "…"),
        ("か\u3099" * 120, "か\u3099" * 99 + "…"),
        ("🧑\u200d🚒" * 80, "🧑\u200d🚒" * 66 + "…"),
        ("x" * 200, "x" * 200),
        (" two\n lines ", "two lines"),
        ("", ""),
    ],
)
def test_a_summary_is_cut_behind_a_word_or_a_character(summary: str, shortened: str) -> None:
    assert shorten_summary(summary) == shortened
    assert len(shortened) <= 200


@given(st.text(st.sampled_from("ab 年、,é\n"), max_size=500) | st.text(min_size=150, max_size=450))
def test_a_shortened_summary_begins_as_the_whole_one_and_has_no_half_word(summary: str) -> None:
    line = shorten_summary(summary, len(summary) + 1)
    short = shorten_summary(summary)
    assert len(short) <= MAX_SUMMARY_CHARACTERS
    assert shorten_summary(short) == short
    if len(line) <= MAX_SUMMARY_CHARACTERS:
        assert short == line
        return
    kept = short.removesuffix("…")
    assert line.startswith(kept)
    assert short.endswith("…")
    if set(line) <= set("ab ") and " " in line[:150]:
        assert line[len(kept)] == " "


def test_the_tool_says_when_to_use_it_in_the_language_of_the_page() -> None:
    assert WEB_SEARCH == "web_search"
    assert (
        WEB_SEARCH_TEXTS["zh"].description
        == "搜索互联网获取实时信息。当需要了解最新事件、实时数据、当前新闻或验证信息时使用此工具。"
    )
    chinese = web_search_parameters("zh")
    assert chinese["properties"] == {
        "query": {
            "type": "string",
            "description": "搜索查询关键词,应该具体、清晰、针对性强",
            "examples": ["2026年 上海 最低工资标准", "人民币 美元 汇率 今日"],
        }
    }
    assert chinese["required"] == ["query"]
    english = web_search_parameters("en")
    assert english["examples"] == [{"query": one} for one in WEB_SEARCH_TEXTS["en"].examples]


def test_the_prompt_has_two_queries_and_one_result_that_is_read() -> None:
    for example in WEB_SEARCH_TEXTS["en"].examples:
        assert f'{{"query": "{example}"}}' in USING_WEB_SEARCH
    assert USING_WEB_SEARCH.count("Example. ") == 2
    assert USING_WEB_SEARCH.count("Example of reading results") == 1
