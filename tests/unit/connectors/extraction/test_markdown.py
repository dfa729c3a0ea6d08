from datetime import UTC, datetime

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from connectors.document import Person, Section
from connectors.extraction.encoding import decode
from connectors.extraction.markdown import read_markdown
from connectors.extraction.result import ExtractionError

PAGE = """\
Before any heading.

# Travel *policy*

Book early.

## Rates ##

| City | Night |
| --- | --- |
| Bonn | 90 |

After the table.

```python
# not a heading
```

Setext heading
--------------

- one
  # still in the list
- two

## Empty

# Last
"""


def outline(sections: tuple[Section, ...]) -> list[tuple[tuple[str, ...], str, str]]:
    return [(one.place.heading_path, one.kind, one.text) for one in sections]


def test_sections_follow_the_headings_and_tables_stand_alone() -> None:
    assert outline(read_markdown(PAGE.encode()).sections) == [
        ((), "text", "Before any heading."),
        (("Travel policy",), "text", "Book early."),
        (("Travel policy", "Rates"), "table", "| City | Night |\n| --- | --- |\n| Bonn | 90 |"),
        (
            ("Travel policy", "Rates"),
            "text",
            "After the table.\n\n```python\n# not a heading\n```",
        ),
        (("Travel policy", "Setext heading"), "text", "- one\n  # still in the list\n- two"),
        (("Travel policy", "Empty"), "text", "## Empty"),
        (("Last",), "text", "# Last"),
    ]


def test_the_title_is_the_first_heading() -> None:
    assert read_markdown(PAGE.encode()).title == "Travel policy"
    assert read_markdown(b"## [Linked](x) `code` &amp; <br>more\nx").title == "Linked code & more"
    assert read_markdown(b"no heading").title is None


FRONT = """\
---
title: "Leave: 2026"
author: Ann Lee <Ann@Example.com>
date: 2026-01-05
updated: 2026-02-03T10:00:00+02:00
tags: [hr, leave]
version: 1.10
nested: {a: 1}
---

Thirty days.
"""


def test_front_matter_becomes_title_dates_authors_and_metadata() -> None:
    read = read_markdown(FRONT.encode())
    assert read.title == "Leave: 2026"
    assert read.authors == (Person("Ann Lee", "ann@example.com"),)
    assert read.created_at == datetime(2026, 1, 5, tzinfo=UTC)
    assert read.updated_at == datetime(2026, 2, 3, 8, tzinfo=UTC)
    assert read.metadata == {"tags": ("hr", "leave"), "version": "1.10"}
    assert outline(read.sections) == [((), "text", "Thirty days.")]


@pytest.mark.parametrize(
    "text",
    [
        "---\nnot: [yaml\n---\nbody",
        "---\njust a rule\n---\nbody",
        "---\nno end\nbody",
        "---\na: " + "[" * 500 + "\n---\nbody",
        "text\n---\na: b\n---\nbody",
    ],
)
def test_what_only_looks_like_front_matter_stays_in_the_text(text: str) -> None:
    read = read_markdown(text.encode())
    assert not read.metadata
    assert "body" in read.sections[-1].text


@pytest.mark.parametrize("text", ["---\ntitle: only this\n---\n", "   \n\n", "\ufeff"])
def test_nothing_to_read_is_said(text: str) -> None:
    with pytest.raises(ExtractionError, match="no text"):
        read_markdown(text.encode())


def test_spans_stand_in_the_decoded_file() -> None:
    data = FRONT.replace("\n", "\r\n").encode("utf-16")
    (section,) = read_markdown(data).sections
    assert section.place.span is not None
    assert section.place.span.of(decode(data)) == section.text == "Thirty days."


BLOCKS = st.sampled_from(
    [
        "# A",
        "## B",
        "text",
        "| a |\n|---|\n| b |",
        "- item",
        "> # quoted",
        "```\n# code\n```",
        "",
        "---",
    ]
)


@given(st.lists(st.one_of(BLOCKS, st.text(max_size=30)), max_size=12))
def test_every_section_is_its_span_and_no_line_of_text_is_lost(blocks: list[str]) -> None:
    data = "\n\n".join(blocks).encode("utf-8", "replace")
    try:
        text = decode(data)
        read = read_markdown(data)
    except ExtractionError:
        # Only rules, front matter or control characters: nothing a section could hold.
        assume(False)  # noqa: FBT003
        raise
    end = 0
    for section in read.sections:
        span = section.place.span
        assert span is not None
        assert span.of(text) == section.text
        assert span.start >= end
        end = span.end


def test_a_huge_file_is_read_as_plain_text() -> None:
    text = "# heading\n" + "word " * 500_000
    (section,) = read_markdown(text.encode()).sections
    assert section.text == text.strip()
    assert section.place.heading_path == ()


def test_a_file_of_very_many_lines_is_read_as_plain_text() -> None:
    text = "# a\n" * 200_001
    (section,) = read_markdown(text.encode()).sections
    assert section.text == text.strip()


def test_an_endless_heading_is_text() -> None:
    heading = "word " * 100
    (section,) = read_markdown(f"# {heading}\n\nbelow".encode()).sections
    assert section.place.heading_path == ()
    assert section.text == f"# {heading}\n\nbelow"


def test_a_line_of_a_million_characters_is_one_section() -> None:
    (section,) = read_markdown(b"x" * 1_000_000).sections
    assert len(section.text) == 1_000_000
