"""Print results, documents and reports in a terminal."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text

from backend.schemas.answer import CitationResponse
from backend.schemas.document import DocumentContent, DocumentSummary, PlaceResponse
from backend.schemas.plurals import pluralize
from backend.schemas.run import SyncReport
from backend.schemas.search import SearchResponse
from backend.schemas.source import FailureResponse
from backend.schemas.system import DoctorCheck
from indexing.ingestion.progress import Progress as Step

CONTENT_CHARACTERS = 300
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_STATES = {"ok": "green", "warning": "yellow", "failed": "red", "off": "dim"}


def to_safe_text(text: str, style: str = "") -> Text:
    """Return text with its control characters replaced, so that a terminal does not interpret them."""
    return Text(_CONTROLS.sub("\ufffd", text), style)


def print_results(console: Console, answer: SearchResponse) -> None:
    for result in answer.results:
        head = Text.assemble(
            (f"{result.number:>2}  ", "bold cyan"),
            to_safe_text(result.title, "bold"),
            (f"  {result.source}{_format_date_suffix(result.updated_at)}", "dim"),
        )
        console.print(head)
        console.print(to_safe_text(f"    {_excerpt(result.content)}"))
        console.print(to_safe_text(f"    {result.link}", "blue"), soft_wrap=True)
    count = pluralize(len(answer.results), "result")
    console.print(f"[dim]{count} in {answer.seconds:.2f} s[/dim]")


def print_explanation(console: Console, answer: SearchResponse) -> None:
    table = Table("result", "variant", "leg", "rank", "score", box=None, header_style="dim")
    for result in answer.results:
        for why in result.why:
            table.add_row(
                str(result.number), why.variant, why.leg, str(why.rank), f"{result.score:.4f}"
            )
    console.print(table)


def _excerpt(content: str) -> str:
    text = " ".join(content.split())
    return text if len(text) <= CONTENT_CHARACTERS else text[:CONTENT_CHARACTERS].rstrip() + "…"


def _format_date_suffix(moment: datetime | None) -> str:
    return f", {moment:%Y-%m-%d}" if moment else ""


def print_citations(console: Console, citations: Sequence[CitationResponse]) -> None:
    """Print each cited document once, with all its quotes."""
    by_document: dict[int, list[CitationResponse]] = {}
    for citation in citations:
        by_document.setdefault(citation.number, []).append(citation)
    for number, cited in by_document.items():
        console.print()
        console.print(
            Text.assemble((f"[{number}] ", "bold cyan"), to_safe_text(cited[0].title, "bold"))
        )
        for line in dict.fromkeys(map(_format_citation, cited)):
            console.print(to_safe_text(line))
        console.print(to_safe_text(f"    {cited[0].link}", "blue"), soft_wrap=True)


def _format_citation(citation: CitationResponse) -> str:
    quote = f"“{' '.join(citation.quote.split())}”" if citation.quote else "no supporting passage"
    return f"    {quote}" + ("" if citation.verdict == "supported" else f" ({citation.verdict})")


def print_documents(console: Console, held: Sequence[DocumentSummary]) -> None:
    table = Table(box=None, header_style="dim")
    table.add_column("id", overflow="fold", ratio=3)
    table.add_column("title", overflow="fold", ratio=2)
    table.add_column("readers", overflow="fold", ratio=2)
    table.add_column("chunks", justify="right")
    table.add_column("updated", no_wrap=True)
    for one in held:
        readers = ", ".join(one.readers) or "nobody"
        table.add_row(
            to_safe_text(one.id),
            to_safe_text(one.title),
            to_safe_text(readers),
            str(one.chunks),
            _format_day(one.updated_at),
        )
    console.print(table)
    console.print(f"[dim]{len(held)} documents[/dim]")


def print_failures(console: Console, listed: Sequence[FailureResponse]) -> None:
    table = Table(box=None, header_style="dim")
    table.add_column("source")
    table.add_column("item", overflow="fold")
    table.add_column("reason", overflow="fold")
    table.add_column("tries", justify="right")
    for one in listed:
        table.add_row(
            to_safe_text(one.source),
            to_safe_text(one.item),
            to_safe_text(one.reason),
            str(one.tries),
        )
    console.print(table)


def print_document(console: Console, one: DocumentContent) -> None:
    console.print(to_safe_text(one.title, "bold"))
    console.print(to_safe_text(one.link, "blue"), soft_wrap=True)
    readers = ", ".join(one.readers) or "nobody"
    console.print(
        Text(f"{one.source}{_format_date_suffix(one.updated_at)}, readable by {readers}", "dim")
    )
    for section in one.sections:
        console.print()
        console.print(to_safe_text(_format_place(section.place), "cyan"))
        console.print(to_safe_text(section.text))


def _format_place(place: PlaceResponse) -> str:
    parts = [
        f"page {place.page}" if place.page else "",
        " › ".join(place.heading_path),
        f"sheet {place.sheet}" if place.sheet else "",
        f"rows {place.rows[0]} to {place.rows[1]}" if place.rows else "",
    ]
    return ", ".join(part for part in parts if part) or "text"


def print_checks(console: Console, found: Sequence[DoctorCheck]) -> None:
    for check in found:
        console.print(
            Text.assemble((f"{check.state:>8}  ", _STATES[check.state]), (check.name, "bold")),
            Text(check.detail),
        )
        if check.advice:
            console.print(Text(f"          → {check.advice}"))


def print_sync_report(console: Console, one: SyncReport) -> None:
    counts = [
        f"{value} {name}"
        for name, value in (
            ("indexed", one.documents),
            ("unchanged", one.unchanged),
            ("deleted", one.deleted),
            ("with new readers", one.amended),
            ("restored", one.restored),
            ("unreadable", one.unreadable_count),
        )
        if value
    ]
    spent = ", ".join(f"{stage} {value:.1f} s" for stage, value in one.seconds.items())
    summary = ", ".join(counts) or ("not synced" if one.error else "nothing had changed")
    details = f" ({one.chunks} chunks; {spent})" if one.chunks else ""
    console.print(Text(f"{one.source}: {summary}{details}"))
    for item in one.unreadable:
        console.print(
            Text.assemble(("  unreadable  ", "yellow"), to_safe_text(f"{item.item}: {item.reason}"))
        )
    if one.unreadable_count > len(one.unreadable):
        console.print(f"  and {one.unreadable_count - len(one.unreadable)} more: quarry failures")
    if one.error:
        console.print(Text.assemble(("  failed  ", "red"), to_safe_text(one.error)))


@contextmanager
def show_progress(console: Console) -> Iterator["ProgressBars"]:
    """Show a progress bar for each stage; nothing where the console is no terminal."""
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.fields[source]} {task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("[dim]{task.fields[item]}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bars:
        yield ProgressBars(bars)


class ProgressBars:
    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._tasks: dict[tuple[str, str], TaskID] = {}

    def show(self, step: Step) -> None:
        key = (step.source, step.stage)
        if key not in self._tasks:
            self._tasks[key] = self._bars.add_task(
                step.stage, total=step.total, source=escape(step.source), item=""
            )
        self._bars.update(
            self._tasks[key],
            completed=step.done,
            total=step.total,
            item=escape(to_safe_text((step.item or "")[-40:]).plain),
        )


def _format_day(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d}" if moment else ""
