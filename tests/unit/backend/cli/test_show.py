import io

import pytest
from rich.console import Console

from backend.cli.show import print_document
from backend.schemas.document import DocumentContent, PlaceResponse, SectionResponse


@pytest.mark.parametrize(
    "hostile",
    [
        "\x1b[31mred\x1b[0m",  # colors, and worse: titles, clipboard, erased lines
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
        admitted=(),
        admitted_count=0,
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
    print_document(Console(file=shown, color_system=None), document, [f"member of {hostile}"])
    assert "before" in shown.getvalue()
    assert not set("\x1b\x9b\x07\u202e") & set(shown.getvalue())
