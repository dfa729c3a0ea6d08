"""Numerals and names of Chinese texts, and what the check of citations makes of one that was changed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.chat.citations.chinese_facts import (
    find_names,
    read_numeral,
    write_numerals_in_figures,
)
from backend.chat.citations.fact_conflicts import Sentence, check_facts
from backend.chat.citations.facts import read_text

DIGITS = "零一二三四五六七八九"


def write_numeral(number: int) -> str:
    """A number below 10,000 as it is written: with one zero for places that are empty between others."""
    written, is_gap = "", False
    for place, sign in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit = number // place % 10
        if digit:
            written += ("零" if is_gap and written else "") + DIGITS[digit] + sign
        is_gap = not digit
    return written


@given(st.integers(1, 9_999), st.integers(0, 9_999))
def test_a_numeral_is_read_as_it_is_written(thousands: int, rest: int) -> None:
    assert read_numeral(write_numeral(thousands)) == thousands
    assert read_numeral(f"{write_numeral(thousands)}万{write_numeral(rest)}") == thousands * 10_000 + rest  # fmt: skip


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("建兴八年逝世", "建兴8年逝世"),
        ("二〇一六年三月十二日", "2016年3月12日"),
        ("一月开放，有三百零五人", "1月开放，有305人"),
        ("十二个人和两次", "12个人和2次"),
        ("一个人十分重要，十几个，数百人，三四个", "一个人十分重要，十几个，数百人，三四个"),
        ("四川省的三明治", "四川省的三明治"),
    ],
)
def test_numerals_that_count_are_written_in_figures(text: str, written: str) -> None:
    assert write_numerals_in_figures(text) == written


def test_names_are_told_by_their_signs() -> None:
    text = "《捉兔记》的作者是艾萨克·阿西莫夫。"
    assert [span.of(text) for span in find_names(text)] == ["萨克", "阿西", "捉兔记"]


@pytest.mark.parametrize(
    ("claim", "evidence", "faults"),
    [
        ("他有三个孩子。", "他有3个孩子。", []),
        ("他有3个孩子。", "他有三个孩子。", []),
        ("他有四个孩子。", "他有三个孩子。", ["4"]),
        ("他于二〇一六年逝世。", "他于2016年逝世。", []),
        ("他于2016年5月8日逝世。", "他于2016年5月9日逝世。", ["8"]),
        ("马里奥·爱迪生领先。", "马里奥•爱迪生领先。", []),
        ("马里奥·爱迪生领先。", "贾里德·艾伦领先。", ["里奥", "爱迪"]),
        ("《工厂》是约瑟夫·李的作品。", "约瑟夫·李写过《工厂》。", []),
        ("约瑟夫·李参加过年会。", "约瑟夫·李写过《工厂》。", []),
        ("作者是约瑟夫·王。", "约瑟夫·李写过《工厂》。", ["王"]),
        ("他写了《捉兔记》。", "他写了捉兔记。", []),
        ("他写了《捉兔记》。", "他写了《庭院深深》。", ["捉兔记"]),
    ],
)
def test_a_changed_number_date_or_name_is_found(
    claim: str, evidence: str, faults: list[str]
) -> None:
    sentence = Sentence(read_text(evidence), read_text(""))
    assert [one.fact.value for one in check_facts(read_text(claim), [sentence])] == faults
