"""Answer a question that has files: they are read whole, or searched if they do not fit."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backend.chat.chat_state import ChatStateContainer
    from backend.chat.events import ChatEvent, ShownDocument
    from backend.chat.file_use import FilesGiven, FileUse, GivenFile
    from backend.chat.llm.client import ChatModel
    from backend.chat.turn import ChatTurn
    from backend.chat.turn_settings import AssistantSettings
    from backend.composition.chat import ChatService
    from backend.composition.language_models import TurnModels
    from backend.files.attached_files import AttachedFiles
    from backend.search.models import InferenceSection
    from backend.store.files.user_files import UserFile
    from connectors.document import Document
    from indexing.index.protocols import Filters, Hit

MOST_CHARACTERS_A_TOKEN = 10
"""Files of more characters than tokens of this length have do not fit, and are not read to be counted."""


def answer_attached(
    chat: "ChatService",
    models: "TurnModels",
    attached: "AttachedFiles | None",
    turn: "ChatTurn",
    state: "ChatStateContainer",
) -> Iterator["ChatEvent"]:
    """Answer as `ChatService.answer_by`, with files where there are any."""
    if attached is None:
        return chat.answer_by(models, turn, (), state)
    return answer_with_files(chat, models, turn, attached, state)


def answer_with_files(
    chat: "ChatService",
    models: "TurnModels",
    turn: "ChatTurn",
    attached: "AttachedFiles",
    state: "ChatStateContainer",
) -> Iterator["ChatEvent"]:
    """Answer as `ChatService.answer_by`; the first event says what becomes of the files."""
    from backend.chat.events import AnswerDone
    from backend.store.files.file_source import FILES_SOURCE

    model = models.chosen.answering if models.chosen else None
    whole = _read_whole(models, turn, attached)
    sees = model is not None and model.settings.sees_pictures
    pictures = attached.read_pictures() if sees else ()
    use = _choose_use(turn, attached, whole)
    given = _tell(attached, use, model, {picture.document_id for picture in pictures})
    yield given
    own = {file.document_id: FILES_SOURCE for file in attached.of_question}
    turn = replace(_restrict(turn, attached, use, whole), pictures=(*turn.pictures, *pictures))
    for event in chat.answer_by(models, turn, whole or (), state):
        if isinstance(event, AnswerDone):
            documents = _name_shown(event.documents, {**own, **attached.source_names})
            yield replace(event, files=given, documents=documents)
        else:
            yield _name_sources(event, attached.source_names)


def _name_sources(event: "ChatEvent", names: "Mapping[str, str]") -> "ChatEvent":
    """Return an event in which the sources of shared files are called what they are."""
    from backend.search.events import FirstResults, FusedResults, SectionsSelected

    if not names or not isinstance(event, FirstResults | FusedResults | SectionsSelected):
        return event
    return replace(event, sections=name_sources(event.sections, names))


def _name_shown(
    documents: "Sequence[ShownDocument]", names: "Mapping[str, str]"
) -> "tuple[ShownDocument, ...]":
    """Return what the answer could cite, with what its source is called; a file that was read whole has no section that says it."""
    return tuple(replace(one, source=names.get(one.document_id, one.source)) for one in documents)


def name_sources(
    sections: "Sequence[InferenceSection]", names: "Mapping[str, str]"
) -> "tuple[InferenceSection, ...]":
    """Return sections whose source is called as it is by the id of the document."""
    return tuple(
        replace(one, best=_name_source(one.best, names[one.document_id]))
        if one.document_id in names
        else one
        for one in sections
    )


def _name_source(hit: "Hit", name: str) -> "Hit":
    return replace(hit, chunk=replace(hit.chunk, source=name))


def _tell(
    attached: "AttachedFiles", use: "FileUse", model: "ChatModel | None", shown: Set[str]
) -> "FilesGiven":
    from backend.chat.file_use import FilesGiven

    unseen = [one for one in attached.pictures if one.document_id not in shown]
    return FilesGiven(
        use=use,
        files=_give(attached.own_texts),
        of_project=_give(attached.select_texts(attached.of_project)),
        of_assistant=_give(attached.select_texts(attached.of_assistant)),
        has_model=model is not None,
        seen=_give([one for one in attached.pictures if one.document_id in shown]),
        unseen=_give([one for one in unseen if one in attached.of_question]),
        unread=attached.unread,
        deleted=attached.deleted,
    )


def _choose_use(
    turn: "ChatTurn", attached: "AttachedFiles", whole: "Sequence[Document] | None"
) -> "FileUse":
    from indexing.index.protocols import Filters

    if whole is not None or not attached.texts:
        return "whole"
    others = (*attached.own_texts, *attached.select_texts(attached.of_project))
    if not turn.assistant.searches or _leaves_out_knowledge(turn):
        return "scope"
    if not others and turn.assistant.scope != Filters():
        return "added"
    return "scope" if attached.search_scope == "files" else "everything"


def _leaves_out_knowledge(turn: "ChatTurn") -> bool:
    """Return whether company knowledge is off; files too long to be read whole are searched all the same."""
    from backend.chat.intent.search_plan import Side
    from backend.chat.turn_settings import ChatMode

    return isinstance(turn.mode, ChatMode) and Side.KNOWLEDGE not in turn.mode.sides


def _search_files_alone(turn: "ChatTurn") -> "ChatTurn":
    from backend.chat.intent.search_plan import Side
    from backend.chat.turn_settings import ChatMode

    match turn.mode:
        case ChatMode(sides=sides) as mode:
            return replace(turn, mode=replace(mode, sides=sides | {Side.KNOWLEDGE}))
        case _:
            return turn


def _give(files: "Sequence[UserFile]") -> "tuple[GivenFile, ...]":
    from backend.chat.file_use import GivenFile

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
    turn: "ChatTurn",
    attached: "AttachedFiles",
    use: "FileUse",
    whole: "Sequence[Document] | None",
) -> "ChatTurn":
    from backend.files.attached_files import to_context_file
    from indexing.index.protocols import Filters

    if use == "whole":
        return replace(turn, files=tuple(map(to_context_file, whole or ())))
    assistant = turn.assistant
    turn = replace(turn, searches_files=bool(attached.own_texts))
    if use == "scope":
        # The files stand in place of what the assistant is limited to, which they are no part of.
        only = _accept_any(_accept_files(attached))
        assistant = replace(assistant.with_file_search(), scope=Filters())
        turn = _search_files_alone(turn)
        return replace(turn, filters=turn.filters.narrowed_by(only), assistant=assistant)
    return replace(turn, assistant=replace(assistant, scope=add_files(assistant, attached)))


def add_files(assistant: "AssistantSettings", attached: "AttachedFiles | None") -> "Filters":
    """Return what an assistant searches with the files; one that does not search has these alone."""
    from indexing.index.protocols import Filters

    files = _accept_files(attached) if attached else []
    if not assistant.searches:
        return _accept_any(files) if files else Filters(document_ids=frozenset())
    if assistant.scope == Filters() or not files:
        return assistant.scope
    return _accept_any([assistant.scope, *files])


def _accept_files(attached: "AttachedFiles") -> "list[Filters]":
    """Return filters that accept the files, each those of one kind."""
    from indexing.index.protocols import Filters

    found = []
    project, assistant = attached.holders.project_id, attached.holders.assistant_id
    if project is not None and attached.of_project:
        found.append(Filters(project_id_filter=frozenset({project})))
    if assistant is not None and attached.of_assistant:
        found.append(Filters(persona_id_filter=frozenset({assistant})))
    ids = attached.unlabelled.union(one.document_id for one in attached.own_texts)
    return [*found, Filters(document_ids=ids)] if ids else found


def _accept_any(filters: "Sequence[Filters]") -> "Filters":
    from indexing.index.protocols import Filters

    return filters[0] if len(filters) == 1 else Filters(any_of=tuple(filters))
