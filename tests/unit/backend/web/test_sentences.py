"""Sentences of lower layers in the language of a page."""

import pytest

from backend.web.catalogs import load_messages
from backend.web.sentences import SentenceTranslator

TRANSLATOR = SentenceTranslator(
    {
        "Saved.": "已保存。",
        "today": "今天",
        "There is an account of %(email)s already.": "%(email)s 已有账户。",
        "%(date_since)s to %(said)s": "%(date_since)s 至%(said)s",
        "%(number)s document": "%(number)s 个文档",
        "%(number)s documents": "%(number)s 个文档",
    }
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Saved.", "已保存。"),
        ("There is an account of a.b@c.d already.", "a.b@c.d 已有账户。"),
        ("There is an account of %(email)s already.", "%(email)s 已有账户。"),
        ("2026-01-02 to today", "2026-01-02 至今天"),
        ("From here to today", "From here to today"),
        ("1,200 documents", "1,200 个文档"),
        ("Many documents", "Many documents"),
        ("1 document, 2 documents", "1 个文档，2 个文档"),
        ("1 document · today", "1 个文档 · 今天"),
        ("Saved. Saved.", "已保存。已保存。"),
        ("Saved. Nobody knows this.", "Saved. Nobody knows this."),
        ("", ""),
    ],
)
def test_a_sentence_is_recognized_by_its_form(text: str, said: str) -> None:
    assert TRANSLATOR.translate(text) == said


def test_a_long_text_is_no_sentence() -> None:
    text = "There is an account of " + "x" * 5_000 + " already."
    assert TRANSLATOR.translate(text) == text


def test_in_english_every_text_stays_as_it_is() -> None:
    english = load_messages("en")
    assert english.translate("Not Found") == "Not Found"
    assert english.count(1, "document") == "1 document"
    assert english.count(1_200, "batch", "batches") == "1,200 batches"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("March 2026", "2026年3月"),
        ("Indexing 120 of 3,400 documents · 8.2 a second", "正在索引 120/3,400 个文档 · 每秒 8.2 个"),
        ("“wifi” (your words, rephrased): 1st by meaning, 12th by words", "“wifi”（原文、改写）：语义第 1、关键词第 12"),
        ("Contains 67% of the query's words", "包含查询词的 67%"),
        ("3 documents, 2 unchanged", "3 个文档，2 个未更改"),
        ("A password has 12 to 256 characters.", "密码长度为 12 到 256 个字符。"),
    ],
)  # fmt: skip
def test_chinese(text: str, said: str) -> None:
    assert load_messages("zh").translate(text) == said
