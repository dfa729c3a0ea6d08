"""`quarry search`: the passages that match best, for one asker."""

import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
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
    Spelling,
)
from backend.search.no_results import Suggestion, suggest_queries
from backend.search.person_lookup import resolve_people
from backend.search.query_syntax import ParsedQuery, parse_query
from backend.search.search_service import GroupedRanking, Grouping, find_grouped
from backend.web import highlighting
from indexing.index.protocols import DateRange, Filters
from indexing.text.normalization import pluralize

if TYPE_CHECKING:
    from backend.container import Container
    from connectors.access import Readers


Query = Annotated[
    str,
    typer.Argument(
        help='What to look for. "A phrase" must be held by every result, -word by none;'
        " source:, set:, type:, person:, after: and before: filter. Write -- before a query that"
        " begins with -: quarry search -- '-draft plan'."
    ),
]
Sources = Annotated[list[str] | None, typer.Option(help="Only this source. May be repeated.")]
DocumentSets = Annotated[
    list[str] | None, typer.Option("--set", help="Only this document set. May be repeated.")
]
Tags = Annotated[
    list[str] | None, typer.Option(help="Only documents with this key=value. May be repeated.")
]
MediaTypes = Annotated[
    list[str] | None, typer.Option("--type", help="Only this media type. May be repeated.")
]
People = Annotated[
    list[str] | None,
    typer.Option(
        help="Only what is by this person, named by e-mail address or name. May be repeated."
    ),
]
Verbatim = Annotated[
    bool,
    typer.Option(
        "--verbatim",
        help="Search the words as they are: misspelled words are not corrected, and words such as “in January"
        " 2026” put nothing first.",
    ),
]
Group = Annotated[
    Grouping | None,
    typer.Option(
        help="Whether one result is a document with its passages, or a passage.",
        show_default="document; passage with --json",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """What is searched for, and how: the options of a command, read and checked."""

    query: ParsedQuery
    readers: "Readers"
    """Those that `tokens` name, before groups are added."""
    tokens: list[str] | None
    filters: Filters
    people: Sequence[str]
    """Addresses and names, which are looked up in the index."""
    spelling: Spelling
    infer: frozenset[FilterKind]
    limit: int
    grouping: Grouping


@dataclass(frozen=True, slots=True)
class _Found:
    corrected: str | None
    message: str
    ranking: GroupedRanking
    seconds: float


def search(
    query: Query,
    readers: As = None,
    source: Sources = None,
    document_set: DocumentSets = None,
    tag: Tags = None,
    media_type: MediaTypes = None,
    person: People = None,
    since: Annotated[str | None, typer.Option(help="Updated on this day or later.")] = None,
    until: Annotated[str | None, typer.Option(help="Updated on this day or before.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="Number of results to show.")] = 10,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what put each result where it is.")
    ] = False,
    verbatim: Verbatim = False,
    group: Group = None,
    as_json: Json = False,
) -> None:
    """Find the documents that match best, each by its best passage."""
    own = command_line.readers(readers)
    filters = Filters(
        sources=_choose(source),
        sets=_choose(document_set),
        tags=_choose(tag),
        media_types=_choose(media_type),
        updated=DateRange(
            command_line.parse_moment(since, "--since"), command_line.parse_end(until, "--until")
        ),
    )
    if not query.strip():
        raise typer.BadParameter("write what to look for", param_hint="QUERY")
    wanted = _Wanted(
        query=parse_query(query),
        readers=own,
        tokens=readers,
        filters=filters,
        people=person or (),
        spelling=Spelling.AS_WRITTEN if verbatim else Spelling.CORRECT_UNKNOWN,
        infer=frozenset[FilterKind]() if verbatim else EVERY_KIND,
        limit=limit,
        grouping=group or (Grouping.PASSAGE if as_json else Grouping.DOCUMENT),
    )
    with command_line.cli_errors(as_json):
        found = command_line.retry_on_index_switch(
            command_line.open_home(), partial(_find, wanted=wanted)
        )
    if as_json:
        _print_json(wanted, found)
    else:
        _print_found(query, wanted, found)
        if explain and found.ranking.docs:
            print_explanation(command_line.console(), found.ranking.docs)
    if not found.ranking.docs:
        raise typer.Exit(command_line.FAILED)


def _choose(values: list[str] | None) -> frozenset[str] | None:
    return frozenset(values) if values else None


def _find(container: "Container", wanted: _Wanted) -> _Found:
    service, filters = container.chat.search, wanted.filters
    began, deadline = time.perf_counter(), service.deadline()
    asker = command_line.resolve_asker(container.home_database, wanted.readers, wanted.tokens)
    if wanted.people:
        filters = replace(
            filters, people=resolve_people(service.index, wanted.people, asker, deadline)
        )
    request = service.request(wanted.query, asker, filters, deadline, wanted.spelling, wanted.infer)
    tool = service.tool(None, DocumentNumbers())
    ranking = find_grouped(tool, request, wanted.limit, wanted.grouping)
    return _Found(request.corrected, request.message, ranking, time.perf_counter() - began)


def _print_json(wanted: _Wanted, found: _Found) -> None:
    from backend.schemas.search import SearchResponse

    docs, inferred = found.ranking.docs, found.ranking.ranking.inferred
    command_line.print_model(
        SearchResponse.from_docs(wanted.query, docs, found.seconds, found.corrected, inferred)
    )


def _print_found(query: str, wanted: _Wanted, found: _Found) -> None:
    console, ranking = command_line.console(), found.ranking.ranking
    for note in wanted.query.notes:
        console.print(to_safe_text(note))
    if found.corrected:
        print_correction(console, found.corrected)
    for one in ranking.inferred:
        print_inferred(console, one)
    for one in ranking.unmatched:
        print_unmatched(console, one)
    if found.corrected or ranking.inferred:
        print_verbatim_command(console, query)
    if docs := found.ranking.docs:
        print_results(console, found.message, docs, found.seconds)
    else:
        print_no_results(console, query, suggest_queries(wanted.query))


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
