import io

import pytest
from rich.console import Console

from backend.cli import rendering
from backend.schemas.answer import CitationResponse
from backend.schemas.document import DocumentContent, PlaceResponse, SectionResponse


@pytest.mark.parametrize(
    "hostile",
    [
        "\x1b[31mred\x1b[0m",  # colours, and worse: titles, clipboard, erased lines
        "\x9b2J",  # the same as one character
        "bell\x07",
        "\u202egnirts",  # turns the reading order round
    ],
)
def test_a_document_cannot_command_the_terminal(hostile: str) -> None:
    shown = io.StringIO()
    document = DocumentContent(
        id="s:1",
        title=hostile,
        source="s",
        link=f"file:///{hostile}",
        readers=("public",),
        updated_at=None,
        sections=(
            SectionResponse(
                kind="text",
                text=f"before {hostile} after",
                link=None,
                place=PlaceResponse(
                    page=None, heading_path=(hostile,), sheet=None, rows=None, span=None
                ),
            ),
        ),
    )
    rendering.print_document(Console(file=shown, color_system=None), document)
    assert "before" in shown.getvalue()
    assert not set("\x1b\x9b\x07\u202e") & set(shown.getvalue())


def test_a_cited_document_is_named_once_with_all_its_quotes() -> None:
    def citation(number: int, quote: str, verdict: str = "supported") -> CitationResponse:
        return CitationResponse(
            number=number,
            document_id=f"s:{number}",
            title=f"Title {number}",
            link=f"file:///{number}",
            quote=quote,
            section=0,
            span=(0, 1),
            score=1.0,
            verdict=verdict,
        )

    shown = io.StringIO()
    cited = [
        citation(1, "one"),
        citation(2, "two", "weak"),
        citation(1, "three"),
        citation(1, "one"),
    ]
    rendering.print_citations(Console(file=shown, color_system=None), cited)
    assert shown.getvalue().split() == (
        [
            "[1]",
            "Title",
            "1",
            "“one”",
            "“three”",
            "file:///1",
            "[2]",
            "Title",
            "2",
            "“two”",
            "(weak)",
            "file:///2",
        ]
    )
