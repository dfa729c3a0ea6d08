"""`quarry search`: the passages that match best, for one asker."""

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from backend.cli import command_context
from backend.cli.command_context import As, Json

if TYPE_CHECKING:
    from backend.container import Container
    from backend.search.models import SearchDoc
    from indexing.index.protocols import Filters


def search(
    query: Annotated[
        str, typer.Argument(help="What to look for. Quote a phrase to find it exactly.")
    ],
    readers: As = None,
    source: Annotated[
        list[str] | None, typer.Option(help="Only this source. May be repeated.")
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
    limit: Annotated[int, typer.Option(min=1, max=200)] = 10,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what put each result where it is.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Find the passages that match best."""
    from backend.cli import rendering
    from backend.schemas.search import SearchResponse
    from backend.search.person_lookup import resolve_people

    asker = command_context.readers(readers)
    filters = _filters(source, tag, media_type, since, until)
    if not query.strip():
        raise typer.BadParameter("write what to look for", param_hint="QUERY")
    with command_context.cli_errors(as_json):

        def search_in(container: "Container") -> tuple[Sequence["SearchDoc"], float]:
            service, narrowed = container.chat.search, filters
            began, deadline = time.perf_counter(), service.deadline()
            if person:
                known = resolve_people(service.index, person, asker, deadline)
                narrowed = replace(filters, people=known)
            docs = service.find_sections(service.request(query, asker, narrowed, deadline), limit)
            return docs, time.perf_counter() - began

        docs, seconds = command_context.retry_on_index_switch(
            command_context.open_home(), search_in
        )
        answer = SearchResponse.from_docs(query, docs, seconds)
    if as_json:
        command_context.print_model(answer)
    elif docs:
        rendering.print_results(command_context.console(), answer)
        if explain:
            rendering.print_explanation(command_context.console(), answer)
    else:
        command_context.console().print("No results that you may read.")
    if not docs:
        raise typer.Exit(command_context.FAILED)


def _filters(
    sources: list[str] | None,
    tags: list[str] | None,
    media_types: list[str] | None,
    since: str | None,
    until: str | None,
) -> "Filters":
    from indexing.index.protocols import DateRange, Filters

    def chosen(values: list[str] | None) -> frozenset[str] | None:
        return frozenset(values) if values else None

    return Filters(
        sources=chosen(sources),
        tags=chosen(tags),
        media_types=chosen(media_types),
        updated=DateRange(_moment(since, "--since"), _day_after(until)),
    )


def _moment(text: str | None, option: str) -> datetime | None:
    """The moment that an ISO date or time names; a day begins at midnight here."""
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text).astimezone()
    except ValueError as error:
        raise typer.BadParameter(
            f"{text!r} is not a day such as 2026-03-31", param_hint=option
        ) from error


def _day_after(text: str | None) -> datetime | None:
    """The end of the day that is named; a time of day is taken as it is."""
    from datetime import timedelta

    moment = _moment(text, "--until")
    if moment is None or text is None:
        return None
    return moment + timedelta(days=1) if len(text.strip()) <= len("2026-03-31") else moment
