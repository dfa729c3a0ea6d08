"""The `quarry` command. Each command parses, calls one function, and prints.

Exit codes: 0 done; 1 failed, or nothing there that this asker may see; 2 wrong use; 3 done, with
failures named. Imports stand inside the commands, so that `--help` answers at once.
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.console import Console

    from backend import wire
    from backend.assembly import Engine, Quarry
    from backend.commands.given import Given
    from backend.commands.options import KindOptions
    from backend.commands.reindexing import RebuiltWire
    from backend.commands.rendering import Bars
    from backend.search.sections import SearchDoc
    from backend.store.sources import Source
    from connectors.document import Readers
    from indexing.index import Filters
    from indexing.pipeline import EmptyListing

Done = TypeVar("Done")

DONE, FAILED, WRONG_USE, DONE_WITH_FAILURES = 0, 1, 2, 3

app = typer.Typer(
    name="quarry",
    help="Find what a company knows, and answer with citations that can be checked.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


class _Kinds(TyperGroup):
    """`quarry add`: a command for each kind of the catalog, which is loaded only for it."""

    def list_commands(self, ctx: Any) -> list[str]:
        from connectors.catalog import KINDS

        del ctx
        return list(KINDS)

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | None:
        from backend.commands.options import KindOptions

        if cmd_name not in self.list_commands(ctx):
            return None
        options = KindOptions(cmd_name, "add")
        return options.command(cmd_name, lambda given: _added(options, given))


class _Sources(TyperGroup):
    """`quarry sources edit`: a command for each source, with the options of its kind."""

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | None:
        from backend.commands.options import KindOptions
        from backend.store import sources as stored

        del ctx
        with _told(as_json=False):
            source = stored.find(_quarry().database, cmd_name)
            options = KindOptions(source.kind, "edit")
        return options.command(cmd_name, lambda given: _edited(options, source, given))


app.add_typer(
    typer.Typer(
        cls=_Kinds,
        help="Add a source of one of these kinds.",
        no_args_is_help=True,
        rich_markup_mode=None,
    ),
    name="add",
)
sources_app = typer.Typer(rich_markup_mode=None)
app.add_typer(sources_app, name="sources")
sources_app.add_typer(
    typer.Typer(
        cls=_Sources,
        help="Change its settings or its credential: quarry sources edit NAME --help.",
        no_args_is_help=True,
        subcommand_metavar="NAME [OPTIONS]",
        rich_markup_mode=None,
    ),
    name="edit",
)
eval_app = typer.Typer(
    help="Score the search on questions with known answers.", no_args_is_help=True
)
app.add_typer(eval_app, name="eval")
credentials_app = typer.Typer(
    help="The keys that the credentials of sources are sealed with.", no_args_is_help=True
)
app.add_typer(credentials_app, name="credentials")

SourceName = Annotated[str, typer.Argument(metavar="NAME", help="Of the source.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
As = Annotated[
    list[str] | None,
    typer.Option(
        "--as",
        metavar="READER",
        help="Ask as a holder of this reader token, such as user:ann@example.com or"
        " group:finance. May be repeated. Without it: public only.",
    ),
]


def main() -> None:
    app()


@contextmanager
def _told(as_json: bool) -> Iterator[None]:
    """Whatever stops a command ends in one sentence and an exit code."""
    from connectors.errors import AskTheOwner, RetryLater
    from indexing.deadline import DeadlineExceeded

    try:
        yield
    except AskTheOwner as error:
        _fail(str(error), as_json)
    except RetryLater as error:
        _fail(f"{error} Try again in {error.after.total_seconds():.0f} s.", as_json)
    except DeadlineExceeded:
        _fail(
            "The time for this was up. Set QUARRY_SEARCH_SECONDS or QUARRY_ANSWER_SECONDS higher"
            " to allow more.",
            as_json,
        )
    except KeyboardInterrupt:
        _fail("Stopped. What was done is kept; the same command goes on from there.", as_json)


def _fail(message: str, as_json: bool, code: int = FAILED) -> NoReturn:
    if as_json:
        _print_json({"error": message})
    else:
        _console(sys.stderr).print(message, style="red", markup=False, highlight=False)
    raise typer.Exit(code)


def _console(stream: Any = None) -> "Console":
    from rich.console import Console

    return Console(file=stream or sys.stdout, highlight=False, emoji=False)


def _print_json(value: object) -> None:
    import json

    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def _print_wire(value: "BaseModel") -> None:
    _print_json(value.model_dump(mode="json"))


def _quarry() -> "Quarry":
    from pydantic import ValidationError

    from backend.assembly import Quarry
    from backend.settings import Settings, variable

    try:
        return Quarry(Settings())
    except ValidationError as error:
        faults = "; ".join(
            f"{variable(str(fault['loc'][0]))}: {fault['msg']}" for fault in error.errors()
        )
        raise typer.BadParameter(f"a setting is not valid: {faults}") from error


def _through_a_switch(quarry: "Quarry", work: Callable[["Quarry"], Done]) -> Done:
    """Work on the home; once more where the index was switched to another edition in the middle of it."""
    from indexing.editions import Superseded

    try:
        return work(quarry)
    except Superseded:
        return work(_quarry())


def _readers(tokens: list[str] | None) -> "Readers":
    from connectors.document import Readers

    try:
        return Readers.of(*tokens or ())
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--as") from error


@app.command()
def demo() -> None:
    """Index the sample company handbook and answer three questions."""
    from backend.commands.demo import run

    with _told(as_json=False):
        run(_quarry(), _console())


def _added(options: "KindOptions", given: "Given") -> None:
    from backend.commands import sources as commands

    with _told(given.as_json):
        added = commands.add(_quarry(), options, given)
        if given.as_json:
            _print_wire(added)
        else:
            told = f"Added {added.name!r}. To read it: quarry sync {added.name}"
            _console().print(told, markup=False, soft_wrap=True)


def _edited(options: "KindOptions", source: "Source", given: "Given") -> None:
    from backend.commands import sources as commands

    with _told(given.as_json):
        edited = commands.edit(_quarry(), options, source, given)
        if given.as_json:
            _print_wire(edited)
        else:
            told = f"Changed. Whether it works: quarry sources test {source.name}"
            _console().print(told, markup=False, soft_wrap=True)


@sources_app.callback(invoke_without_command=True)
def sources(context: typer.Context, as_json: Json = False) -> None:
    """List the sources with their state, or look after one of them."""
    from backend import encoding, listing
    from backend.commands import sources as commands

    if context.invoked_subcommand:
        return
    with _told(as_json):
        listed = listing.sources(_quarry().database)
        if as_json:
            _print_json(encoding.listed(listed))
        elif listed:
            commands.listed(_console(), listed)
        else:
            _console().print("There is no source yet. Add one: quarry add folder PATH")


@sources_app.command("test")
def sources_test(name: SourceName, as_json: Json = False) -> None:
    """Try whether its content, its listing and its access can be had."""
    from backend import connecting, encoding
    from backend.commands import sources as commands
    from backend.store import sources as stored

    with _told(as_json):
        quarry = _quarry()
        tried = connecting.test(quarry, stored.find(quarry.database, name))
        if as_json:
            _print_json(encoding.listed(tried))
        else:
            commands.capabilities(_console(), tried)
    if not all(one.works for one in tried):
        raise typer.Exit(FAILED)


@sources_app.command("schedule")
def sources_schedule(
    name: SourceName,
    incremental: Annotated[
        str | None, typer.Option(metavar="INTERVAL", help="Reading what changed.")
    ] = None,
    permissions: Annotated[
        str | None, typer.Option(metavar="INTERVAL", help="Asking who may read.")
    ] = None,
    prune: Annotated[
        str | None, typer.Option(metavar="INTERVAL", help="Looking for what is gone.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Tell, or change, how often it is read. An interval is such as 90s, 15m, 6h or 1d; never; or usual."""
    from backend import steering
    from backend.intervals import interval

    given = {"incremental": incremental, "permissions": permissions, "prune": prune}
    try:
        every = {kind: interval(text) for kind, text in given.items() if text is not None}
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    with _told(as_json):
        _print_done(steering.reschedule(_quarry().database, name, every), as_json)


