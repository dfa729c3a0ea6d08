"""`quarry ask`: a question, a stream of events, an answer on the screen or as one value."""

import re
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from backend.chat.chat_state import ChatStateContainer
from backend.chat.context_files import ContextFile
from backend.chat.events import AnswerDone, TextPiece, TurnFailed
from backend.chat.passages import PassagesReason, PassagesShown, QuotedPassage, TextRun
from backend.chat.turn import ChatTurn
from backend.cli import command_line
from backend.cli.command_line import As, Json, to_safe_text
from backend.container import Container
from backend.conversations.assistant_service import read_default_settings
from backend.schemas.answer import AnswerResponse, CitationResponse, Verdict
from backend.search.events import FiltersApplied, Queries, SectionsSelected, StepFailed
from backend.store.conversations import ConversationOwner
from backend.store.people import NOBODY
from connectors.access import EVERYBODY, Readers
from connectors.document import Document
from connectors.errors import ActionRequiredError
from connectors.extraction.registry import detect_media_type, extract
from connectors.extraction.result import ExtractionError
from indexing.runtime.deadline import Deadline
from indexing.text.normalization import is_visible

FILES = "files"
"""The source of files that come with a question."""

_CUT = "The answer was cut off: the language model reached its length limit. Ask it to continue, or ask a narrower question."
_UNCITED = "This answer cites no document. Check it before you rely on it."
_VERDICTS: Mapping[Verdict, str] = {
    "verbatim": "",
    "supported": "",
    "weak": "supports this only in part",
    "unsupported": "does not support this",
    "contradicted": "says otherwise",
    "unchecked": "not checked",
}
_LINKED = re.compile(r"\[\[(\d+)\]\]\([^\s)]*\)")
_LISTED_CHARACTERS = 100


def ask_in_terminal(
    container: Container,
    question: str,
    readers: Readers,
    paths: Sequence[Path],
    console: Console | None,
    owner: ConversationOwner | None = None,
) -> AnswerResponse:
    """Answer a question; while it runs, on the console if there is one.

    Raises:
        ActionRequiredError: a file cannot be read, or the answer failed.
    """
    began = time.perf_counter()
    files = [_read(path) for path in paths]
    turn = ChatTurn(
        message=question,
        readers=readers,
        deadline=Deadline.after(container.settings.answer_seconds),
        person_id=NOBODY,
        owner=owner,
        files=tuple(map(_context_file, files)),
        today=date.today(),
        assistant=read_default_settings(container.database),
    )
    done = _print_events(container, turn, files, console)
    answer = AnswerResponse.from_answer(question, done, time.perf_counter() - began)
    if console:
        if answer.cut:
            console.print(_CUT, style="yellow")
        if answer.model is not None:
            print_uncited(console, answer)
            print_citations(console, answer.citations)
    return answer


def _print_events(
    container: Container, turn: ChatTurn, files: Sequence[Document], console: Console | None
) -> AnswerDone:
    has_model = container.chat.model is not None
    shows_text = console is not None and has_model
    for event in container.chat.answer(turn, files, ChatStateContainer()):
        match event:
            case AnswerDone():
                if console and shows_text:
                    console.print()
                return event
            case TurnFailed(message=message, advice=advice):
                raise ActionRequiredError(f"{message} {advice}")
            case PassagesShown() if console:
                if event.reason is PassagesReason.MODEL_BROKE_OFF:
                    console.print("\n")
                print_passages(console, event)
                # What follows as text is the sentence that was printed above them.
                shows_text = False
            case TextPiece(text=text) if console and shows_text:
                linked = _LINKED.sub(r"[\1]", text)
                console.print(command_line.to_safe_text(linked), end="", soft_wrap=True)
            case Queries(variants=variants) if console and has_model:
                tried = " · ".join(variant.text for variant in variants)
                console.print(command_line.to_safe_text(f"searching: {tried}", "dim"))
            case FiltersApplied(inferred=inferred) if console:
                for one in inferred:
                    line = f"first, for “{one.words}”: {one.kind}: {one.meaning}"
                    console.print(command_line.to_safe_text(line, "dim"))
            case SectionsSelected(sections=sections) if console and has_model:
                read = " · ".join(dict.fromkeys(s.best.chunk.title for s in sections))
                console.print(command_line.to_safe_text(f"reading: {read}", "dim"))
            case StepFailed(step=step, reason=reason) if console:
                console.print(command_line.to_safe_text(f"done without {step}: {reason}", "yellow"))
            case _:
                pass
    raise ActionRequiredError("The answer ended before it was complete. Ask again.")


def note_model(container: Container, console: Console) -> None:
    """Say how to have answers written where no language model writes them."""
    if container.chat.model is None:
        console.print()
        console.print("[dim]To have answers written, set a language model: quarry models add[/dim]")


def _read(path: Path) -> Document:
    """Raises ActionRequiredError, with the file's name."""
    try:
        data = path.read_bytes()
        media_type = detect_media_type(path.name, data[:8192])
        extracted = extract(data, media_type)
    except (ExtractionError, OSError) as error:
        raise ActionRequiredError(f"{path} cannot be read: {error}") from error
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
    as_json: Json = False,
) -> None:
    """Answer a question with sources; without a language model, show the passages that come closest."""
    own = command_line.readers(readers)
    if not is_visible(question):
        raise typer.BadParameter("write a question", param_hint="QUESTION")
    with command_line.cli_errors(as_json):
        container, console = (
            command_line.open_home(),
            None if as_json else command_line.console(),
        )
        answer = command_line.retry_on_index_switch(
            container,
            lambda container: ask_in_terminal(
                container,
                question,
                command_line.resolve_asker(container, own, readers),
                file or [],
                console,
                # Passages are shown without memories.
                command_line.find_owner(container, readers) if container.chat.model else None,
            ),
        )
        if console is None:
            command_line.print_model(answer)
        else:
            note_model(container, console)


def print_uncited(console: Console, answer: AnswerResponse) -> None:
    """Say which sentences state something and cite nothing."""
    if not answer.uncited:
        return
    if not answer.citations:
        console.print(_UNCITED, style="yellow")
        return
    console.print("Without a source:", style="yellow")
    for sentence in answer.uncited:
        console.print(to_safe_text(f"    {sentence}"), soft_wrap=True)


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


def print_passages(console: Console, shown: PassagesShown) -> None:
    """Print passages with their quotes; where nothing seems to answer, one line each."""
    console.print(shown.reason.sentence, style="bold")
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


def _format_citation(citation: CitationResponse) -> str:
    quote = f"“{' '.join(citation.quote.split())}”" if citation.quote else ""
    verdict = _VERDICTS[citation.verdict]
    return f"    {quote or verdict}" + (f" ({verdict})" if quote and verdict else "")
