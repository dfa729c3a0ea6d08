"""`quarry ask`: what is printed of an answer."""

import io

from rich.console import Console

from backend.cli.ask import print_citations
from backend.schemas.answer import CitationResponse, Verdict


def test_a_cited_document_is_named_once_with_all_its_quotes() -> None:
    def citation(number: int, quote: str, verdict: Verdict = "supported") -> CitationResponse:
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
        citation(3, "", "unchecked"),
        citation(4, "four", "contradicted"),
    ]
    print_citations(Console(file=shown, color_system=None), cited)
    assert [line.strip() for line in shown.getvalue().splitlines()] == [
        "",
        "[1] Title 1",
        "“one”",
        "“three”",
        "file:///1",
        "",
        "[2] Title 2",
        "“two” (supports this only in part)",
        "file:///2",
        "",
        "[3] Title 3",
        "not checked",
        "file:///3",
        "",
        "[4] Title 4",
        "“four” (says otherwise)",
        "file:///4",
    ]