@sources_app.command("runs")
def sources_runs(
    name: SourceName,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="The last so many.")] = 20,
    as_json: Json = False,
) -> None:
    """List its last runs, newest first."""
    from backend import encoding
    from backend.commands import sources as commands
    from backend.store import runs
    from backend.store import sources as stored

    with _told(as_json):
        database = _quarry().database
        history = runs.history(database, stored.find(database, name).name, limit)
        told = [encoding.ran(one) for one in history]
        if as_json:
            _print_json(encoding.listed(told))
        elif told:
            commands.ran(_console(), told)
        else:
            _console().print(f"It has not been read yet: quarry sync {name}", markup=False)


@sources_app.command("failures")
def sources_failures(name: SourceName, as_json: Json = False) -> None:
    """List what of it could not be read, why, and when it is tried again."""
    from backend import encoding
    from backend.commands import sources as commands
    from backend.store import failures
    from backend.store import sources as stored

    with _told(as_json):
        database = _quarry().database
        of = stored.find(database, name).name
        failed = [encoding.failure(one) for one in failures.listing(database) if one.source == of]
        if as_json:
            _print_json(encoding.listed(failed))
        elif failed:
            commands.failed(_console(), failed)
        else:
            _console().print("Everything of it could be read.")


@sources_app.command("retry")
def sources_retry(
    name: SourceName,
    document: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID...]", help="Their ids, as `failures` tells them; or all."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Read again now what could not be read."""
    from backend import steering

    with _told(as_json):
        _print_done(steering.retry(_quarry().database, name, document or None), as_json)


