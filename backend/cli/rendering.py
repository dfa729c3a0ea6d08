"""What a person sees in a terminal."""

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


def harmless(text: str, style: str = "") -> Text:
    """Text of a document for a terminal: no control sequence and no reversed order takes effect."""
    return Text(_CONTROLS.sub("\ufffd", text), style)


def results(console: Console, answer: SearchResponse) -> None:
    for result in answer.results:
        head = Text.assemble(
            (f"{result.number:>2}  ", "bold cyan"),
            harmless(result.title, "bold"),
            (f"  {result.source}{_dated(result.updated_at)}", "dim"),
        )
        console.print(head)
        console.print(harmless(f"    {_excerpt(result.content)}"))
        console.print(harmless(f"    {result.link}", "blue"), soft_wrap=True)
    told = pluralize(len(answer.results), "result")
    console.print(f"[dim]{told} in {answer.seconds:.2f} s[/dim]")


def explanation(console: Console, answer: SearchResponse) -> None:
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


def _dated(moment: datetime | None) -> str:
    return f", {moment:%Y-%m-%d}" if moment else ""


def references(console: Console, citations: Sequence[CitationResponse]) -> None:
    """Each cited document once, with all that is quoted from it."""
    by_document: dict[int, list[CitationResponse]] = {}
    for citation in citations:
        by_document.setdefault(citation.number, []).append(citation)
    for number, cited in by_document.items():
        console.print()
        console.print(
            Text.assemble((f"[{number}] ", "bold cyan"), harmless(cited[0].title, "bold"))
        )
        for line in dict.fromkeys(map(_quoted, cited)):
            console.print(harmless(line))
        console.print(harmless(f"    {cited[0].link}", "blue"), soft_wrap=True)


def _quoted(citation: CitationResponse) -> str:
    quote = f"“{' '.join(citation.quote.split())}”" if citation.quote else "no supporting passage"
    return f"    {quote}" + ("" if citation.verdict == "supported" else f" ({citation.verdict})")


def documents(console: Console, held: Sequence[DocumentSummary]) -> None:
    table = Table(box=None, header_style="dim")
    table.add_column("id", overflow="fold", ratio=3)
    table.add_column("title", overflow="fold", ratio=2)
    table.add_column("readers", overflow="fold", ratio=2)
    table.add_column("chunks", justify="right")
    table.add_column("updated", no_wrap=True)
    for one in held:
        readers = ", ".join(one.readers) or "nobody"
        table.add_row(
            harmless(one.id),
            harmless(one.title),
            harmless(readers),
            str(one.chunks),
            _day(one.updated_at),
        )
    console.print(table)
    console.print(f"[dim]{len(held)} documents[/dim]")


def failures(console: Console, listed: Sequence[FailureResponse]) -> None:
    table = Table(box=None, header_style="dim")
    table.add_column("source")
    table.add_column("item", overflow="fold")
    table.add_column("reason", overflow="fold")
    table.add_column("tries", justify="right")
    for one in listed:
        table.add_row(
            harmless(one.source), harmless(one.item), harmless(one.reason), str(one.tries)
        )
    console.print(table)


def shown(console: Console, one: DocumentContent) -> None:
    console.print(harmless(one.title, "bold"))
    console.print(harmless(one.link, "blue"), soft_wrap=True)
    readers = ", ".join(one.readers) or "nobody"
    console.print(Text(f"{one.source}{_dated(one.updated_at)}, readable by {readers}", "dim"))
    for section in one.sections:
        console.print()
        console.print(harmless(_where(section.place), "cyan"))
        console.print(harmless(section.text))


def _where(place: PlaceResponse) -> str:
    parts = [
        f"page {place.page}" if place.page else "",
        " › ".join(place.heading_path),
        f"sheet {place.sheet}" if place.sheet else "",
        f"rows {place.rows[0]} to {place.rows[1]}" if place.rows else "",
    ]
    return ", ".join(part for part in parts if part) or "text"


def checks(console: Console, found: Sequence[DoctorCheck]) -> None:
    for check in found:
        console.print(
            Text.assemble((f"{check.state:>8}  ", _STATES[check.state]), (check.name, "bold")),
            Text(check.detail),
        )
        if check.advice:
            console.print(Text(f"          → {check.advice}"))


def synced(console: Console, one: SyncReport) -> None:
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
    told = f" ({one.chunks} chunks; {spent})" if one.chunks else ""
    console.print(Text(f"{one.source}: {summary}{told}"))
    for item in one.unreadable:
        console.print(
            Text.assemble(("  unreadable  ", "yellow"), harmless(f"{item.item}: {item.reason}"))
        )
    if one.unreadable_count > len(one.unreadable):
        console.print(f"  and {one.unreadable_count - len(one.unreadable)} more: quarry failures")
    if one.error:
        console.print(Text.assemble(("  failed  ", "red"), harmless(one.error)))


@contextmanager
def progress(console: Console) -> Iterator["Bars"]:
    """Bars that come and go with the stages; nothing where nobody looks."""
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
        yield Bars(bars)


class Bars:
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
            item=escape(harmless((step.item or "")[-40:]).plain),
        )


def _day(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d}" if moment else ""
