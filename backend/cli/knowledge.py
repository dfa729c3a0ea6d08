"""`quarry knowledge`: what research has found out for the owner of the machine."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from backend.chat.readable_ids import make_own_memories
from backend.cli import command_line
from backend.cli.command_line import Json, to_safe_text
from backend.composition.index import EmbeddingModel
from backend.conversations.answer_gate import AnswerGate
from backend.research.knowledge.gate import KnowledgeGate
from backend.research.knowledge.kept_knowledge import ImportReport, KeptItem, Staleness
from backend.research.knowledge.service import KnowledgeService
from backend.schemas.base import dump_all
from backend.schemas.kept_knowledge import ImportReportResponse, KnowledgeItemResponse
from backend.schemas.knowledge import export_knowledge, import_knowledge
from backend.store.research.knowledge_records import MOST_ITEMS, OWN, KnowledgePlace
from connectors.access import Readers
from connectors.errors import ConflictError
from indexing.runtime.deadline import Deadline
from indexing.text.normalization import pluralize

app = typer.Typer(
    help="List, search, read, edit, delete, export and import what research has found out.",
    no_args_is_help=True,
)

ItemId = Annotated[
    str, typer.Argument(metavar="ID", help="Id of the finding: see quarry knowledge list.")
]
Conversation = Annotated[
    str | None, typer.Option(metavar="ID", help="Only what belongs to this conversation.")
]
Project = Annotated[
    str | None, typer.Option(metavar="ID", help="Only what belongs to this project.")
]
_STALE = {
    Staleness.SOURCE_CHANGED: "a document has changed",
    Staleness.SOURCE_GONE: "a document was deleted",
    Staleness.TOO_OLD: "found on the web too long ago",
    Staleness.UNVERIFIED: "not verified",
}
_STANDARD_INPUT = "-"
_SEARCH_LIMIT = 20


@app.command(name="list")
def list_items(
    conversation: Conversation = None, project: Project = None, as_json: Json = False
) -> None:
    """List what was found, the newest first."""
    with command_line.cli_errors(as_json):
        opened = _open()
        _print(opened, opened.service.list_all(_find_places(conversation, project)), as_json)


@app.command()
def search(
    query: Annotated[
        str, typer.Argument(metavar="QUERY", help="The topic or question to search for.")
    ],
    conversation: Conversation = None,
    project: Project = None,
    as_json: Json = False,
) -> None:
    """Search what was found, the nearest first."""
    with command_line.cli_errors(as_json):
        opened = _open()
        places, model = _find_places(conversation, project), opened.embedding.sentence_model
        _print(opened, opened.service.search(query, places, model, _SEARCH_LIMIT), as_json)


@app.command()
def show(item_id: ItemId, as_json: Json = False) -> None:
    """Show a finding with what it rests on."""
    with command_line.cli_errors(as_json):
        opened = _open()
        found = opened.service.get(item_id)
        if as_json:
            command_line.print_model(_to_response(opened, found))
        else:
            _print_item(found)


@app.command()
def edit(
    item_id: ItemId,
    question: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What it answers; - reads standard input.")
    ] = None,
    answer: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What it says; - reads standard input.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Correct a finding: references that no longer support it are removed."""
    if question is None and answer is None:
        raise typer.BadParameter("Give --question, --answer, or both.")
    with command_line.cli_errors(as_json):
        opened = _open()
        corrected = opened.service.correct(item_id, _read_text(question), _read_text(answer))
        if as_json:
            command_line.print_model(_to_response(opened, corrected))
        else:
            command_line.console().print(to_safe_text(f"{item_id} is corrected."))


@app.command()
def delete(item_id: ItemId, as_json: Json = False) -> None:
    """Delete a finding."""
    with command_line.cli_errors(as_json):
        _open().service.delete(item_id)
        if as_json:
            command_line.print_json({"id": item_id, "done": "is deleted"})
        else:
            command_line.console().print(to_safe_text(f"{item_id} is deleted."))


@app.command()
def export(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="Without it, the JSON is printed.")
    ] = None,
    conversation: Conversation = None,
    project: Project = None,
    as_json: Json = False,
) -> None:
    """Export what was found as JSON that can be imported."""
    with command_line.cli_errors(as_json):
        page = _open().service.export_page(_find_places(conversation, project), None)
        if page.next is not None:
            raise ConflictError(
                f"These are more than the {MOST_ITEMS:,} findings that one file holds. Export those of a conversation or a"
                " project by themselves: --conversation, --project."
            )
        items, text = page.items, export_knowledge(page.items)
        if file is None:
            command_line.print_lines(f"{line}\n" for line in text.split("\n"))
            return
        _write(file, text, as_json)
        if as_json:
            command_line.print_json({"file": str(file), "exported": len(items)})
        else:
            said = f"{pluralize(len(items), 'finding')} exported to {file}."
            command_line.console().print(to_safe_text(said))


