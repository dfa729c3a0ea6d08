"""A report as a Word document: whatever its Markdown holds, the file opens, and no word is lost."""

import io
from collections.abc import Sequence

import docx
from docx.document import Document
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.research.record.final_report import FinalReport
from backend.research.runs.report_docx import write_docx
from tests.support.soak import scaled

EXAMPLES = scaled(12, 1_000, "engines")
_WORDS = st.text("abcdefgh", min_size=3, max_size=8)
_BLOCKS = st.sampled_from(
    (
        "# {}",
        "###### {}",
        "{} [1]",
        "**{0}** *{0}*",
        "- {}",
        "3. {}",
        "- x\n  - {}\n    1. {}",
        "> {}",
        "```\n{}\n```",
        "    {}",
        "`{}`",
        "[{}](https://example.com/{})",
        "![{}](picture.png)",
        "| a | b |\n|---|---|\n| {} | [x](https://example.com/{}) |",
        "| {} |\n|---|",
    )
)


def _open(markdown: str) -> Document:
    return docx.Document(io.BytesIO(write_docx(FinalReport(markdown=markdown, text=markdown))))


def _read(document: Document) -> str:
    cells = [cell.text for table in document.tables for row in table.rows for cell in row.cells]
    return "\n".join([*(one.text for one in document.paragraphs), *cells])


@given(st.text(max_size=400))
@settings(max_examples=EXAMPLES, deadline=None)
def test_any_text_makes_a_file_that_opens(markdown: str) -> None:
    _open(markdown)


@given(st.lists(st.tuples(_BLOCKS, _WORDS), min_size=1, max_size=8))
@settings(max_examples=EXAMPLES, deadline=None)
def test_no_word_is_lost(blocks: Sequence[tuple[str, str]]) -> None:
    markdown = "\n\n<!---->\n\n".join(block.format(word, word) for block, word in blocks)
    written = _read(_open(markdown))
    assert [word for _, word in blocks if word not in written] == []


def test_references_to_characters_that_xml_lacks_are_replaced() -> None:
    assert _read(_open("a&#12;b\ufffec `\uffff`")) == "a\ufffdb\ufffdc \ufffd"


def test_a_table_is_a_table_with_a_head() -> None:
    document = _open("before\n\n| Country | Weeks |\n|---|--:|\n| Norway | **49** [1] |\n\nafter")
    (table,) = document.tables
    rows = [[cell.text for cell in row.cells] for row in table.rows]
    assert rows == [["Country", "Weeks"], ["Norway", "49 [1]"]]
    assert document.element.xml.count("w:tblHeader") == 1
    assert [one.text for one in document.paragraphs] == ["before", "after"]


def test_only_addresses_of_the_web_are_links() -> None:
    document = _open("[a](https://example.com/x?y=1) [b](javascript:alert) [c](file:///etc/passwd)")
    (paragraph,) = document.paragraphs
    said = "a (https://example.com/x?y=1) b (javascript:alert) c (file:///etc/passwd)"
    assert paragraph.text == said
    assert [one.address for one in paragraph.hyperlinks] == ["https://example.com/x?y=1"]