def _steered(word: str, name: str, as_json: bool) -> None:
    from backend import steering

    with _told(as_json):
        _print_done(steering.steer(_quarry().database, word, name), as_json)


def _print_done(done: "wire.DoneWire", as_json: bool) -> None:
    if as_json:
        _print_wire(done)
    else:
        _console().print(done.told, markup=False, soft_wrap=True)


@sources_app.command("pause")
def sources_pause(name: SourceName, as_json: Json = False) -> None:
    """Stop what goes on, and begin nothing until it is resumed."""
    _steered("pause", name, as_json)


@sources_app.command("resume")
def sources_resume(name: SourceName, as_json: Json = False) -> None:
    """Keep a paused source in step again."""
    _steered("resume", name, as_json)


@sources_app.command("cancel")
def sources_cancel(name: SourceName, as_json: Json = False) -> None:
    """Stop the run that goes on; what it did is kept."""
    _steered("cancel", name, as_json)


@sources_app.command("prune")
def sources_prune(name: SourceName, as_json: Json = False) -> None:
    """Look for what it does not list any more, and remove it."""
    _steered("prune", name, as_json)


@sources_app.command("accept")
def sources_accept(name: SourceName, as_json: Json = False) -> None:
    """Agree to what its last run asks about, such as many documents that are gone."""
    _steered("accept", name, as_json)


