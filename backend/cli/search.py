"""`quarry search`: the passages that match best, for one asker."""

import shlex
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from backend.cli import command_line
from backend.cli.command_line import As, Json, to_safe_text
from backend.search.models import (
    EVERY_KIND,
    DocumentNumbers,
    FilterKind,
    InferredFilter,
    SearchDoc,
    SearchRequest,
    Spelling,
)
from backend.search.no_results import Suggestion, suggest_queries
from backend.search.person_lookup import resolve_people
from backend.search.query_syntax import parse_query
from backend.search.search_service import GroupedRanking, Grouping, find_grouped
from backend.web import highlighting
from indexing.index.protocols import DateRange, Filters
from indexing.text.normalization import pluralize

if TYPE_CHECKING:
    from backend.container import Container


def search(
    query: Annotated[
        str,
        typer.Argument(
            help='What to look for. "A phrase" must be held by every result, -word by none;'
            " source:, set:, type:, person:, after: and before: filter. Write -- before a query that"
            " begins with -: quarry search -- '-draft plan'."
        ),
    ],
    readers: As = None,
    source: Annotated[
        list[str] | None, typer.Option(help="Only this source. May be repeated.")
    ] = None,
    document_set: Annotated[
        list[str] | None,
        typer.Option("--set", help="Only this document set. May be repeated."),
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option(help="Only documents with this key=value. May be repeated.")
    ] = None,
    media_type: Annotated[
        list[str] | None, typer.Option("--type", help="Only this media type. May be repeated.")
    ] = None,
    person: Annotated[
        list[str] | None,
        typer.Option(
            help="Only what is by this person, named by e-mail address or name. May be repeated."
        ),
    ] = None,
    since: Annotated[str | None, typer.Option(help="Updated on this day or later.")] = None,
    until: Annotated[str | None, typer.Option(help="Updated on this day or before.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="Number of results to show.")] = 10,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what put each result where it is.")
    ] = False,
    verbatim: Annotated[
        bool,
        typer.Option(
            "--verbatim",
            help="Search the words as they are: misspelled words are not corrected, and words such as “in January"
            " 2026” put nothing first.",
        ),
    ] = False,
    group: Annotated[
        Grouping | None,
        typer.Option(
            help="Whether one result is a document with its passages, or a passage.",
            show_default="document; passage with --json",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Find the documents that match best, each by its best passage."""
    from backend.schemas.search import SearchResponse

    own = command_line.readers(readers)
    filters = _filters(source, tag, media_type, since, until)
    if document_set:
        filters = replace(filters, sets=frozenset(document_set))
    if not query.strip():
        raise typer.BadParameter("write what to look for", param_hint="QUERY")
    parsed = parse_query(query)
    with command_line.cli_errors(as_json):

        def search_in(
            container: "Container",
        ) -> tuple[SearchRequest, GroupedRanking, float]:
            service, narrowed = container.chat.search, filters
            began, deadline = time.perf_counter(), service.deadline()
            asker = command_line.resolve_asker(container.home_database, own, readers)
            if person:
                known = resolve_people(service.index, person, asker, deadline)
                narrowed = replace(filters, people=known)
            spelling = Spelling.AS_WRITTEN if verbatim else Spelling.CORRECT_UNKNOWN
            infer = frozenset[FilterKind]() if verbatim else EVERY_KIND
            request = service.request(parsed, asker, narrowed, deadline, spelling, infer)
            grouping = group or (Grouping.PASSAGE if as_json else Grouping.DOCUMENT)
            found = find_grouped(service.tool(None, DocumentNumbers()), request, limit, grouping)
            return request, found, time.perf_counter() - began

        request, found, seconds = command_line.retry_on_index_switch(
            command_line.open_home(), search_in
        )
    docs, inferred = found.docs, found.ranking.inferred
    if as_json:
        command_line.print_model(
            SearchResponse.from_docs(parsed, docs, seconds, request.corrected, inferred)
        )
        raise typer.Exit(0 if docs else command_line.FAILED)
    for note in parsed.notes:
        command_line.console().print(to_safe_text(note))
    if request.corrected:
        print_correction(command_line.console(), request.corrected)
    for one in inferred:
        print_inferred(command_line.console(), one)
    for one in found.ranking.unmatched:
        print_unmatched(command_line.console(), one)
    if request.corrected or inferred:
        print_verbatim_command(command_line.console(), query)
    if docs:
        print_results(command_line.console(), request.message, docs, seconds)
        if explain:
            print_explanation(command_line.console(), docs)
    else:
        print_no_results(command_line.console(), query, suggest_queries(parsed))
        raise typer.Exit(command_line.FAILED)


def _filters(
    sources: list[str] | None,
    tags: list[str] | None,
    media_types: list[str] | None,
    since: str | None,
    until: str | None,
) -> Filters:
    def chosen(values: list[str] | None) -> frozenset[str] | None:
        return frozenset(values) if values else None

    return Filters(
        sources=chosen(sources),
        tags=chosen(tags),
        media_types=chosen(media_types),
        updated=DateRange(
            command_line.parse_moment(since, "--since"), command_line.parse_end(until, "--until")
        ),
    )


def print_results(console: Console, query: str, docs: Sequence[SearchDoc], seconds: float) -> None:
    wanted = highlighting.QueryWords(query)
    for result in docs:
        head = Text.assemble(
            (f"{result.number:>2}  ", "bold cyan"),
            to_safe_text(result.title, "bold"),
            (f"  {result.source}{_format_date_suffix(result.updated_at)}", "dim"),
        )
        console.print(head)
        if result.superseded_by:
            line = f"    superseded by “{result.superseded_by.title}”"
            console.print(to_safe_text(line, "yellow"))
        console.print(_format_excerpt(result, wanted))
        if result.further:
            more = pluralize(len(result.further), "more passage")
            console.print(f"[dim]    {more} of this document[/dim]")
        console.print(
            to_safe_text(f"    quarry show {shlex.quote(result.document_id)}", "dim"),
            soft_wrap=True,
        )
        console.print(to_safe_text(f"    {result.link}", "blue"), soft_wrap=True)
    console.print(f"[dim]{pluralize(len(docs), 'result')} in {seconds:.2f} s[/dim]")
    if any(result.further for result in docs):
        console.print("[dim]To list every passage, add --group passage.[/dim]")


def print_correction(console: Console, corrected: str) -> None:
    console.print(to_safe_text(f"Showing results for: {corrected}", "bold"))


def print_inferred(console: Console, inferred: InferredFilter) -> None:
    line = f"First, for “{inferred.words}”: {inferred.kind}: {inferred.meaning}"
    console.print(to_safe_text(line, "bold"))


def print_unmatched(console: Console, inferred: InferredFilter) -> None:
    line = (
        f"Nothing close to the query matches {inferred.kind}: {inferred.meaning}."
        f" “{inferred.words}” was searched as text."
    )
    console.print(to_safe_text(line, "dim"))


def print_verbatim_command(console: Console, query: str) -> None:
    command = _format_command("--verbatim", query)
    console.print(
        to_safe_text(f"To search only for what you wrote: {command}", "dim"), soft_wrap=True
    )


def print_no_results(console: Console, query: str, suggestions: Sequence[Suggestion]) -> None:
    console.print(to_safe_text(f"Nothing that you may read was found for “{query}”."))
    for one in suggestions:
        line = f"{one.reason} {one.label}: {_format_command(one.query)}"
        console.print(to_safe_text(line), soft_wrap=True)
    if not suggestions:
        console.print("Check the spelling, or try other or fewer words.")
    console.print(
        "Documents that are not synced yet are not searched. Check progress: quarry sources"
    )


def _format_command(*arguments: str) -> str:
    """Return the command that searches so; a query that begins with an exclusion is no option."""
    *options, query = arguments
    end = ["--"] if query.startswith("-") else []
    return shlex.join(["quarry", "search", *options, *end, query])


def print_explanation(console: Console, docs: Sequence[SearchDoc]) -> None:
    table = Table("result", "variant", "leg", "rank", "score", box=None, header_style="dim")
    for result in docs:
        for why in result.why:
            table.add_row(
                str(result.number), why.variant, why.leg, str(why.rank), f"{result.score:.4f}"
            )
    console.print(table)


def _format_excerpt(result: SearchDoc, wanted: highlighting.QueryWords) -> Text:
    """Return the part with most of the wanted words, which are bold."""
    text = highlighting.readable_text(result.content, result.media_type)
    pieces = highlighting.excerpt(text, wanted)
    styled = (to_safe_text(piece.text, "bold" if piece.marked else "") for piece in pieces)
    return Text.assemble("    ", *styled)


def _format_date_suffix(moment: datetime | None) -> str:
    return f", {moment:%Y-%m-%d}" if moment else ""
