"""`quarry feedback`: user feedback as evaluation questions."""

from pathlib import Path
from typing import Annotated

import typer

from backend.chat.readable_ids import make_own_memories
from backend.cli import command_line
from backend.cli.command_line import As, Json
from backend.composition.chat import ChatService
from backend.conversations.answer_gate import AnswerGate
from backend.conversations.feedback import FeedbackReview
from backend.evaluation.judged_questions import (
    WrittenDataset,
    add_to_dataset,
    list_passages,
)
from backend.store.audit import OWNER
from backend.store.chat.answer_feedback import Rating
from backend.store.database import Database
from backend.store.owner import ConversationOwner
from connectors.access import Readers
from indexing.runtime.deadline import Deadline
from indexing.text.normalization import pluralize

app = typer.Typer(help="Create evaluation questions from user feedback.", no_args_is_help=True)


@app.callback()
def feedback() -> None:
    """Create evaluation questions from user feedback."""


@app.command()
def export(
    folder: Annotated[
        Path | None,
        typer.Argument(
            help="A data set for quarry eval run, which is made or added to. Without it, the questions are printed as JSON lines."
        ),
    ] = None,
    rating: Annotated[Rating | None, typer.Option(help="Only answers with this rating.")] = None,
    reader: As = None,
    as_json: Json = False,
) -> None:
    """Export the questions of good answers, and of those of which one source is wrong, with the documents that answer them.

    Only where the reader may read all that the answer rests on. The audit records the export.
    """
    with command_line.cli_errors(as_json):
        own = command_line.readers(reader)
        container = command_line.open_home()
        readers = command_line.resolve_asker(container.home_database, own, reader)
        owner = command_line.find_owner(container.database, reader)
        questions = _open_review(container.chat, container.database, readers, owner).list_judged(
            rating
        )
        if folder is None:
            command_line.print_lines(one.to_line() for one in questions)
            return
        written = add_to_dataset(folder, questions, list_passages(container.database, readers))
        _report(folder, written, as_json)


def _open_review(
    chat: ChatService, database: Database, readers: Readers, owner: ConversationOwner | None
) -> FeedbackReview:
    gate = AnswerGate(
        index=chat.engine.index,
        readers=readers,
        own_memories=make_own_memories(database, owner),
        deadline=Deadline.after(chat.settings.search_seconds),
    )
    return FeedbackReview(database=database, gate=gate, actor=OWNER)


def _report(folder: Path, written: WrittenDataset, as_json: bool) -> None:
    if as_json:
        command_line.print_json(
            {
                "documents": written.documents,
                "questions": written.questions,
                "added": written.added,
            }
        )
        return
    added = pluralize(written.added, "question")
    said = f"{folder}: {added} added, {written.questions} in all; {pluralize(written.documents, 'document')}."
    console = command_line.console()
    console.print(command_line.to_safe_text(said))
    if written.questions:
        console.print(
            command_line.to_safe_text(f"Score the search on it: quarry eval run {folder}")
        )
