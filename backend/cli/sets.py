"""`quarry sets`: named sets of documents, to search in."""

import sys
import time
from collections.abc import Iterator, Sequence
from typing import Annotated, TypeAlias

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from backend.cli import command_line
from backend.cli.command_line import Json, to_safe_text
from backend.composition.index import IndexEngine
from backend.container import Container
from backend.schemas.base import dump_all
from backend.schemas.document_set import DocumentSetResponse
from backend.sources.document_sets import DocumentSetService, SetDraft
from backend.store.database import Database
from backend.store.documents import document_set_jobs, document_sets
from backend.sync.document_set_updates import DocumentSetUpdater, is_held
from indexing.text.normalization import pluralize

_LOOK_SECONDS = 0.2
"""Between two looks at a job that a worker holds."""

app = typer.Typer(
    help="Gather documents in named sets, to search in.",
    no_args_is_help=True,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the set.")]
Sources = Annotated[
    list[str] | None, typer.Option("--source", help="All of this source. May be repeated.")
]
Folders = Annotated[
    list[str] | None,
    typer.Option(
        "--folder",
        metavar="SOURCE:FOLDER",
        help="What lies below this folder, such as handbook:people/. May be repeated.",
    ),
]
Tags = Annotated[
    list[str] | None,
    typer.Option(
        "--tag",
        metavar="[SOURCE:]KEY=VALUE",
        help="What has this tag, in one source or in all. May be repeated.",
    ),
]
Documents = Annotated[
    list[str] | None,
    typer.Option("--document", metavar="ID", help="A single document. May be repeated."),
]
Readers = Annotated[
    list[str] | None,
    typer.Option(
        "--reader",
        metavar="READER",
        help="Show the set to this group or person, such as group:hr; by default to everybody. May be repeated.",
    ),
]
Background: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--background", help="Return at once; the workers of quarry serve update the documents."
    ),
]


@app.command()
def add(
    name: Name,
    description: Annotated[str, typer.Option(help="What it is for.")] = "",
    source: Sources = None,
    folder: Folders = None,
    tag: Tags = None,
    document: Documents = None,
    reader: Readers = None,
    background: Background = False,
    as_json: Json = False,
) -> None:
    """Add a set. It never shows anybody what they may not read."""
    draft = _draft(name, description, source, folder, tag, document, reader)
    with command_line.cli_errors(as_json):
        container = command_line.open_home()
        _open_service(container).add(draft)
        if not background:
            _apply_all(container.database, container.engine)
        _report(container, name, as_json)


@app.command()
def edit(
    name: Name,
    new_name: Annotated[str | None, typer.Option("--name", help="The new name.")] = None,
    description: Annotated[str | None, typer.Option(help="What it is for.")] = None,
    source: Sources = None,
    folder: Folders = None,
    tag: Tags = None,
    document: Documents = None,
    reader: Readers = None,
    background: Background = False,
    as_json: Json = False,
) -> None:
    """Change a set. A kind of rules that is given replaces all of its kind; what is not given stays."""
    with command_line.cli_errors(as_json):
        container = command_line.open_home()
        service = _open_service(container)
        before = service.get(name)
        draft = _draft(
            new_name or name,
            before.description if description is None else description,
            before.sources if source is None else source,
            before.folders if folder is None else folder,
            before.tags if tag is None else tag,
            before.documents if document is None else document,
            before.readers if reader is None else reader,
        )
        service.change(name, draft)
        if not background:
            _apply_all(container.database, container.engine)
        _report(container, draft.name, as_json)


@app.command(name="list")
def list_all(as_json: Json = False) -> None:
    """List the sets, and how many documents belong to each."""
    with command_line.cli_errors(as_json):
        found = _open_service(command_line.open_home()).list_sets()
        if as_json:
            command_line.print_json(dump_all(found))
        elif found:
            _print_sets(found)
        else:
            command_line.console().print("No document sets yet. To add one: quarry sets add NAME")


