"""The outline of a report leads to its headings: each line to one place, whatever the headings say, and however often."""

from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lxml.html import HtmlElement, fragment_fromstring

from backend.schemas.answer import CitationResponse
from backend.web.report_html import Heading, report_html

CITED = [
    CitationResponse(
        number=1,
        document_id="kb:price",
        title="Prices",
        link="",
        kind="document",
        quote="",
        section=0,
        span=(0, 0),
        score=0.0,
        verdict="unchecked",
    )
]
LEVELS = ["h3", "h4", "h5", "h6"]


def read_report(markdown: str) -> tuple[list[Heading], list[HtmlElement]]:
    """Return the outline of a report, and its headings in the page."""
    written = report_html(markdown, CITED, "part")
    page = fragment_fromstring(str(written.html), create_parent="div")
    return [*written.headings], page.xpath(".//*[self::h1 or self::h2 or self::h3 or self::h4 or self::h5 or self::h6]")  # fmt: skip


def read_words(heading: HtmlElement) -> str:
    """The words of a heading without its citations."""
    cited = "".join(one.text_content() for one in heading.xpath(".//a[@class='cite']"))
    text = heading.text_content()
    return " ".join(text.replace(cited, "").split() if cited else text.split())


@pytest.mark.parametrize(
    ("markdown", "outline"),
    [
        ("## 价格\n\n价格是 40 欧元 [1]。\n\n## 制造商\n\n### 总部", [(0, "价格"), (0, "制造商"), (1, "总部")]),
        ("## 摘要\n\n一。\n\n## 摘要\n\n二。\n\n### 摘要\n\n三。", [(0, "摘要"), (0, "摘要"), (1, "摘要")]),
        ("# Price\n\n#### Price\n\n## Price", [(0, "Price"), (1, "Price"), (1, "Price")]),
        ("## 价格 [1]\n\n40 [1].", [(0, "价格")]),
        ("价格\n===\n\n制造商\n---", [(0, "价格"), (1, "制造商")]),
        ("## **价格** 与 `EUR`", [(0, "价格 与 EUR")]),
        ("## <b>价格</b>", [(0, "<b>价格</b>")]),
        ("- ## 价格\n\n> ## 制造商", [(0, "价格"), (0, "制造商")]),
        ("## C\\# &amp; *Go*", [(0, "C# & Go")]),
        ("The price\nof the pump\n---", [(0, "The price of the pump")]),
        ("# [1]\n\n##\n\n### 价格", [(0, "价格")]),
        ("没有标题。", []),
    ],
)  # fmt: skip
def test_each_line_leads_to_its_heading(markdown: str, outline: list[tuple[int, str]]) -> None:
    lines, headings = read_report(markdown)
    assert [(one.depth, one.text) for one in lines] == outline
    assert [one.get("id") for one in headings] == [one.place for one in lines]
    assert [read_words(one) for one in headings] == [one.text for one in lines]
    assert [one.tag for one in headings] == [LEVELS[depth] for depth, _ in outline]


_WORDS = st.text("价格摘要 ab[1]#*`<&\"'>_", min_size=0, max_size=8)
_REPORTS = st.lists(
    st.tuples(st.sampled_from(["", "", "> ", "- ", "1. "]), st.integers(0, 6), _WORDS), max_size=8
)


@given(_REPORTS)
@example([("", 2, "[1]"), ("", 2, ""), ("", 6, "价格"), ("", 2, "价格"), ("", 2, "价格")])
def test_whatever_headings_there_are_each_has_one_place_and_none_is_skipped(
    blocks: list[tuple[str, int, str]],
) -> None:
    markdown = "\n\n".join(f"{mark}{'#' * level} {text}" for mark, level, text in blocks)
    lines, headings = read_report(markdown)
    places = Counter(one.get("id") for one in headings)
    assert [*places] == [one.place for one in lines]
    assert {*places.values()} <= {1}
    before = -1
    for line, heading in zip(lines, headings, strict=True):
        assert 0 <= line.depth <= before + 1
        assert heading.tag == LEVELS[min(line.depth, 3)]
        assert line.text.strip()
        before = line.depth
