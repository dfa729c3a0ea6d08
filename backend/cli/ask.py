"""`quarry ask`: a question, a stream of events, an answer on the screen or as one value."""

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from backend.chat.chat_state import ChatStateContainer
from backend.chat.context_files import ContextFile
from backend.chat.events import (
    AnswerDone,
    AnswerFailedError,
    ChatEvent,
    EarlierFindingsShown,
    PagesRead,
    SearchPlanned,
    TextPiece,
    TurnFailed,
    WebSearched,
)
from backend.chat.intent.search_plan import NotNeeded, Searches
from backend.chat.passages import (
    REASON_TEXTS,
    PassagesReason,
    PassagesShown,
    QuotedPassage,
    TextRun,
)
from backend.chat.turn import ChatTurn
from backend.chat.turn_settings import (
    AssistantSettings,
    ModeName,
    RequestedMode,
    read_default_settings,
)
from backend.cli import command_line
from backend.cli.answer_output import print_general_knowledge, print_references, print_uncited
from backend.cli.command_line import As, Json, to_safe_text
from backend.composition.chat import ChatService
from backend.container import Container
from backend.schemas.answer import AnswerResponse
from backend.schemas.web_lookup import ReadPageResponse
from backend.search.events import FiltersApplied, Queries, SectionsSelected, StepFailed
from backend.store.accounts.people import NOBODY
from backend.store.audit import OWNER
from backend.store.database import Database
from backend.store.owner import ConversationOwner
from connectors.access import EVERYBODY, Readers
from connectors.document import Document
from connectors.errors import InvalidInputError
from connectors.extraction.registry import detect_media_type, extract
from connectors.extraction.result import ExtractionError
from indexing.index.protocols import Filters
from indexing.runtime.deadline import Deadline
from indexing.text.normalization import is_visible, pluralize

FILES = "files"
"""The source of files that come with a question."""

_CUT = "The answer was cut off: the language model reached its length limit. Ask it to continue, or ask a narrower question."
_LINKED = re.compile(r"\[\[(\d+)\]\]\([^\s)]*\)")
_LISTED_CHARACTERS = 100
USUAL = RequestedMode()
"""Chat mode, with company knowledge and without the web."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What answers a question, and from what."""

    assistant: str | None = None
    """By id or name; None: the default one."""
    sets: tuple[str, ...] = ()
    """Of documents; none: all."""


OF_ALL = Asked()


def ask_in_terminal(
    container: Container,
    question: str,
    readers: Readers,
    paths: Sequence[Path],
    console: Console | None,
    mode: RequestedMode = USUAL,
    owner: ConversationOwner | None = None,
    asked: Asked = OF_ALL,
) -> tuple[AnswerDone, float]:
    """Answer a question; while it runs, on the console if there is one. Return the answer, and the seconds that it took.

    Raises:
        NotFoundError: there is no such assistant, or it is not for the asker.
        InvalidInputError: a file cannot be read, or the assistant has files of its own.
        AnswerFailedError, TemporarilyUnavailableError: the answer failed.
        ConflictError: the mode contradicts itself, or asks for the web, which is switched off.
    """
    began = time.perf_counter()
    files = [_read(path) for path in paths]
    turn = ChatTurn(
        message=question,
        readers=readers,
        deadline=Deadline.after(container.settings.answer_seconds),
        person_id=NOBODY,
        owner=owner if container.chat.model else None,
        filters=Filters(sets=frozenset(asked.sets) or None),
        files=tuple(map(_context_file, files)),
        today=date.today(),
        mode=mode.parse_permitted(lambda: container.web.sessions.is_on),
        assistant=_find_settings(container.database, readers, owner, asked.assistant),
    )
    done = _print_events(container.chat, turn, files, console)
    seconds = time.perf_counter() - began
    if console and done.cut:
        console.print(_CUT, style="yellow")
    if console and done.model is not None:
        answer = AnswerResponse.from_answer(question, done, seconds)
        print_general_knowledge(console, answer)
        print_uncited(console, answer)
        print_references(console, answer)
    return done, seconds