@app.command()
def show(name: Name, as_json: Json = False) -> None:
    """Show a set: what belongs to it, who sees it, and how far its documents are updated."""
    with command_line.cli_errors(as_json):
        _report(command_line.open_home(), name, as_json)


@app.command()
def remove(name: Name, background: Background = False, as_json: Json = False) -> None:
    """Remove a set. Its documents stay."""
    with command_line.cli_errors(as_json):
        container = command_line.open_home()
        _open_service(container).remove(name)
        if not background:
            _apply_all(container.database, container.engine)
        if as_json:
            command_line.print_json({"name": name, "done": "is removed"})
        else:
            command_line.console().print(to_safe_text(f"{name} is removed."))


def _draft(
    name: str,
    description: str,
    sources: Sequence[str] | None,
    folders: Sequence[str] | None,
    tags: Sequence[str] | None,
    documents: Sequence[str] | None,
    readers: Sequence[str] | None,
) -> SetDraft:
    return SetDraft(
        name=name,
        description=description,
        readers=tuple(readers or ()),
        sources=tuple(sources or ()),
        folders=tuple(folders or ()),
        tags=tuple(tags or ()),
        documents=tuple(documents or ()),
    )


def _open_service(container: Container) -> DocumentSetService:
    return DocumentSetService(container.database, container.engine.count_selected)


def _apply_all(database: Database, engine: IndexEngine) -> None:
    """Update the documents of all sets that were changed. What a worker holds is waited for."""
    if not document_set_jobs.is_due(database):
        return
    columns = (TextColumn("updating documents"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=command_line.console(sys.stderr), transient=True) as bars:
        task = bars.add_task("", total=None)

        def show_progress() -> None:
            progress = [one.progress for one in document_sets.list_sets(database)]
            under_way = [each for each in progress if not each.is_applied]
            bars.update(
                task,
                completed=sum(each.done for each in under_way),
                total=sum(each.total or 0 for each in under_way) or None,
            )

        worker = DocumentSetUpdater(database, engine.writer, show_progress)
        while document_set_jobs.is_due(database) and not is_held(database):
            if not worker.apply_next():
                show_progress()
                time.sleep(_LOOK_SECONDS)


def _report(container: Container, name: str, as_json: bool) -> None:
    service = _open_service(container)
    found = service.get(" ".join(name.split()))
    if as_json:
        command_line.print_model(found)
        return
    unmatched = [
        f"  no document matches now: {each}" for each in service.list_unmatched(found.name)
    ]
    for line in (*_describe(found), *unmatched):
        command_line.console().print(to_safe_text(line), soft_wrap=True)


def _describe(found: DocumentSetResponse) -> Iterator[str]:
    yield found.name
    if found.description:
        yield f"  {found.description}"
    for kind, texts in (
        ("source", found.sources),
        ("folder", found.folders),
        ("tag", found.tags),
        ("document", found.documents),
        ("shown to", found.readers),
    ):
        for text in texts:
            yield f"  {kind}: {text}"
    yield f"  {describe_progress(found)}"


def describe_progress(found: DocumentSetResponse) -> str:
    if not found.has_rules:
        return "nothing belongs to it: its sources were deleted"
    if found.is_applied:
        return pluralize(found.count or 0, "document")
    if found.trouble:
        return f"{found.trouble} It is tried again."
    if found.total is None:
        return "its documents are updated as soon as a worker is free"
    return f"{found.done:,} of {found.total:,} documents are updated"


def _print_sets(found: Sequence[DocumentSetResponse]) -> None:
    table = Table("name", "documents", "shown to", "rules", box=None, header_style="dim")
    for one in found:
        rules = (*one.sources, *one.folders, *one.tags, *one.documents)
        cells = (one.name, describe_progress(one), ", ".join(one.readers), ", ".join(rules))
        table.add_row(*map(to_safe_text, cells))
    command_line.console().print(table)