@app.command(name="import")
def import_file(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="The exported file; - is standard input.")
    ],
    conversation: Annotated[
        str | None, typer.Option(metavar="ID", help="Import into this conversation.")
    ] = None,
    project: Annotated[
        str | None, typer.Option(metavar="ID", help="Import into this project.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Import what was exported. A reference to a document is kept only if you may read that, and it says so."""
    with command_line.cli_errors(as_json):
        given = import_knowledge(_read_file(file, as_json))
        place = (_find_places(conversation, project) or (OWN,))[0]
        report = _open().service.import_items(place, given)
        if as_json:
            command_line.print_model(ImportReportResponse.from_report(report))
        else:
            command_line.console().print(to_safe_text(_describe(report)))


@dataclass(frozen=True, slots=True)
class _Opened:
    embedding: EmbeddingModel
    service: KnowledgeService


def _open() -> _Opened:
    """Open the findings of the machine's owner.

    Raises:
        ConflictError: there are accounts, and each person's findings are for those who may read their sources.
    """
    container = command_line.open_home()
    owner = command_line.find_owner(container.database, None)
    if owner is None:
        raise ConflictError(
            "There are accounts here, and what was found is for each person to see: they see and change it on the page /knowledge."
        )
    database, chat = container.database, container.chat
    answers = AnswerGate(
        index=chat.engine.index,
        readers=command_line.resolve_asker(container.home_database, Readers.of(), None),
        own_memories=make_own_memories(database, owner),
        deadline=Deadline.after(chat.settings.search_seconds),
    )
    web_age = timedelta(days=chat.settings.knowledge_web_days)
    gate = KnowledgeGate(database=database, asker=owner, answers=answers, web_age=web_age)
    return _Opened(container.embedding, KnowledgeService(database=database, owner=owner, gate=gate))


def _find_places(
    conversation: str | None, project: str | None
) -> tuple[KnowledgePlace, ...] | None:
    """Return the place that is named; None where none is."""
    match conversation, project:
        case None, None:
            return None
        case str(conversation_id), None:
            return (KnowledgePlace("conversation", conversation_id),)
        case None, str(project_id):
            return (KnowledgePlace("project", project_id),)
        case _:
            raise typer.BadParameter("Name a conversation or a project, not both.")


def _to_response(opened: _Opened, item: KeptItem) -> KnowledgeItemResponse:
    return KnowledgeItemResponse.from_kept(item, may_change=opened.service.may_change(item))


def _print(opened: _Opened, items: Sequence[KeptItem], as_json: bool) -> None:
    if as_json:
        command_line.print_json(dump_all(_to_response(opened, one) for one in items))
    elif items:
        command_line.console().print(_make_table(items))
    else:
        command_line.console().print("Nothing was found yet.")


def _make_table(items: Sequence[KeptItem]) -> Table:
    table = Table("id", "found", "type", "stale", "question", box=None, header_style="dim")
    for one in items:
        stale = "" if one.stale is None else _STALE[one.stale]
        day, kind = f"{one.made_at.astimezone():%Y-%m-%d}", _name_type(one)
        table.add_row(to_safe_text(one.id), day, kind, stale, to_safe_text(one.item.question))
    return table


def _name_type(item: KeptItem) -> str:
    return f"{item.item.type.value} (web)" if item.is_of_web else item.item.type.value


def _print_item(kept: KeptItem) -> None:
    console = command_line.console()
    console.print(to_safe_text(kept.item.question, "bold"))
    stale = "" if kept.stale is None else f", stale: {_STALE[kept.stale]}"
    console.print(f"{kept.made_at.astimezone():%Y-%m-%d}, {_name_type(kept)}{stale}", style="dim")
    console.print(to_safe_text(kept.item.answer), soft_wrap=True)
    for number, one in enumerate(kept.item.references, start=1):
        console.print()
        console.print(to_safe_text(f"[{number}] {one.title}", "cyan"))
        console.print(to_safe_text(f"    “{one.exact_quote}”"), soft_wrap=True)
        console.print(to_safe_text(f"    {one.document_id or one.url}", "blue"), soft_wrap=True)


def _describe(report: ImportReport) -> str:
    said = [f"{pluralize(len(report.ids), 'finding')} imported."]
    if report.dropped_references:
        dropped = pluralize(report.dropped_references, "reference")
        said.append(
            f"{dropped} dropped: to documents that you may not read, that do not exist, or that do not say so."
        )
    if report.unverified:
        said.append(f"{report.unverified:,} not used until corrected.")
    return " ".join(said)


def _read_text(given: str | None) -> str | None:
    return sys.stdin.read() if given == _STANDARD_INPUT else given


def _read_file(file: str, as_json: bool) -> bytes:
    try:
        return sys.stdin.buffer.read() if file == _STANDARD_INPUT else Path(file).read_bytes()
    except OSError as error:
        command_line.fail(f"{file} cannot be read: {error.strerror}.", as_json)


def _write(file: Path, text: str, as_json: bool) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        command_line.fail(f"{file} cannot be written: {error.strerror}.", as_json)
