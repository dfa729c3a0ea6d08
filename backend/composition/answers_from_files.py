"""Answer a question that has files: they are read whole, or searched if they do not fit."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backend.chat.chat_state import ChatStateContainer
    from backend.chat.events import ChatEvent
    from backend.chat.given_files import FileUse, GivenFile
    from backend.chat.llm_loop import ChatTurn
    from backend.composition.chat import ChatService
    from backend.composition.turn_models import TurnModels
    from backend.files.attached_files import AttachedFiles
    from backend.store.user_files import UserFile
    from connectors.document import Document

MOST_CHARACTERS_A_TOKEN = 10
"""Files of more characters than tokens of this length have do not fit, and are not read to be counted."""


def answer_with_files(
    chat: "ChatService",
    models: "TurnModels",
    turn: "ChatTurn",
    attached: "AttachedFiles",
    state: "ChatStateContainer",
) -> Iterator["ChatEvent"]:
    """Answer as `ChatService.answer_by`; the first event says what becomes of the files."""
    from backend.chat.events import AnswerDone
    from backend.chat.given_files import FilesGiven

    model = models.chosen.answering if models.chosen else None
    whole = _read_whole(models, turn, attached)
    sees = model is not None and model.settings.sees_pictures
    pictures = attached.read_pictures() if sees else ()
    shown = {picture.document_id for picture in pictures}
    given = FilesGiven(
        use="whole" if whole is not None else _choose_use(attached),
        files=_give(attached.texts),
        has_model=model is not None,
        seen=_give([one for one in attached.pictures if one.document_id in shown]),
        unseen=_give([one for one in attached.pictures if one.document_id not in shown]),
    )
    yield given
    turn = replace(_restrict(turn, attached, whole), pictures=pictures)
    for event in chat.answer_by(models, turn, whole or (), state):
        yield replace(event, files=given) if isinstance(event, AnswerDone) else event


def _choose_use(attached: "AttachedFiles") -> "FileUse":
    return "scope" if attached.search_scope == "files" else "everything"


def _give(files: "Sequence[UserFile]") -> "tuple[GivenFile, ...]":
    from backend.chat.given_files import GivenFile

    return tuple(GivenFile(file.document_id, file.name) for file in files)


def _read_whole(
    models: "TurnModels", turn: "ChatTurn", attached: "AttachedFiles"
) -> "Sequence[Document] | None":
    """Return what the files say; None if no model reads them, or they do not fit."""
    from backend.chat.context_files import resolve_context_user_files
    from backend.files.attached_files import to_context_file

    if models.chosen is None:
        return None
    window = models.chosen.answering.settings.prompt_tokens
    if attached.text_length > window * MOST_CHARACTERS_A_TOKEN:
        return None
    documents = attached.read_documents(turn.readers)
    files = list(map(to_context_file, documents))
    resolved = resolve_context_user_files(files, window, models.count_tokens)
    return None if resolved.use_as_search_filter else documents


def _restrict(
    turn: "ChatTurn", attached: "AttachedFiles", whole: "Sequence[Document] | None"
) -> "ChatTurn":
    from backend.chat.context_files import ContextFile, ContextFiles
    from backend.files.attached_files import to_context_file
    from indexing.index.protocols import Filters

    if whole is not None:
        return replace(turn, files=tuple(map(to_context_file, whole)))
    if attached.search_scope == "everything" or not attached.texts:
        return turn
    named = [
        ContextFile(document_id=one.document_id, name=one.name, text="") for one in attached.texts
    ]
    scope = ContextFiles(tuple(named), use_as_search_filter=True)
    # The files stand in the place of what the assistant is limited to, which they are no part of.
    assistant = replace(turn.assistant, scope=Filters())
    return replace(turn, filters=scope.restrict(turn.filters), assistant=assistant)