def _find_settings(
    database: Database, readers: Readers, owner: ConversationOwner | None, wanted: str | None
) -> AssistantSettings:
    """Return how an assistant answers.

    Raises:
        NotFoundError: there is none of this id or name, or it is not for the asker.
        InvalidInputError: it has files, which are not read here.
    """
    if wanted is None:
        return read_default_settings(database)
    from backend.access.shared_file_readers import resolve_in
    from backend.conversations.assistant_service import AssistantService, AssistantUser
    from backend.conversations.name_lookup import find_assistant
    from backend.files.attached_files import find_attached

    user = AssistantUser(owner=owner, readers=readers, is_admin=False, actor=OWNER)
    # What an assistant is limited to is not shown here.
    usable = AssistantService(database=database, user=user, find_sources=frozenset[str])
    settings = usable.find_settings_of_conversation(find_assistant(usable, wanted))
    held = resolve_in(database, readers, owner, settings.holders)
    if find_attached(database, owner, (), settings.holders, held) is not None:
        raise InvalidInputError(
            "This assistant has files of its own, which are not read in the terminal. Ask it on its page."
        )
    return settings


def _print_events(
    chat: ChatService, turn: ChatTurn, files: Sequence[Document], console: Console | None
) -> AnswerDone:
    has_model = chat.model is not None
    shows_text = console is not None and has_model
    for event in chat.answer(turn, files, ChatStateContainer()):
        match event:
            case AnswerDone():
                if console and shows_text:
                    console.print()
                return event
            case TurnFailed():
                raise event.to_error()
            case PassagesShown() if console:
                if event.reason is PassagesReason.MODEL_BROKE_OFF:
                    console.print("\n")
                print_passages(console, event)
                # What follows as text is the sentence that was printed above them.
                shows_text = False
            case TextPiece(text=text) if console and shows_text:
                linked = _LINKED.sub(r"[\1]", text)
                console.print(to_safe_text(linked), end="", soft_wrap=True)
            case Queries() | SectionsSelected() if not has_model:
                pass
            case _:
                if console:
                    print_step(console, event)
    raise AnswerFailedError("The answer ended before it was complete.", "Ask again.")


def print_step(console: Console, event: ChatEvent) -> None:
    """Print what a turn does on its way to the answer."""
    for line, style in _list_step_lines(event):
        console.print(to_safe_text(line, style), soft_wrap=True)


def _list_step_lines(event: ChatEvent) -> Iterator[tuple[str, str]]:
    match event:
        case Queries(variants=variants):
            yield f"searching: {' · '.join(variant.text for variant in variants)}", "dim"
        case FiltersApplied(inferred=inferred):
            for one in inferred:
                yield f"first, for “{one.words}”: {one.kind}: {one.meaning}", "dim"
        case SectionsSelected(sections=sections):
            titles = dict.fromkeys(section.best.chunk.title for section in sections)
            yield f"reading: {' · '.join(titles)}", "dim"
        case StepFailed(step=step, reason=reason):
            yield f"done without {step}: {reason}", "yellow"
        case SearchPlanned(plan=Searches(knowledge=NotNeeded())):
            yield "company knowledge is not needed", "dim"
        case EarlierFindingsShown(questions=questions):
            yield f"{pluralize(len(questions), 'earlier finding')} used", "dim"
        case WebSearched():
            yield from _list_web_lines(event)
        case PagesRead(pages=pages):
            for page in map(ReadPageResponse.from_outcome, pages):
                line = f"not read: {page.url}: {page.problem}"
                yield (line, "yellow") if page.problem else (f"read: {page.url}", "dim")
        case _:
            pass


def _list_web_lines(searched: WebSearched) -> Iterator[tuple[str, str]]:
    finding = searched.finding
    answered = (
        f"; {finding.answered_by} answered"
        if len(finding.receivers) > 1 and finding.answered_by
        else ""
    )
    sent = f" (sent to {', '.join(finding.receivers)}{answered})" if finding.receivers else ""
    known = " (searched before)" if not finding.receivers and not finding.problem else ""
    yield f"on the web: {finding.query}{sent}{known}", "dim"
    if searched.withheld:
        yield f"kept out of it: {', '.join(searched.withheld)}", "dim"
    if finding.problem:
        yield f"done without the web: {finding.problem}", "yellow"


def print_passages(console: Console, shown: PassagesShown) -> None:
    """Print passages with their quotes; where nothing seems to answer, one line each."""
    console.print(REASON_TEXTS[shown.reason], style="bold")
    if shown.reason is not PassagesReason.NOTHING_ANSWERS:
        for passage in shown.passages:
            _print_passage(console, passage)
    elif shown.passages:
        console.print("\nThe closest passages:")
        for passage in shown.passages:
            text = "".join(run.text for run in passage.runs)
            short = text if len(text) <= _LISTED_CHARACTERS else f"{text[:_LISTED_CHARACTERS]}…"
            line = f"  {_format_heading(passage)}: “{short}”"
            console.print(to_safe_text(line), soft_wrap=True)