@sources_app.command("delete")
def sources_delete(
    name: SourceName,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Remove it, with all documents that it alone brought."""
    from backend import listing

    with _told(as_json):
        held = listing.source(_quarry().database, name).documents
        question = f"Remove {name} with its {held:,} documents from Quarry?"
        if not yes and not typer.confirm(question, err=True):
            raise typer.Exit(FAILED)
    _steered("delete", name, as_json)


@app.command()
def sync(
    name: Annotated[str | None, typer.Argument(help="One source; all of them by default.")] = None,
    accept_empty: Annotated[
        bool,
        typer.Option(
            "--accept-empty", help="Believe a source that lists nothing, and delete what it had."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Bring the index in step with the sources."""
    from backend import encoding
    from backend.commands import rendering
    from backend.store import sources as stored
    from indexing.pipeline import EmptyListing

    with _told(as_json):
        quarry = _quarry()
        chosen = [stored.find(quarry.database, name)] if name else stored.listing(quarry.database)
        if not chosen:
            _fail("There is no source yet. Add one: quarry add folder PATH", as_json)
        with rendering.progress(_console(sys.stderr)) as bars:
            when_empty = EmptyListing.ACCEPT if accept_empty else EmptyListing.REFUSE
            done = [_sync_one(quarry, source.name, when_empty, bars) for source in chosen]
        if as_json:
            _print_json(encoding.listed(done))
        else:
            for one in done:
                rendering.synced(_console(), one)
    if any(one.error for one in done):
        raise typer.Exit(FAILED)
    if any(one.unreadable_count for one in done):
        raise typer.Exit(DONE_WITH_FAILURES)


def _sync_one(
    quarry: "Quarry", name: str, when_empty: "EmptyListing", bars: "Bars"
) -> "wire.SyncWire":
    """One source; what stops it does not stop the others."""
    from backend import encoding
    from backend.store import sources as stored
    from backend.sync.runner import sync as run
    from connectors.errors import AskTheOwner, RetryLater
    from indexing.report import Report

    def synced(quarry: "Quarry") -> Report:
        source, report = stored.find(quarry.database, name), Report()
        connector, pipeline = quarry.connector(source), quarry.pipeline(source)
        for step in run(quarry.database, source, connector, pipeline, when_empty):
            if isinstance(step, Report):
                report = step
            else:
                bars.show(step)
        return report

    report, error = Report(), None
    try:
        report = _through_a_switch(quarry, synced)
    except (AskTheOwner, RetryLater) as failure:
        error = str(failure)
    return encoding.synced(name, report, error)


@app.command()
def documents(as_json: Json = False) -> None:
    """List every document that is held, with who may read it."""
    from backend import encoding
    from backend.commands import rendering
    from backend.store import documents as stored

    with _told(as_json):
        held = [encoding.document(one) for one in stored.listing(_quarry().database)]
        if as_json:
            _print_json(encoding.listed(held))
        else:
            rendering.documents(_console(), held)


@app.command()
def failures(as_json: Json = False) -> None:
    """List what could not be read, and why."""
    from backend import encoding
    from backend.commands import rendering
    from backend.store import failures as stored

    with _told(as_json):
        failed = [encoding.failure(one) for one in stored.listing(_quarry().database)]
        if as_json:
            _print_json(encoding.listed(failed))
        elif failed:
            rendering.failures(_console(), failed)
        else:
            _console().print("Everything could be read.")


@app.command()
def doctor(as_json: Json = False) -> None:
    """Say what is set up, what works, and what to do about the rest."""
    from backend import encoding
    from backend.commands import rendering
    from backend.commands.doctor import examine

    with _told(as_json):
        found = examine(_quarry())
        if as_json:
            _print_json(encoding.listed(found))
        else:
            rendering.checks(_console(), found)
    if any(check.state == "failed" for check in found):
        raise typer.Exit(FAILED)


@app.command()
def reindex(
    model: Annotated[
        str | None,
        typer.Option(help="The embedding model to change to, as QUARRY_EMBEDDING_MODEL names it."),
    ] = None,
    rebuild: Annotated[
        bool,
        typer.Option(
            "--rebuild", help="Build the index anew for the model it has: cut, embedded, written."
        ),
    ] = False,
    rate: Annotated[
        float | None, typer.Option(min=0.1, help="At most so many chunks a second, on average.")
    ] = None,
    status: Annotated[bool, typer.Option("--status", help="Only say how far it is.")] = False,
    abandon: Annotated[
        bool, typer.Option("--abandon", help="Remove what has been built so far.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Build the index for another embedding model, while the old one is searched.

    Nothing is fetched: documents are cut and embedded anew from what is kept of them. It can be stopped at any
    moment; the same command, or plain `quarry reindex`, goes on.
    """
    from backend.commands import reindexing as commands
    from backend.commands import showing

    if sum([model is not None, rebuild, status, abandon]) > 1:
        raise typer.BadParameter("give one of --model, --rebuild, --status and --abandon")
    with _told(as_json):
        quarry = _quarry()
        if status:
            found = commands.status(quarry)
            _print_wire(found) if as_json else showing.reindex_status(_console(), found)
            return
        if abandon:
            given_up = commands.abandoned(quarry)
            _print_wire(given_up) if as_json else showing.abandoned(_console(), given_up)
            return
        done = _reindexed(quarry, model, rebuild, rate)
        _print_wire(done) if as_json else showing.rebuilt(_console(), done)
    if done.missing:
        raise typer.Exit(DONE_WITH_FAILURES)


def _reindexed(
    quarry: "Quarry", model: str | None, rebuild: bool, rate: float | None
) -> "RebuiltWire":
    from backend.commands import reindexing as commands
    from backend.commands import showing
    from indexing.rebuild import Pace

    if model is not None:
        steps = commands.change_model(quarry, model, Pace(rate))
    elif rebuild:
        steps = commands.rebuild(quarry, Pace(rate))
    else:
        steps = commands.go_on(quarry, Pace(rate))
    with showing.steps(_console(sys.stderr)) as shown:
        return commands.encoded(quarry, shown.rebuilding(steps))


@app.command()
def move(
    to: Annotated[str, typer.Option(metavar="ENGINE", help="opensearch or embedded.")],
    as_json: Json = False,
) -> None:
    """Copy the index to the other engine as it is; nothing is embedded."""
    from backend.commands import moving, showing

    with _told(as_json):
        if to not in ("opensearch", "embedded"):
            raise typer.BadParameter("write opensearch or embedded", param_hint="--to")
        quarry = _quarry()
        engine: Engine = "opensearch" if to == "opensearch" else "embedded"
        with showing.steps(_console(sys.stderr)) as shown:
            done = moving.encoded(engine, shown.moving(moving.move_index(quarry, engine)))
        _print_wire(done) if as_json else showing.moved(_console(), done)


@app.command()
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
    from backend import encoding
    from backend.commands import rendering
    from backend.search.people import meant
    from backend.search.results import find

    asker = _readers(readers)
    filters = _filters(source, tag, media_type, since, until)
    if not query.strip():
        raise typer.BadParameter("write what to look for", param_hint="QUERY")
    with _told(as_json):

        def search_in(quarry: "Quarry") -> tuple[Sequence["SearchDoc"], float]:
            tool = quarry.search_tool()
            began = time.perf_counter()
            request = quarry.request(query, asker, filters)
            if person:
                known = meant(quarry.index, person, asker, request.deadline)
                request = replace(request, filters=replace(filters, people=known))
            docs = find(tool, request, limit)
            return docs, time.perf_counter() - began

        docs, seconds = _through_a_switch(_quarry(), search_in)
        answer = encoding.search(query, docs, seconds)
    if as_json:
        _print_wire(answer)
    elif docs:
        rendering.results(_console(), answer)
        if explain:
            rendering.explanation(_console(), answer)
    else:
        _console().print("Nothing was found that you may read.")
    if not docs:
        raise typer.Exit(FAILED)


def _filters(
    sources: list[str] | None,
    tags: list[str] | None,
    media_types: list[str] | None,
    since: str | None,
    until: str | None,
) -> "Filters":
    from indexing.index import DateRange, Filters

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


@app.command()
def ask(
    question: Annotated[str, typer.Argument(help="The question, in your own words.")],
    readers: As = None,
    file: Annotated[
        list[Path] | None,
        typer.Option(help="A file to answer from. May be repeated.", exists=True, dir_okay=False),
    ] = None,
    as_json: Json = False,
) -> None:
    """Answer a question, each sentence with its source."""
    from backend.commands.asking import ask_in_terminal, note_model

    asker = _readers(readers)
    if not question.strip():
        raise typer.BadParameter("write a question", param_hint="QUESTION")
    with _told(as_json):
        quarry, console = _quarry(), None if as_json else _console()
        answer = _through_a_switch(
            quarry,
            lambda quarry: ask_in_terminal(quarry, question, asker, file or [], console),
        )
        if console is None:
            _print_wire(answer)
        else:
            note_model(quarry, console)


@app.command()
def show(
    document: Annotated[str, typer.Argument(help="The document's id, as a search tells it.")],
    readers: As = None,
    as_json: Json = False,
) -> None:
    """Show a document: its sections, where they stand, and who may read it."""
    from backend import encoding
    from backend.commands import rendering
    from backend.store import documents as stored

    asker = _readers(readers)
    with _told(as_json):
        quarry = _quarry()
        found = stored.find(quarry.database, document, asker)
        if found is None:
            _fail(f"There is no document {document!r} that you may read.", as_json)
        if as_json:
            _print_wire(encoding.shown(found))
        else:
            rendering.shown(_console(), encoding.shown(found))


@app.command()
def serve(
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8321,
    host: Annotated[str, typer.Option(help="An address of this machine.")] = "127.0.0.1",
    readers: As = None,
    debug: Annotated[
        bool, typer.Option("--debug", help="Also log what is asked, which is private.")
    ] = False,
) -> None:
    """Serve the page and the HTTP API, for the person at this machine."""
    import logging

    from backend.commands import serving

    asker = _readers(readers)
    try:
        address = serving.loopback(host)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--host") from error
    with _told(as_json=False):
        bound = serving.listener(address, port)
        level = logging.DEBUG if debug else logging.INFO
        serving.serve(_quarry(), bound, asker, _console(), level)


@app.command()
def worker(
    queue: Annotated[
        list[str] | None,
        typer.Option(help="fetch, index or light. May be repeated; all of them by default."),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(min=1, max=64, help="At once in each; by default 8 to fetch, 1, and 2."),
    ] = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="Metrics of the first queue; the next have the next."),
    ] = None,
    metrics_host: Annotated[
        str, typer.Option(help="The address that they are told on.")
    ] = "127.0.0.1",
) -> None:
    """Do what is due, one process a queue, woken over the broker; see quarry beat."""
    from backend.commands.working import Plan, work_on
    from backend.sync.calls import QUEUES

    queues = tuple(each for each in QUEUES if each in (queue or QUEUES))
    if unknown := set(queue or ()) - set(QUEUES):
        raise typer.BadParameter(f"there is no {', '.join(sorted(unknown))}", param_hint="--queue")
    plan = Plan(
        queues=queues,
        concurrency=concurrency,
        metrics_host=metrics_host,
        metrics_port=metrics_port,
    )
    with _told(as_json=False):
        work_on(_quarry().settings, plan)


@app.command()
def beat(
    every: Annotated[
        float, typer.Option(min=0.1, max=3600, help="Seconds between two looks.")
    ] = 15.0,
) -> None:
    """Tell the workers over the broker what is due, again and again. One is enough."""
    from backend.commands.working import beat as beating

    with _told(as_json=False):
        beating(_quarry().settings, every)


@credentials_app.command("rotate")
def credentials_rotate(as_json: Json = False) -> None:
    """Seal all credentials anew under the newest key. It may be repeated.

    First put a new key before the others, with a comma between them, for every process that works on this home,
    and start these again; after this command the older keys can be taken away.
    """
    from backend.commands.credentials import rotate

    with _told(as_json):
        done = rotate(_quarry())
        if as_json:
            _print_wire(done)
        else:
            many = "1 credential is" if done.resealed == 1 else f"{done.resealed} credentials are"
            _console().print(f"{many} sealed under the newest key now.")


@credentials_app.command("key")
def credentials_key() -> None:
    """Print a new key: for QUARRY_CREDENTIAL_KEYS, or for credentials.key in the home."""
    from backend.store.vault import new_key

    sys.stdout.write(f"{new_key()}\n")


@eval_app.command("run")
def eval_run(
    dataset: Annotated[
        Path, typer.Argument(help="A folder with corpus.jsonl[.gz], queries.jsonl, qrels/test.tsv.")
    ],
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N queries.")] = None,
    as_json: Json = False,
) -> None:
    """Score keyword, vector, hybrid and the whole search on a judged set."""
    from backend.commands.evaluating import evaluate, table

    with _told(as_json):
        report = evaluate(_quarry(), dataset, limit, _console(sys.stderr))
        if as_json:
            _print_json(report.as_json())
        else:
            table(_console(), report)
