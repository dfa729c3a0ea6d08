"""A report as a Word document: whatever its Markdown holds, the file opens, and no word is lost."""

import io
from collections.abc import Sequence

import docx
from docx.document import Document
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.chat.citations.citation_processor import SourceKind
from backend.research.record.final_report import FinalReport
from backend.research.record.sources import NumberedSource
from backend.research.report.report_markdown import write_markdown
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


def _list_targets(document: Document) -> list[str]:
    return [one.target_ref for one in document.part.rels.values() if one.is_external]


def test_the_web_and_mail_are_linked_and_nothing_else() -> None:
    addresses = (
        "https://a.example/x",
        "mailto:ann@example.com",
        "file:///etc/passwd",
        "smb://host/x",
    )
    document = _open(" ".join(f"[it](<{one}>)" for one in addresses))
    assert _list_targets(document) == list(addresses[:2])
    assert all(f"({one})" in _read(document) for one in addresses)


_TITLES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)


@given(st.lists(st.tuples(_TITLES, _WORDS), min_size=1, max_size=8))
@settings(max_examples=EXAMPLES, deadline=None)
def test_each_source_stands_once_under_its_number_with_its_address(
    named: Sequence[tuple[str, str]],
) -> None:
    """Whatever their titles hold: markup, numbers in brackets, characters of control."""
    sources = tuple(
        NumberedSource(
            number=number,
            kind=SourceKind.WEB,
            document_id=f"https://{number}.example/{path}",
            title=title,
            url=f"https://{number}.example/{path}",
        )
        for number, (title, path) in enumerate(named, 1)
    )
    report = FinalReport(markdown="", text="It says so [1].", sources=sources)
    document = _open(write_markdown(report, "en"))
    lines = [one.text for one in document.paragraphs]
    listed = lines[lines.index("Sources") + 1 :]
    assert len(listed) == len(sources)
    for source, line in zip(sources, listed, strict=True):
        assert line.startswith(f"[{source.number}] ")
        assert line.endswith(f"({source.url}), no date")
    assert _list_targets(document) == [source.url for source in sources]