def _print_passage(console: Console, passage: QuotedPassage) -> None:
    number = (f"[{passage.number}] ", "bold cyan")
    quoted = (TextRun("“"), *passage.runs, TextRun("”"))
    styled = (to_safe_text(run.text, "bold" if run.highlighted else "") for run in quoted)
    console.print()
    console.print(Text.assemble(number, to_safe_text(_format_heading(passage), "bold")))
    console.print(Text.assemble("    ", *styled))
    console.print(to_safe_text(f"    {passage.link}", "blue"), soft_wrap=True)


def _format_heading(passage: QuotedPassage) -> str:
    return f"{passage.title} › {passage.place}" if passage.place else passage.title


def note_model(chat: ChatService, console: Console) -> None:
    """Say how to have answers written where no language model writes them."""
    if chat.model is None:
        console.print()
        console.print("[dim]To have answers written, set a language model: quarry models add[/dim]")


def _read(path: Path) -> Document:
    """Read a file that comes with a question. Raises InvalidInputError, with the file's name."""
    try:
        data = path.read_bytes()
        media_type = detect_media_type(path.name, data[:8192])
        extracted = extract(data, media_type)
    except (ExtractionError, OSError) as error:
        raise InvalidInputError(f"{path} cannot be read: {error}") from error
    modified = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    return Document(
        id=f"{FILES}:{path.absolute().as_posix()}",
        source=FILES,
        title=extracted.title or path.stem,
        sections=extracted.sections,
        link=path.absolute().as_uri(),
        media_type=media_type,
        access=EVERYBODY,
        version="",
        metadata=extracted.metadata,
        owners=extracted.authors,
        created_at=extracted.created_at,
        updated_at=extracted.updated_at or modified,
    )


def _context_file(document: Document) -> ContextFile:
    return ContextFile(
        document_id=document.id,
        name=document.title,
        text="\n\n".join(section.text for section in document.sections),
        link=document.link,
    )


def ask(
    question: Annotated[str, typer.Argument(help="The question, in your own words.")],
    readers: As = None,
    file: Annotated[
        list[Path] | None,
        typer.Option(help="A file to answer from. May be repeated.", exists=True, dir_okay=False),
    ] = None,
    mode: Annotated[
        ModeName,
        typer.Option(
            help="chat: the question is looked up first. agent: the model decides when to search."
        ),
    ] = "chat",
    web: Annotated[
        bool | None,
        typer.Option("--web/--no-web", help="In Chat mode: search the web. Off by default."),
    ] = None,
    knowledge: Annotated[
        bool | None,
        typer.Option(
            "--knowledge/--no-knowledge",
            help="In Chat mode: search company knowledge. On by default.",
        ),
    ] = None,
    assistant: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Have this assistant answer, by its name or id."),
    ] = None,
    document_set: Annotated[
        list[str] | None,
        typer.Option("--set", help="Answer only from this document set. May be repeated."),
    ] = None,
    rewrite: Annotated[
        bool | None,
        typer.Option(
            "--rewrite/--no-rewrite",
            help="In Chat mode: let the model write what is searched besides the question. On by default.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Answer a question with sources; without a language model, show the passages that come closest."""
    own = command_line.readers(readers)
    if not is_visible(question):
        raise typer.BadParameter("write a question", param_hint="QUESTION")
    chosen = RequestedMode(mode=mode, knowledge=knowledge, web=web, rewrite=rewrite)
    with command_line.cli_errors(as_json):
        container, console = (
            command_line.open_home(),
            None if as_json else command_line.console(),
        )
        done, seconds = command_line.retry_on_index_switch(
            container,
            lambda container: ask_in_terminal(
                container,
                question,
                command_line.resolve_asker(container.home_database, own, readers),
                file or [],
                console,
                chosen,
                # Passages are shown without memories.
                command_line.find_owner(container.database, readers)
                if container.chat.model or assistant
                else None,
                Asked(assistant=assistant, sets=tuple(document_set or ())),
            ),
        )
        if console is None:
            command_line.print_model(AnswerResponse.from_answer(question, done, seconds))
        else:
            note_model(container.chat, console)
